"""The connected parts of a network."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

from ssdfl.arrays import IntArray, SparseMatrix


def component_labels(links: SparseMatrix) -> IntArray:
    """(N,) the number of the connected component that each device is in.

    Args:
        links: (N, N) symmetric; anything but 0 is a link.

    Examples:
        >>> from scipy.sparse import csr_array
        >>> component_labels(csr_array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])).tolist()
        [0, 0, 1]
    """
    return connected_components(links, directed=False)[1].astype(np.int64)


def num_components(links: SparseMatrix) -> int:
    """How many connected components there are."""
    return connected_components(links, directed=False)[0]
