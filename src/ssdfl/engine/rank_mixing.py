"""Divide a mixing matrix among ranks: the local part, and the rows to exchange."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from ssdfl.arrays import IntArray
from ssdfl.clusters import Clusters, assign_to_ranks, clusters_of
from ssdfl.engine.job import Job
from ssdfl.graph import MixingMatrix


@dataclass(frozen=True, eq=False)
class PeerRows:
    """The rows that two ranks exchange in a step.

    Attributes:
        rank: the number of the other rank.
        rows: (b,) the rows of this rank that mix rows of the other; W is symmetric, so the other
            rank mixes them too.
        weights: (b, r) the weights between these rows and the r rows that the other rank sends.
        senders: (s,) the devices of the other rank that these rows mix.
        summed: whether all weights between the two are equal, so that only their mean is sent.
    """

    rank: int
    rows: IntArray
    weights: MixingMatrix
    senders: IntArray
    summed: bool


@dataclass(frozen=True, eq=False)
class RankMixing:
    """A mixing matrix as one rank sees it.

    Attributes:
        inner: (n, n) the weights between its own devices.
        peers: the rows that it exchanges with each other rank.
    """

    inner: MixingMatrix
    peers: tuple[PeerRows, ...]


def divide_mixing(W: MixingMatrix, owner: IntArray, rank: int, raw: bool = False) -> RankMixing:
    """The rows of W for a rank's devices, with columns divided by rank.

    Args:
        owner: (N,) the rank of each device.
        raw: never sum rows before they are sent, for rules that are not linear.

    Examples:
        >>> from ssdfl.graph import load_network, metropolis
        >>> W = metropolis(load_network("path:n=4").adjacency)
        >>> part = divide_mixing(W, np.array([0, 0, 1, 1]), rank=0)
        >>> [(peer.rank, peer.rows.tolist(), peer.weights.shape) for peer in part.peers]
        [(1, [1], (1, 1))]
    """
    own = np.flatnonzero(owner == rank)
    if len(own) == len(owner):
        return RankMixing(W, ())
    place = np.empty(len(owner), dtype=np.int64)
    place[own] = np.arange(len(own))
    entries = _mirrored(W)[own].tocoo()
    of_column = owner[entries.col]
    inside = of_column == rank
    inner = csr_array(
        (entries.data[inside], (entries.row[inside], place[entries.col[inside]])),
        shape=(len(own), len(own)),
    )
    return RankMixing(inner, tuple(_peers(entries, of_column, rank, raw)))


def _mirrored(W: MixingMatrix) -> MixingMatrix:
    """W with an entry, possibly zero, wherever its transpose has one, so both ranks see a link."""
    entries = W.tocoo()
    row, column = np.concatenate([(entries.row, entries.col), (entries.col, entries.row)], axis=1)
    data = np.concatenate([entries.data, np.zeros(entries.nnz)])
    return csr_array((data, (row, column)), shape=W.shape)


def _peers(entries: coo_array, of_column: IntArray, rank: int, raw: bool) -> Iterator[PeerRows]:
    for peer in np.unique(of_column[of_column != rank]).tolist():
        here = of_column == peer
        rows, row = np.unique(entries.row[here], return_inverse=True)
        theirs, column = np.unique(entries.col[here], return_inverse=True)
        weights = csr_array((entries.data[here], (row, column)), shape=(len(rows), len(theirs)))
        summed = _all_alike(weights) and not raw
        if summed:
            weights = csr_array(np.full((len(rows), 1), weights.data[0] * len(theirs)))
        yield PeerRows(peer, rows, weights, theirs.astype(np.int64), summed)


def _all_alike(weights: csr_array) -> bool:
    """Whether there are several weights, and all are equal."""
    full = weights.nnz == weights.shape[0] * weights.shape[1] > 1
    return full and bool(np.ptp(weights.data) < 1e-12)


def shard_job(job: Job, num_ranks: int) -> Clusters:
    """The devices of each rank; devices that mix while they train stay together if that is fair.

    The cost of cutting a link is the number of steps of the first cycle that use it.
    """
    uses: dict[int, tuple[MixingMatrix, int, bool]] = {}
    for t in range(job.steps_per_cycle):
        step = job.step(t)
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
    return assign_to_ranks(csr_array(used), num_ranks, clusters_of(together))
