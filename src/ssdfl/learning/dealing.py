"""Deal the samples of a data set to devices: the partitions by name, and a user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ssdfl.arrays import IntArray
from ssdfl.errors import InputError, find_function
from ssdfl.learning.dataset import Dataset
from ssdfl.learning.partitions import (
    by_column,
    by_labels,
    by_shared_labels,
    by_size,
    dirichlet,
    iid,
)
from ssdfl.learning.tables import FILE
from ssdfl.records.sections import DataSection

STRATA = 10
"""Numbers are dealt by labels as if their deciles were classes."""


@dataclass(frozen=True, eq=False)
class Dealing:
    """The inputs of a partition.

    Attributes:
        data: the data set to deal.
        names: the names of the devices.
        config: the experiment's section on data.
        rng: the only source of randomness.
    """

    data: Dataset
    names: Sequence[str]
    config: DataSection
    rng: np.random.Generator

    @property
    def num_devices(self) -> int:
        """The number of devices."""
        return len(self.names)

    @property
    def labels(self) -> IntArray:
        """(n,) the samples' classes; for numbers, their deciles.

        Raises:
            InputError: targets are sequences.
        """
        targets = self.data.train_targets
        if self.data.num_classes and targets.ndim == 1:
            return np.asarray(targets, dtype=np.int64)
        if self.data.num_classes:
            expected = "one that needs no classes: column, size, iid or files"
            raise InputError(
                "data.partition", self.config.partition, expected, "Choose one of them."
            )
        ranks = np.argsort(np.argsort(targets.reshape(len(targets), -1)[:, 0], kind="stable"))
        return np.asarray(ranks * STRATA // len(targets), dtype=np.int64)

    def column(self, name: str) -> Sequence[IntArray]:
        """Samples by the values of a column.

        Raises:
            InputError: the data have no such column.
        """
        if name not in self.data.columns:
            columns = ", ".join(self.data.columns) or "none"
            remedy = "For one file per device, name their folder in data.name."
            raise InputError(
                "data.column", name or "none", f"a column to deal by ({columns})", remedy
            )
        return by_column(self.data.columns[name], self.names)


Partition = Callable[[Dealing], Iterable[IntArray]]
"""A partition: returns the samples of each device."""


def _by_labels(one: Dealing) -> Iterable[IntArray]:
    """By labels, as `data.label_dealing` says."""
    config = one.config
    given = (one.labels, one.num_devices, config.labels_per_device, one.rng)
    if config.label_dealing == "shared":
        return by_shared_labels(*given)
    return by_labels(*given, config.label_dealing)


PARTITIONS: dict[str, Partition] = {
    "labels": _by_labels,
    "dirichlet": lambda one: dirichlet(one.labels, one.num_devices, one.config.alpha, one.rng),
    "iid": lambda one: iid(one.data.train_targets, one.num_devices, one.rng),
    "size": lambda one: by_size(
        len(one.data.train_targets), one.num_devices, one.config.size_exponent, one.rng
    ),
    "column": lambda one: one.column(one.config.column or _only_column(one.data)),
    "files": lambda one: one.column(FILE),
}
"""Partitions by name."""


def _only_column(data: Dataset) -> str:
    """The only column of the data, if there is exactly one."""
    return next(iter(data.columns)) if len(data.columns) == 1 else ""


def deal(dealing: Dealing) -> list[IntArray]:
    """The samples of each device, by the experiment's partition.

    Raises:
        InputError: the partition does not fit the data or the network.
    """
    name = dealing.config.partition
    partition = PARTITIONS.get(fitting_partition(dealing.data, dealing.config))
    if partition is None:
        own = find_function(PARTITIONS, name, "data.partition")
        return _checked(name, own(dealing.data, dealing.num_devices, dealing.rng), dealing)
    return list(partition(dealing))


def fitting_partition(data: Dataset, config: DataSection) -> str:
    """The partition's name, with ``auto`` resolved according to the data."""
    if config.partition != "auto":
        return config.partition
    if FILE in data.columns:
        return "files"
    if config.column:
        return "column"
    is_default = config.labels_per_device == type(config).model_fields["labels_per_device"].default
    too_many = (
        is_default and config.labels_per_device > data.num_classes
    )  # and not the user's choice
    return "labels" if data.num_classes and data.train_targets.ndim == 1 and not too_many else "iid"


def _checked(name: str, shards: Sequence[Sequence[int]], dealing: Dealing) -> list[IntArray]:
    """The shards that a user's function returned, after validation."""
    rows = [np.asarray(shard, dtype=np.int64) for shard in shards]
    count = len(dealing.data.train_targets)
    least = min(map(len, rows), default=0)
    if len(rows) != dealing.num_devices or least < 1:
        got = f"{len(rows)} devices, the smallest with {least} samples"
        expected = f"at least one sample for each of {dealing.num_devices} devices"
        raise InputError(f"data.partition {name}", got, expected, "Fix the function.")
    _check_samples(name, np.concatenate(rows), count)
    return rows


def _check_samples(name: str, samples: IntArray, count: int) -> None:
    if not 0 <= samples.min() <= samples.max() < count:
        got = f"samples {samples.min()} to {samples.max()}"
        raise InputError(f"data.partition {name}", got, f"samples from 0 to {count - 1}", "Fix it.")
