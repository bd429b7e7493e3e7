"""A mixing matrix cut between processes: what a rank mixes alone, and which rows cross to whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from ssdfl.arrays import IntArray
from ssdfl.clusters import Clusters, clusters_of, shard_devices
from ssdfl.engine.job import Job
from ssdfl.graph import MixingMatrix


@dataclass(frozen=True, eq=False)
class Side:
    """What one rank and another exchange in a step.

    Attributes:
        peer: the other's number.
        rows: (b,) of this rank's matrix that mix the other's; since W is symmetric, the other mixes them.
        weights: (b, r) of these rows and the r rows that the other sends.
        summed: every weight between the two is the same, so that one row, the mean, is all that is sent.
    """

    peer: int
    rows: IntArray
    weights: MixingMatrix
    summed: bool


@dataclass(frozen=True, eq=False)
class Cut:
    """A mixing matrix as one rank sees it: ``inner`` (n, n) of its own devices, and a side for each other."""

    inner: MixingMatrix
    sides: tuple[Side, ...]


def cut_matrix(W: MixingMatrix, owner: IntArray, rank: int) -> Cut:
    """The rows of W of a rank's devices, cut by whose the columns are.

    Args:
        owner: (N,) the rank that has each device.

    Examples:
        >>> from ssdfl.graph import load_network, metropolis
        >>> W = metropolis(load_network("path:n=4").adjacency)
        >>> cut = cut_matrix(W, np.array([0, 0, 1, 1]), rank=0)
        >>> [(side.peer, side.rows.tolist(), side.weights.shape) for side in cut.sides]
        [(1, [1], (1, 1))]
    """
    own = np.flatnonzero(owner == rank)
    if len(own) == len(owner):
        return Cut(W, ())
    place = np.empty(len(owner), dtype=np.int64)
    place[own] = np.arange(len(own))
    entries = _mirrored(W)[own].tocoo()
    of_column = owner[entries.col]
    inside = of_column == rank
    inner = csr_array(
        (entries.data[inside], (entries.row[inside], place[entries.col[inside]])), shape=(len(own), len(own))
    )
    return Cut(inner, tuple(_sides(entries, of_column, rank)))


def _mirrored(W: MixingMatrix) -> MixingMatrix:
    """W with an entry, if only a zero, wherever its transpose has one: two ranks see the same links."""
    entries = W.tocoo()
    row, column = np.concatenate([(entries.row, entries.col), (entries.col, entries.row)], axis=1)
    data = np.concatenate([entries.data, np.zeros(entries.nnz)])
    return csr_array((data, (row, column)), shape=W.shape)


def _sides(entries: coo_array, of_column: IntArray, rank: int) -> Iterator[Side]:
    for peer in np.unique(of_column[of_column != rank]).tolist():
        here = of_column == peer
        rows, row = np.unique(entries.row[here], return_inverse=True)
        theirs, column = np.unique(entries.col[here], return_inverse=True)
        weights = csr_array((entries.data[here], (row, column)), shape=(len(rows), len(theirs)))
        full = weights.nnz == len(rows) * len(theirs) > 1
        summed = full and bool(np.ptp(weights.data) < 1e-12)
        if summed:
            weights = csr_array(np.full((len(rows), 1), weights.data[0] * len(theirs)))
        yield Side(peer, rows, weights, summed)


def shard_job(job: Job, num_ranks: int) -> Clusters:
    """Which devices each rank gets: those that mix while they train stay together where that is fair.

    What the first cycle does decides: links cost as much to cut as there are steps that use them.
    """
    uses: dict[int, tuple[MixingMatrix, int, bool]] = {}
    for t in range(job.steps_per_cycle):
        step = job.schedule(t)
        _, count, trains = uses.get(id(step.W), (step.W, 0, False))
        uses[id(step.W)] = (step.W, count + 1, trains or bool(step.train.any()))
    N = job.network.num_devices
    used = training = csr_array((N, N))
    for W, count, trains in uses.values():
        support = csr_array((np.ones(W.nnz), W.indices, W.indptr), shape=W.shape)
        used = used + count * support
        training = training + support if trains else training
    used.setdiag(0)
    used.eliminate_zeros()
    together = connected_components(training, directed=False)[1].astype(np.int64)
    return shard_devices(csr_array(used), num_ranks, clusters_of(together))
