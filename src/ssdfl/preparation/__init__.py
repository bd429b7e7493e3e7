"""Turn an experiment into jobs: draw a seed's inputs, make the plan, and one job per method."""

from ssdfl.preparation.draw import (
    dealt_shards,
    dealt_task,
    draw,
    draw_optimizers_of,
    own_shards,
    own_task,
)
from ssdfl.preparation.job import clusters_of_method, make_job, testing_interval
from ssdfl.preparation.liars import liars_of
from ssdfl.preparation.planning import (
    MEASURED_DEVICES,
    given_plan,
    measure_device,
    measured_settings,
    measuring,
    settings_of,
)
from ssdfl.preparation.prepared import Prepared, prepare, prepare_planned
from ssdfl.preparation.sharing import sample_sharing, shared_devices

__all__ = [
    "MEASURED_DEVICES",
    "Prepared",
    "clusters_of_method",
    "dealt_shards",
    "dealt_task",
    "draw",
    "draw_optimizers_of",
    "given_plan",
    "liars_of",
    "make_job",
    "measure_device",
    "measured_settings",
    "measuring",
    "own_shards",
    "own_task",
    "prepare",
    "prepare_planned",
    "sample_sharing",
    "settings_of",
    "shared_devices",
    "testing_interval",
]
