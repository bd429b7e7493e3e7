"""Warnings about data that work, but perhaps not as the user expects."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from ssdfl.errors import InputWarning
from ssdfl.learning import Dataset, Task
from ssdfl.records.config import Experiment


def warn_of_data(experiment: Experiment, task: Task, data: Dataset) -> None:
    """Warn about batches larger than shards, and about classes that no device holds."""
    for text in (*_small_shards(experiment, task), *_missing_classes(task, data)):
        warnings.warn(text, InputWarning, stacklevel=3)


def _small_shards(experiment: Experiment, task: Task) -> Iterator[str]:
    batch_size, sizes = experiment.training.batch_size, task.shards.sizes
    smaller = int((sizes < batch_size).sum())
    if smaller:
        least = int(sizes.min())
        yield (
            f"training.batch_size = {batch_size}, but {smaller} of {len(sizes)} devices hold fewer "
            f"samples (the fewest: {least}). Batches are drawn with replacement, "
            "so these devices see samples twice."
        )


def _missing_classes(task: Task, data: Dataset) -> Iterator[str]:
    if not data.num_classes or task.targets.dim() > 1:
        return
    held = np.unique(task.targets[task.shards.samples].cpu().numpy())
    if len(held) < data.num_classes:
        yield (
            f"No device holds {data.num_classes - len(held)} of the {data.num_classes} classes, "
            "so they cannot be learnt: use more devices, or raise data.labels_per_device."
        )
