"""What is learnt: data sets, who holds which samples, models, and local optimizers."""

from ssdfl.learning.batches import draw_batches
from ssdfl.learning.datasets import DATASETS, Dataset, load_dataset, make_dataset
from ssdfl.learning.measured import (
    DeviceConstants,
    MeasuredConstants,
    describe_devices,
    measure_constants,
    spread_devices,
)
from ssdfl.learning.models import MODELS, build_model
from ssdfl.learning.optimizers import (
    KINDS,
    OPTIMIZERS,
    Optimizer,
    OptimizerKind,
    draw_optimizers,
    find_optimizer,
    paper_optimizer,
    parse_optimizer,
)
from ssdfl.learning.precision import Precision, has_bf16_units, precision_remark
from ssdfl.learning.rates import RATES, find_rate
from ssdfl.learning.shards import by_labels, dirichlet, iid
from ssdfl.learning.sources import fetch, locate
from ssdfl.learning.task import Task, available_device, fork_generators, make_task

__all__ = [
    "DATASETS",
    "KINDS",
    "MODELS",
    "OPTIMIZERS",
    "RATES",
    "Dataset",
    "DeviceConstants",
    "MeasuredConstants",
    "Optimizer",
    "OptimizerKind",
    "Precision",
    "Task",
    "available_device",
    "build_model",
    "by_labels",
    "describe_devices",
    "dirichlet",
    "draw_batches",
    "draw_optimizers",
    "fetch",
    "find_optimizer",
    "find_rate",
    "fork_generators",
    "has_bf16_units",
    "iid",
    "load_dataset",
    "locate",
    "make_dataset",
    "make_task",
    "measure_constants",
    "paper_optimizer",
    "parse_optimizer",
    "precision_remark",
    "spread_devices",
]
