"""Names of array types for signatures, and small functions of arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

if TYPE_CHECKING:
    SparseMatrix: TypeAlias = csr_array[np.float64]
else:  # older versions of SciPy cannot be subscripted at run time
    SparseMatrix = csr_array


def statistic(reduce: Callable[[FloatArray], Any], values: FloatArray) -> float:
    """A statistic of some values; NaN if there are none.

    Examples:
        >>> statistic(np.min, np.array([0.5, 0.25])), statistic(np.min, np.array([]))
        (0.25, nan)
    """
    return float(reduce(values)) if len(values) else math.nan


def ranges(starts: NDArray[np.integer[Any]], counts: NDArray[np.integer[Any]]) -> IntArray:
    """Concatenated ranges of whole numbers, with the given starts and counts.

    Examples:
        >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
        [5, 6, 0, 1, 2]
    """
    before = np.cumsum(counts) - counts
    places: IntArray = np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
    return places
