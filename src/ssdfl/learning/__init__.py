"""Learning: data sets and their partitions, models, and local optimizers."""

from ssdfl.learning.batches import draw_batches
from ssdfl.learning.conversion import DataLike, as_dataset
from ssdfl.learning.dataset import Dataset, make_dataset
from ssdfl.learning.datasets import (
    DATASETS,
    has_device_files,
    load_data,
    load_dataset,
    load_own_data,
    reading_of,
)
from ssdfl.learning.dealing import PARTITIONS, Dealing, deal
from ssdfl.learning.encoding import Column, Encoding
from ssdfl.learning.inputs import Inputs, call_model, count, map_inputs, parts_of
from ssdfl.learning.layout import Buffers, Home, Layout
from ssdfl.learning.losses import LOSSES, find_loss
from ssdfl.learning.measured import (
    DeviceConstants,
    MeasuredConstants,
    describe_devices,
    label_counts,
    label_table,
    measure_constants,
    spread_devices,
)
from ssdfl.learning.metrics import TaskMetric, find_metrics
from ssdfl.learning.models import MODELS, Model, build_model
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
from ssdfl.learning.partitions import (
    by_column,
    by_labels,
    by_shared_labels,
    by_size,
    dirichlet,
    iid,
)
from ssdfl.learning.precision import Precision, has_bf16_units, precision_remark
from ssdfl.learning.rates import RATES, find_rate
from ssdfl.learning.shards import Shards
from ssdfl.learning.sources import fetch, locate
from ssdfl.learning.summaries import Summary, merged, read_summary
from ssdfl.learning.task import (
    Task,
    available_device,
    make_task,
    num_outputs,
)
from ssdfl.learning.torch_generator import fork_generators

__all__ = [
    "DATASETS",
    "KINDS",
    "LOSSES",
    "MODELS",
    "OPTIMIZERS",
    "PARTITIONS",
    "RATES",
    "Buffers",
    "Column",
    "DataLike",
    "Dataset",
    "Dealing",
    "DeviceConstants",
    "Encoding",
    "Home",
    "Inputs",
    "Layout",
    "MeasuredConstants",
    "Model",
    "Optimizer",
    "OptimizerKind",
    "Precision",
    "Shards",
    "Summary",
    "Task",
    "TaskMetric",
    "as_dataset",
    "available_device",
    "build_model",
    "by_column",
    "by_labels",
    "by_shared_labels",
    "by_size",
    "call_model",
    "count",
    "deal",
    "describe_devices",
    "dirichlet",
    "draw_batches",
    "draw_optimizers",
    "fetch",
    "find_loss",
    "find_metrics",
    "find_optimizer",
    "find_rate",
    "fork_generators",
    "has_bf16_units",
    "has_device_files",
    "iid",
    "label_counts",
    "label_table",
    "load_data",
    "load_dataset",
    "load_own_data",
    "locate",
    "make_dataset",
    "make_task",
    "map_inputs",
    "measure_constants",
    "merged",
    "num_outputs",
    "paper_optimizer",
    "parse_optimizer",
    "parts_of",
    "precision_remark",
    "read_summary",
    "reading_of",
    "spread_devices",
]
