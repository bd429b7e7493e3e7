"""Names for the array types that signatures use."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

if TYPE_CHECKING:
    SparseMatrix: TypeAlias = csr_array[np.float64]
else:  # older versions of SciPy have no subscripts at run time
    SparseMatrix = csr_array
