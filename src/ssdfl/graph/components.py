"""The connected parts of a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ssdfl.arrays import IntArray, SparseMatrix
from ssdfl.lazy import LazyModule

if TYPE_CHECKING:
    import scipy.sparse.csgraph as csgraph
else:
    csgraph = LazyModule("scipy.sparse.csgraph")

_FEW = 400
"""Devices up to which our own search is as fast, so that small processes need not load csgraph."""


def component_labels(links: SparseMatrix) -> IntArray:
    """(N,) the number of each device's connected component.

    Args:
        links: (N, N); every stored entry is a link, in one direction or both.

    Examples:
        >>> from scipy.sparse import csr_array
        >>> component_labels(csr_array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])).tolist()
        [0, 0, 1]
    """
    if links.shape[0] <= _FEW:
        return _united(links)
    return csgraph.connected_components(links, directed=False)[1].astype(np.int64)


def num_components(links: SparseMatrix) -> int:
    """How many connected components there are."""
    return int(component_labels(links).max(initial=-1)) + 1


def _united(links: SparseMatrix) -> IntArray:
    """Components numbered by their first device, found by uniting the ends of all links at once."""
    i, j = np.repeat(np.arange(links.shape[0]), np.diff(links.indptr)), links.indices
    first = np.arange(links.shape[0])  # the first device known to be in the same component
    while (first[i] != first[j]).any():
        low, high = np.minimum(first[i], first[j]), np.maximum(first[i], first[j])
        np.minimum.at(first, high, low)
        first = _followed(first)
    return np.unique(first, return_inverse=True)[1].astype(np.int64)


def _followed(first: IntArray) -> IntArray:
    """Where each device's chain of earlier devices ends."""
    while (first[first] != first).any():
        first = first[first]
    return first
