"""From an experiment to jobs: what a seed determines, the plan, and one job for each method."""

from ssdfl.preparation.draw import draw
from ssdfl.preparation.job import clusters_of_method, make_job, testing_interval
from ssdfl.preparation.planning import (
    DESCRIBED_SAMPLES,
    MEASURED_DEVICES,
    fitting_plan,
    formation_settings,
    given_plan,
    measure_device,
    measuring,
    settings_of,
)
from ssdfl.preparation.prepared import Prepared, prepare, prepare_planned

__all__ = [
    "DESCRIBED_SAMPLES",
    "MEASURED_DEVICES",
    "Prepared",
    "clusters_of_method",
    "draw",
    "fitting_plan",
    "formation_settings",
    "given_plan",
    "make_job",
    "measure_device",
    "measuring",
    "prepare",
    "prepare_planned",
    "settings_of",
    "testing_interval",
]
