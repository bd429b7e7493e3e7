"""Data sets from what Python has: data frames, torch data sets, pairs of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from ssdfl.errors import InputError
from ssdfl.learning.dataset import Dataset
from ssdfl.learning.readers import arrays_dataset
from ssdfl.learning.tables import AS_IT_IS, Reading, table_dataset

DataLike = Any
"""A `Dataset`, a pandas frame, an Arrow table, a torch data set, or a pair of such to train and test with."""


def as_dataset(source: object, reading: Reading = AS_IT_IS) -> Dataset:
    """A data set from a `Dataset`, a pandas frame, an Arrow table, or a torch data set.

    Of a pair (train, test) of torch data sets, the second is for testing; otherwise a share is split off.

    Raises:
        InputError: it is none of these.
    """
    if isinstance(source, Dataset):
        return source
    if isinstance(source, pa.Table):
        return table_dataset(source, reading)
    if hasattr(source, "columns") and hasattr(source, "to_numpy"):
        return table_dataset(pa.Table.from_pandas(source, preserve_index=False), reading)
    if isinstance(source, tuple) and len(source) == 2 and all(map(_has_items, source)):
        (inputs, targets), (test_inputs, test_targets) = map(_stacked, source)
        test = np.arange(len(targets) + len(test_targets)) >= len(targets)
        joined = np.concatenate([inputs, test_inputs]), np.concatenate([targets, test_targets])
        return arrays_dataset(*joined, reading, test=test)
    if _has_items(source):
        return arrays_dataset(*_stacked(source), reading)
    expected = "an ssdfl.learning.Dataset, a pandas frame, an Arrow table or a torch data set"
    raise InputError("data", type(source).__name__, expected, "Make one of it.")


def _has_items(source: object) -> bool:
    return isinstance(source, torch.utils.data.Dataset) and hasattr(source, "__len__")


def _stacked(source: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """All inputs and all targets of a torch data set of pairs."""
    pairs = [source[k] for k in range(len(source))]
    inputs = np.stack([np.asarray(one) for one, _ in pairs])
    targets = np.stack([np.asarray(target) for _, target in pairs])
    return inputs, targets
