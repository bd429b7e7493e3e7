"""From an experiment to jobs: what a seed determines, the plan, and one job for each method."""

from ssdfl.preparation.draw import draw
from ssdfl.preparation.job import clusters_of_method, make_job, testing_interval
from ssdfl.preparation.liars import liars_of
from ssdfl.preparation.planning import (
    DESCRIBED_SAMPLES,
    MEASURED_DEVICES,
    described_devices,
    given_plan,
    measure_device,
    measured_settings,
    measuring,
    settings_of,
)
from ssdfl.preparation.prepared import Prepared, prepare, prepare_planned

__all__ = [
    "DESCRIBED_SAMPLES",
    "MEASURED_DEVICES",
    "Prepared",
    "clusters_of_method",
    "described_devices",
    "draw",
    "given_plan",
    "liars_of",
    "make_job",
    "measure_device",
    "measured_settings",
    "measuring",
    "prepare",
    "prepare_planned",
    "settings_of",
    "testing_interval",
]
