"""Assign devices to ranks: whole clusters if that is fair, and few links between ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, diags_array

from ssdfl.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from ssdfl.clusters.partition import Clusters, labels_of
from ssdfl.errors import check_range
from ssdfl.graph import slowest_mode
from ssdfl.lazy import LazyModule

if TYPE_CHECKING:
    import scipy.sparse.linalg as linalg
else:
    linalg = LazyModule("scipy.sparse.linalg")

UNFAIR = 1.5
_SLACK = 0.02
_CONSIDERED = 64
_MOST_CHANGES = 1000
_MANY, _MOST_ROUNDS, _QUICK = 2000, 30, 0.98

Change = tuple[float, float, tuple[int, ...], tuple[int, ...]]
"""Unfairness after it, growth of the cut, and the devices that leave and enter the first half."""


def assign_to_ranks(links: SparseMatrix, num_ranks: int, clusters: Clusters = ()) -> Clusters:
    """Divide devices evenly among ranks, with little link weight between ranks.

    Clusters stay whole unless there are too few of them, or one process would get more than 1.5
    times its share of devices. Ranks with adjacent numbers share the most links, since halves are
    halved.

    Args:
        links: (N, N) symmetric; the cost of cutting each link.

    Examples:
        >>> from ssdfl.graph import load_network
        >>> assign_to_ranks(load_network("cliques:cliques=3,size=2").adjacency, 2)
        ((0, 1, 2), (3, 4, 5))
        >>> assign_to_ranks(load_network("ring:n=6").adjacency, 2, ((0, 5), (1, 2), (3, 4)))
        ((0, 1, 2, 5), (3, 4))
    """
    N = links.shape[0]
    check_range("ranks", num_ranks, 1, N, "There cannot be more ranks than devices.")
    if num_ranks == 1:
        return (tuple(range(N)),)
    labels = np.arange(N)
    if len(clusters) >= num_ranks:
        of_cluster = labels_of(clusters, N)
        whole = _parts(*_contracted(links, of_cluster), num_ranks)[of_cluster]
        if np.bincount(whole).max() <= UNFAIR * N / num_ranks:
            return _in_order(whole)
    return _in_order(_parts(*_contracted(links, labels), num_ranks))


def _in_order(labels: IntArray) -> Clusters:
    """The devices of part 0, of part 1, and so on."""
    return tuple(tuple(np.flatnonzero(labels == part).tolist()) for part in range(labels.max() + 1))


def _contracted(links: SparseMatrix, labels: IntArray) -> tuple[SparseMatrix, FloatArray]:
    """Links between groups of devices, and the groups' sizes."""
    entries = links.tocoo()
    a, b, weight = labels[entries.row], labels[entries.col], entries.data.astype(float)
    apart = a != b
    n = int(labels.max()) + 1
    between = csr_array((weight[apart], (a[apart], b[apart])), shape=(n, n))
    return between, np.bincount(labels).astype(float)


def _parts(links: SparseMatrix, sizes: FloatArray, number: int) -> IntArray:
    """(n,) the part of each member, by recursive halving."""
    labels = np.zeros(len(sizes), dtype=np.int64)
    for first_part, members in _halving(links, sizes, np.arange(len(sizes)), 0, number):
        labels[members] = first_part
    return labels


def _halving(
    links: SparseMatrix, sizes: FloatArray, members: IntArray, part: int, number: int
) -> Iterator[tuple[int, IntArray]]:
    if number == 1:
        yield part, members
        return
    few = number // 2
    first = _Halves(links[members][:, members], sizes[members], few, number).improved()
    yield from _halving(links, sizes, members[first], part, few)
    yield from _halving(links, sizes, members[~first], part + few, number - few)


class _Halves:
    """A cut in two halves, improved by moving and swapping members like Kernighan and Lin."""

    def __init__(self, links: SparseMatrix, sizes: FloatArray, few: int, number: int) -> None:
        self.links, self.sizes = links, sizes
        self.target, self.slack = float(sizes.sum()) * few / number, _SLACK * float(sizes.sum())
        self.fewest = few, number - few
        order = _order(links)
        before = np.cumsum(sizes[order])
        counts = np.arange(few, len(sizes) - (number - few) + 1)
        self.first = np.zeros(len(sizes), dtype=bool)
        self.first[order[: counts[np.abs(before[counts - 1] - self.target).argmin()]]] = True

    def improved(self) -> BoolArray:
        """The first half, once no move or swap makes the halves fairer or the cut smaller."""
        for _ in range(_MOST_CHANGES):
            best = min(self._changes(), default=(0.0, 0.0, (), ()))
            if best[:2] >= (self._unfairness(0.0), -1e-9):
                break
            self.first[[*best[2], *best[3]]] ^= True
        alike = self.fewest[0] == self.fewest[1]
        return ~self.first if alike and not self.first[0] else self.first

    def _unfairness(self, moved: float) -> float:
        """How far the first half is from its share, beyond the slack, after ``moved`` more."""
        missed = abs(float(self.sizes[self.first].sum()) + moved - self.target)
        return round(max(0.0, missed - self.slack), 9)

    def _changes(self) -> Iterator[Change]:
        """Moves out of the first half and into it, and the best swap."""
        side = np.where(self.first, 1.0, -1.0)
        growth = side * (self.links @ side)
        leaving, entering = (self._promising(growth, who) for who in (self.first, ~self.first))
        if self.first.sum() > self.fewest[0]:
            yield from ((self._unfairness(-self.sizes[a]), growth[a], (a,), ()) for a in leaving)
        if (~self.first).sum() > self.fewest[1]:
            yield from ((self._unfairness(self.sizes[b]), growth[b], (), (b,)) for b in entering)
        if leaving and entering:
            yield self._best_swap(growth, leaving, entering)

    def _best_swap(self, growth: FloatArray, leaving: list[int], entering: list[int]) -> Change:
        between = self.links[leaving][:, entering].toarray()
        grown = growth[leaving][:, None] + growth[entering] + 2 * between
        moved = self.sizes[entering] - self.sizes[leaving][:, None]
        now = self.sizes[self.first].sum() - self.target
        unfair = np.round(np.maximum(0.0, np.abs(now + moved) - self.slack), 9)
        a, b = np.unravel_index(np.lexsort((grown.ravel(), unfair.ravel()))[0], grown.shape)
        return float(unfair[a, b]), float(grown[a, b]), (leaving[a],), (entering[b],)

    def _promising(self, growth: FloatArray, who: BoolArray) -> list[int]:
        """The members of a half whose leaving increases the cut least."""
        members = np.flatnonzero(who)
        few: list[int] = members[np.argsort(growth[members], kind="stable")[:_CONSIDERED]].tolist()
        return few


def _order(links: SparseMatrix) -> IntArray:
    """All members sorted by a Fiedler vector, or by a rough one if there are many."""
    degrees = np.maximum(np.asarray(links.sum(axis=1)).ravel(), 1e-12)
    fiedler = _rough_mode(links, degrees) if len(degrees) > _MANY else None
    if fiedler is None:
        half = links / (2 * degrees.max())
        fiedler = slowest_mode(csr_array(half + diags_array(1 - degrees / (2 * degrees.max()))))[1]
    return np.argsort(np.round(fiedler, 9), kind="stable")


def _rough_mode(links: SparseMatrix, degrees: FloatArray) -> FloatArray | None:
    """A few rounds of Lanczos on (I + D^{-½} A D^{-½}) / 2; None if they do not converge."""
    scale = diags_array(1 / np.sqrt(degrees))
    M: SparseMatrix = csr_array(0.5 * (scale @ links @ scale + diags_array(np.ones(len(degrees)))))
    try:
        values, vectors = linalg.eigsh(
            M, k=2, which="LA", v0=np.cos(np.arange(len(degrees))), maxiter=_MOST_ROUNDS, tol=1e-3
        )
    except linalg.ArpackNoConvergence:
        return None
    return vectors[:, int(values.argmin())] / np.sqrt(degrees) if values.min() < _QUICK else None
