"""Slowest modes of large clusters that shrink by a few devices at a time.

Random networks have hundreds of small parts that hang on by a single link. Bisection cuts them off
one after the other, and the rest mixes nearly as before. So its slowest modes are looked for among
those of the cluster that it was cut from, which takes a few products instead of hundreds.
"""

from __future__ import annotations

import numpy as np

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.graph.mixing import MixingMatrix
from ssdfl.graph.spectrum import DENSE_LIMIT, canonical, slow_space, slowest_mode

_MODES = 3
_MOST_LOST = 0.1  # of a cluster's devices
_RESIDUAL = 0.01  # of 1 − λ₂


class NestedModes:
    """λ₂ and Fiedler vectors of clusters, each of which is part of one that was seen before."""

    def __init__(self, num_devices: int) -> None:
        self._latest = np.full(num_devices, -1)
        self._seen: list[tuple[IntArray, FloatArray] | None] = []

    def __call__(self, W: MixingMatrix, devices: IntArray) -> tuple[float, FloatArray]:
        """λ₂ and the Fiedler vector, with a residual of at most 0.01 (1 − λ₂).

        Args:
            devices: (n,) those of the cluster, ascending.
        """
        if len(devices) <= DENSE_LIMIT:
            return slowest_mode(W)
        near = self._before(devices)
        found = None if near is None else _within(W, near)
        values, vectors = found or slow_space(W, _MODES)
        self._latest[devices] = len(self._seen)
        self._seen.append((devices, vectors))
        return float(values[-1]), canonical(vectors[:, [-1]])

    def _before(self, devices: IntArray) -> FloatArray | None:
        """The slow modes of the cluster from which these devices remain, if they are most of it."""
        latest = int(self._latest[devices[0]])
        seen = self._seen[latest] if latest >= 0 else None
        if seen is None or len(devices) < (1 - _MOST_LOST) * len(seen[0]):
            return None
        self._seen[latest] = None  # the other part is too small to need it
        before, vectors = seen
        return vectors[np.searchsorted(before, devices)]


def _within(W: MixingMatrix, near: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """The best eigenvalues and vectors within a space (Rayleigh and Ritz), if they are good."""
    basis = np.linalg.qr(near - near.mean(axis=0))[0]
    mixed = W @ basis
    values, turn = np.linalg.eigh(basis.T @ mixed)
    vectors = basis @ turn
    residual = np.linalg.norm(mixed @ turn[:, -1] - values[-1] * vectors[:, -1])
    return (values, vectors) if residual <= _RESIDUAL * (1 - values[-1]) else None
