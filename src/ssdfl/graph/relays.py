"""Messages between devices without a link: the fastest paths, and the load on relays."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ssdfl.arrays import FloatArray, IntArray, SparseMatrix
from ssdfl.lazy import LazyModule

if TYPE_CHECKING:
    import scipy.sparse.csgraph as csgraph
else:
    csgraph = LazyModule("scipy.sparse.csgraph")


class Relays:
    """The fastest paths between all devices, as one tree of paths per sender.

    Args:
        link_s: (N, N) seconds of a message over each link.

    Attributes:
        seconds: (N, N) seconds from a sender to a receiver over its path.
    """

    def __init__(self, link_s: SparseMatrix) -> None:
        self.seconds, self._before = csgraph.shortest_path(
            link_s, directed=False, return_predecessors=True
        )
        self._nearest = np.argsort(self.seconds, axis=1, kind="stable").T

    def _hops_outwards(self) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """The hops of all trees, nearest first: senders, and the two ends of each hop."""
        everyone = np.arange(len(self._nearest))
        for nearest in self._nearest:
            senders = np.flatnonzero(self._before[everyone, nearest] >= 0)
            device = nearest[senders]
            yield senders, self._before[senders, device], device

    @cached_property
    def hops(self) -> IntArray:
        """(N, N) links on the path from a sender to a receiver."""
        hops = np.zeros(self.seconds.shape, dtype=np.int64)
        for senders, before, device in self._hops_outwards():
            hops[senders, device] = hops[senders, before] + 1
        return hops

    def loads(self, sender: IntArray, receiver: IntArray) -> tuple[IntArray, IntArray]:
        """(N,) the messages that each device sends or forwards, and receives, for some pairs."""
        passing = np.zeros(self.seconds.shape, dtype=np.int64)
        passing[sender, receiver] = 1
        for senders, before, device in reversed(list(self._hops_outwards())):
            passing[senders, before] += passing[senders, device]
        started = np.diagonal(passing)  # messages that start at a device, which it does not receive
        sent = passing.sum(axis=0) - np.bincount(receiver, minlength=len(passing))
        return sent, passing.sum(axis=0) - started

    def seconds_over(self, hop_s: FloatArray) -> FloatArray:
        """(N, N) seconds over the same paths if a hop from i to j takes hop_s[i, j]."""
        seconds = np.zeros_like(self.seconds)
        for senders, before, device in self._hops_outwards():
            seconds[senders, device] = seconds[senders, before] + hop_s[before, device]
        return seconds
