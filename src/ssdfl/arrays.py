"""Names of array types for signatures, and statistics of values that may be empty."""

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
