"""Partitions: deal each sample to at most one device, at random from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.errors import InputError, check_range
from ssdfl.lazy import LazyModule
from ssdfl.learning.columns import encoded

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = LazyModule("pyarrow")


def by_labels(
    labels: IntArray,
    num_devices: int,
    labels_per_device: int,
    rng: np.random.Generator,
    dealing: str = "even",
) -> IntArray:
    """Each device holds ``labels_per_device`` labels: 3 is the paper's mild case, 1 its extreme.

    Labels are dealt to devices as evenly as possible, and each label's samples to its devices in
    equal parts.

    Args:
        dealing: ``even``, or ``random``: each device draws its labels at random, so some labels may
            have many devices and others none.

    Returns:
        (N, m) sample indices.

    Examples:
        >>> y = np.array([0, 0, 1, 1, 2, 2])
        >>> y[by_labels(y, 3, 1, np.random.default_rng(0))].tolist()
        [[2, 2], [0, 0], [1, 1]]
    """
    classes = _checked_classes(labels, labels_per_device)
    held = DEALINGS[dealing](num_devices, labels_per_device, classes, rng)
    uses = np.bincount(held.ravel(), minlength=classes)
    used = uses > 0
    counts = np.bincount(labels, minlength=classes)
    share = int((counts[used] // uses[used]).min())
    _check_enough(share, len(labels), num_devices)
    pools = _shuffled_by_label(labels, rng)
    taken = np.zeros(classes, dtype=np.int64)
    shards = np.zeros((num_devices, labels_per_device, share), dtype=np.int64)
    for device, label_row in enumerate(held):
        for column, label in enumerate(label_row):
            shards[device, column] = pools[label][taken[label] : taken[label] + share]
            taken[label] += share
    return shards.reshape(num_devices, -1)


def by_shared_labels(
    labels: IntArray, num_devices: int, labels_per_device: int, rng: np.random.Generator
) -> list[IntArray]:
    """Each device draws its labels at random; those that drew a label share all its samples.

    Some labels may have many devices and others none. A device that is alone with a label has more
    of it than of a label that it shares. If devices count by size (``data.weights = "size"``),
    every sample of these labels counts the same.

    Returns:
        The samples of each device, of different numbers.

    Examples:
        >>> y = np.array([0, 0, 1, 1, 2, 2])
        >>> shards = by_shared_labels(y, 3, 1, np.random.default_rng(1))
        >>> [y[shard].tolist() for shard in shards]
        [[1], [1], [2, 2]]
    """
    classes = _checked_classes(labels, labels_per_device)
    held = _random_labels(num_devices, labels_per_device, classes, rng)
    shards: list[list[IntArray]] = [[] for _ in range(num_devices)]
    for label, pool in enumerate(_shuffled_by_label(labels, rng)):
        holders = np.flatnonzero((held == label).any(axis=1))
        if len(holders):
            _check_enough(len(pool) // len(holders), len(labels), num_devices)
            for device, share in zip(holders, np.array_split(pool, len(holders)), strict=True):
                shards[device].append(share)
    return [np.concatenate(parts) for parts in shards]


def _checked_classes(labels: IntArray, labels_per_device: int) -> int:
    """The number of classes, if a device can hold this many labels."""
    classes = int(labels.max()) + 1
    check_range(
        "data.labels_per_device", labels_per_device, 1, classes, f"There are {classes} labels."
    )
    return classes


def _even_labels(
    num_devices: int, labels_per_device: int, classes: int, rng: np.random.Generator
) -> IntArray:
    """(N, labels per device) the labels of each device: always the least used so far."""
    uses = np.zeros(classes, dtype=np.int64)
    held = np.zeros((num_devices, labels_per_device), dtype=np.int64)
    for device in range(num_devices):
        held[device] = np.lexsort((rng.random(classes), uses))[:labels_per_device]
        uses[held[device]] += 1
    return held


def _random_labels(
    num_devices: int, labels_per_device: int, classes: int, rng: np.random.Generator
) -> IntArray:
    """(N, labels per device) the labels of each device, drawn at random."""
    drawn = [rng.choice(classes, size=labels_per_device, replace=False) for _ in range(num_devices)]
    return np.array(drawn, dtype=np.int64)


DEALINGS = {"even": _even_labels, "random": _random_labels}


def _shuffled_by_label(labels: IntArray, rng: np.random.Generator) -> list[IntArray]:
    """The samples of each label, in random order."""
    return [
        rng.permutation(np.flatnonzero(labels == label)) for label in range(int(labels.max()) + 1)
    ]


def dirichlet(
    labels: IntArray, num_devices: int, alpha: float, rng: np.random.Generator
) -> IntArray:
    """Each device draws its label proportions from Dirichlet(α): small α is skewed, large α even.

    All devices hold equally many samples. If a label has run out, a device takes its next best.

    Returns:
        (N, m) sample indices with m = ⌊samples / N⌋.
    """
    if not alpha > 0:
        raise InputError(
            "data.alpha", alpha, "a number above 0", "Choose 0.1 (skewed) to 100 (even)."
        )
    classes = int(labels.max()) + 1
    size = len(labels) // num_devices
    _check_enough(size, len(labels), num_devices)
    pools = _shuffled_by_label(labels, rng)
    left = np.array([len(pool) for pool in pools])
    shards = np.zeros((num_devices, size), dtype=np.int64)
    for device in rng.permutation(
        num_devices
    ):  # in random order, so that leftovers put no particular device at a disadvantage
        take = _allot(rng.dirichlet(np.full(classes, alpha)), size, left)
        left -= take
        shards[device] = np.concatenate(
            [pools[k][left[k] : left[k] + take[k]] for k in range(classes)]
        )
    return shards


def _allot(proportions: FloatArray, size: int, left: IntArray) -> IntArray:
    """Split ``size`` in proportion by largest remainders, using no more of a label than is left."""
    take = np.zeros(len(left), dtype=np.int64)
    while (missing := size - int(take.sum())) > 0:
        room = left - take
        weight = np.where(room > 0, np.maximum(proportions, 1e-12), 0)
        wanted = missing * weight / weight.sum()
        step = np.minimum(np.floor(wanted).astype(np.int64), room)
        if step.sum() == 0:
            step[np.argsort(-wanted, kind="stable")[: min(missing, int((room > 0).sum()))]] = 1
        take += step
    return take


def iid(labels: NDArray[Any], num_devices: int, rng: np.random.Generator) -> IntArray:
    """Shuffle and deal: every device holds a random sample of everything.

    Examples:
        >>> iid(np.zeros(7, dtype=int), 3, np.random.default_rng(0)).shape
        (3, 2)
    """
    size = len(labels) // num_devices
    _check_enough(size, len(labels), num_devices)
    return rng.permutation(len(labels))[: num_devices * size].reshape(num_devices, size)


def by_size(
    count: int, num_devices: int, exponent: float, rng: np.random.Generator
) -> list[IntArray]:
    """Random samples; the k-th largest device holds k^−exponent as many as the largest.

    The order of devices by size is drawn at random. All samples are dealt, and every device holds
    at least one.

    Examples:
        >>> sorted(len(shard) for shard in by_size(110, 3, 1.0, np.random.default_rng(0)))
        [20, 31, 59]
    """
    _check_enough(count // num_devices, count, num_devices)
    weights = np.arange(1, num_devices + 1, dtype=float) ** -exponent
    ends = np.round(np.cumsum(weights) / weights.sum() * (count - num_devices)).astype(np.int64)
    sizes = np.diff(ends, prepend=0) + 1
    order, places = rng.permutation(count), rng.permutation(num_devices)
    shards = np.split(order, np.cumsum(sizes)[:-1])
    return [shards[place] for place in places]


def by_column(values: NDArray[Any], names: Sequence[str]) -> list[IntArray]:
    """Keep each value's samples together; a device gets one value, or several if needed.

    If the values are the devices' names, each goes to its device. Otherwise the largest group goes
    to the device that holds least; ties go to the first device.

    Args:
        values: (n,) the value of each sample, such as its user.
        names: the names of the devices.

    Examples:
        >>> values = np.array(["b", "a", "b", "c"])
        >>> [shard.tolist() for shard in by_column(values, ["b", "c", "a"])]
        [[0, 2], [3], [1]]
        >>> [shard.tolist() for shard in by_column(values, ["x", "y"])]
        [[0, 2], [1, 3]]
    """
    codes, found = encoded(pa.chunked_array([pa.array(values)]))
    if len(found) < len(names):
        expected = f"at least {len(names)}, one for each device"
        remedy = f"Use a network of {len(found)} devices, or another partition."
        raise InputError("values to deal by", len(found), expected, remedy)
    order = np.argsort(codes, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    if sorted(found) == sorted(names):
        return [groups[found.index(name)] for name in names]
    return _evened(groups, len(names))


def _evened(groups: Sequence[IntArray], num_devices: int) -> list[IntArray]:
    """Deal whole groups, the largest first, each to the device that holds least."""
    held: list[list[IntArray]] = [[] for _ in range(num_devices)]
    sizes = np.zeros(num_devices, dtype=np.int64)
    by_size_first = sorted(range(len(groups)), key=lambda k: -len(groups[k]))
    for group in by_size_first:
        device = int(sizes.argmin())
        held[device].append(groups[group])
        sizes[device] += len(groups[group])
    return [np.concatenate(own) for own in held]


def _check_enough(share: int, samples: int, num_devices: int) -> None:
    if share < 1:
        raise InputError(
            "number of devices",
            num_devices,
            f"few enough to share {samples} training samples",
            "Use fewer devices, fewer labels per device, or more data.",
        )
