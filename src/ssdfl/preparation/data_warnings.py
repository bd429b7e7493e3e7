"""What works with some data, but perhaps not as the user thinks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from ssdfl.errors import InputWarning
from ssdfl.learning import Dataset, Task
from ssdfl.records.config import Experiment


def warn_of_data(experiment: Experiment, task: Task, data: Dataset) -> None:
    """Warn of batches larger than shards, and of classes that nobody holds."""
    for text in (*_small_shards(experiment, task), *_missing_classes(task, data)):
        warnings.warn(text, InputWarning, stacklevel=3)


def _small_shards(experiment: Experiment, task: Task) -> Iterator[str]:
    batch_size, sizes = experiment.training.batch_size, task.shards.sizes
    smaller = int((sizes < batch_size).sum())
    if smaller:
        least = int(sizes.min())
        yield (
            f"training.batch_size = {batch_size}, but {smaller} of {len(sizes)} devices hold fewer "
            f"samples (the least {least}): batches are drawn with replacement, "
            "so these see samples twice."
        )


def _missing_classes(task: Task, data: Dataset) -> Iterator[str]:
    if not data.num_classes or task.targets.dim() > 1:
        return
    held = np.unique(task.targets[task.shards.samples].cpu().numpy())
    if len(held) < data.num_classes:
        yield (
            f"Nobody holds {data.num_classes - len(held)} of the {data.num_classes} classes, "
            "so they cannot be learnt: take more devices or raise data.labels_per_device."
        )
