"""Exact conductances of many small groups of devices, by trying all cuts of all groups at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ssdfl.arrays import BoolArray, FloatArray, IntArray
from ssdfl.graph.blocks import Blocks
from ssdfl.graph.conductance import Conductance, of_equal_weights
from ssdfl.graph.sparsest_cut import ENUMERATION_LIMIT, enumerate_cuts

_AT_ONCE = 1 << 18  # values of all cuts that are tried in one call


def small_conductances(blocks: Blocks, chosen: IntArray) -> Iterator[tuple[int, Conductance]]:
    """The numbers and conductances of those of the chosen groups that are small enough.

    Args:
        chosen: numbers of connected groups.

    Examples:
        >>> from ssdfl.graph import load_network, make_blocks, metropolis
        >>> path = load_network("path:n=5").adjacency
        >>> blocks = make_blocks(path, [np.array([0, 1]), np.array([2, 3, 4])], metropolis)
        >>> [(number, round(found.upper, 3)) for number, found in
        ...  small_conductances(blocks, np.array([0, 1]))]
        [(0, 0.5), (1, 0.333)]
    """
    sizes = blocks.sizes[chosen]
    for numbers in blocks.of_equal_size(chosen[(sizes > 1) & (sizes <= ENUMERATION_LIMIT)]):
        n = int(blocks.sizes[numbers[0]])
        most = max(1, _AT_ONCE // (n << n))
        for k in range(0, len(numbers), most):
            few = numbers[k : k + most]
            yield from zip(few.tolist(), _of_equal_size(blocks.stacked(few)), strict=True)


def _of_equal_size(stacked: FloatArray) -> Iterator[Conductance]:
    """The conductances of dense matrices (k, n, n)."""
    for W, best in zip(stacked, enumerate_cuts(stacked), strict=True):
        yield of_equal_weights(W) or _of_cut(W, best)


def _of_cut(W: FloatArray, best: BoolArray) -> Conductance:
    across = W[best][:, ~best]
    size = int(best.sum())
    value = float(across[across != 0].sum()) / min(size, len(W) - size)
    return Conductance(value, value, tuple(np.flatnonzero(best).tolist()))
