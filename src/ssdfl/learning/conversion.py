"""Convert Python objects to data sets: data frames, torch data sets, pairs of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssdfl.errors import InputError
from ssdfl.lazy import LazyModule
from ssdfl.learning.dataset import Dataset
from ssdfl.learning.readers import arrays_dataset
from ssdfl.learning.tables import AS_IT_IS, Reading, table_dataset

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = LazyModule("pyarrow")

DataLike = Any
"""A `Dataset`, pandas frame, Arrow table or torch data set, or a (train, test) pair."""


def as_dataset(source: object, reading: Reading = AS_IT_IS) -> Dataset:
    """A data set from a `Dataset`, a pandas frame, an Arrow table, or a torch data set.

    In a pair (train, test) of torch data sets, the second is for testing. Otherwise a share is
    split off.

    Raises:
        InputError: the source is none of these.
    """
    for fits, convert in _KINDS:
        if fits(source):
            return convert(source, reading)
    expected = "an ssdfl.learning.Dataset, a pandas frame, an Arrow table or a torch data set"
    raise InputError("data", type(source).__name__, expected, "Convert it to one of these.")


def _is_frame(source: object) -> bool:
    return hasattr(source, "columns") and hasattr(source, "to_numpy")


def _from_frame(source: Any, reading: Reading) -> Dataset:
    return table_dataset(pa.Table.from_pandas(source, preserve_index=False), reading)


def _is_pair(source: object) -> bool:
    return isinstance(source, tuple) and len(source) == 2 and all(map(_has_items, source))


def _from_pair(source: Any, reading: Reading) -> Dataset:
    (inputs, targets), (test_inputs, test_targets) = map(_stacked, source)
    test = np.arange(len(targets) + len(test_targets)) >= len(targets)
    joined = np.concatenate([inputs, test_inputs]), np.concatenate([targets, test_targets])
    return arrays_dataset(*joined, reading, test=test)


def _from_items(source: Any, reading: Reading) -> Dataset:
    return arrays_dataset(*_stacked(source), reading)


def _has_items(source: object) -> bool:
    return isinstance(source, torch.utils.data.Dataset) and hasattr(source, "__len__")


def _stacked(source: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """All inputs and all targets of a torch data set of pairs."""
    pairs = [source[k] for k in range(len(source))]
    inputs = np.stack([np.asarray(one) for one, _ in pairs])
    targets = np.stack([np.asarray(target) for _, target in pairs])
    return inputs, targets


_KINDS: tuple[tuple[Callable[[object], bool], Callable[[Any, Reading], Dataset]], ...] = (
    (lambda source: isinstance(source, Dataset), lambda source, _: source),
    (lambda source: isinstance(source, pa.Table), table_dataset),
    (_is_frame, _from_frame),
    (_is_pair, _from_pair),
    (_has_items, _from_items),
)
"""Tests for kinds of data, and the function that converts each; the first match is used."""
