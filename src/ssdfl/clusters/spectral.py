"""Algorithm 2 (`alg:spectral_routine`): repeated splits of a network along Fiedler vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

import numpy as np

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.clusters.cluster_cache import ClusterCache, Pair
from ssdfl.clusters.partition import Cluster, Clusters, halves_of
from ssdfl.graph import DENSE_LIMIT

_TIE = 1e-12
_LEAST = 4  # devices of a cluster whose halves both have several
# Minus its conductance, its imbalance, and devices of its first half: worse than any split.
_NO_SPLIT = (math.inf, 0, 0)
_NO_HALVES: Pair = ((), ())


@dataclass(frozen=True)
class Split:
    """A cluster's two halves and the smaller of their conductances (if inexact, the best cut's).

    Attributes:
        skipped_prefixes: the number of cuts left out for the budget.
        inexact: halves weighed by the best cut found instead of their conductance.
    """

    cluster: Cluster
    halves: Pair
    conductance: float
    skipped_prefixes: int = 0
    inexact: frozenset[Cluster] = frozenset()


@dataclass(frozen=True, eq=False)
class _Ordered:
    """A cluster's devices along its Fiedler vector, and the sizes of the first half to try."""

    cluster: Cluster
    devices: IntArray
    prefixes: list[int]

    @property
    def skipped_prefixes(self) -> int:
        """The number of cuts left out for the budget."""
        return max(len(self.cluster) - _LEAST + 1, 0) - len(self.prefixes)

    def halves(self, n: int) -> Pair:
        """The first n devices and the rest."""
        first, rest = np.sort(self.devices[:n]), np.sort(self.devices[n:])
        return tuple(first.tolist()), tuple(rest.tolist())


class Splits:
    """The best splits of clusters (Algorithm 2), each computed once.

    A cluster's halves do not depend on the order of splits, and in the end nearly all are split
    further. So once the split of a small cluster is needed, the splits of all its parts are
    computed, and those of parts of the same generation together.
    """

    def __init__(self, cache: ClusterCache) -> None:
        self.cache = cache
        self._found: dict[Cluster, Split] = {}
        self._asked: dict[Cluster, Split] = {}

    @property
    def skipped_prefixes(self) -> int:
        """The number of cuts left out for the budget, in all splits asked for."""
        return sum(split.skipped_prefixes for split in self._asked.values())

    @property
    def inexact_halves(self) -> int:
        """The number of halves weighed by the best cut found instead of their conductance."""
        return len({half for split in self._asked.values() for half in split.inexact})

    def __call__(self, cluster: Cluster) -> Split:
        """The cut along a cluster's Fiedler vector whose weaker half is strongest (Algorithm 2).

        Halves of Φ = 0 (single devices, or not connected) cannot win. If there are no others, the
        cut of lowest conductance is used instead.
        """
        if cluster not in self._asked:
            if cluster not in self._found:
                self._look_ahead(cluster)
            self._asked[cluster] = self._found.pop(cluster)
        return self._asked[cluster]

    def _look_ahead(self, cluster: Cluster) -> None:
        """Find the split of a cluster and, if it is small, the splits of all its parts."""
        waiting = [cluster]
        while waiting:
            found = self._best_splits(waiting)
            self._found.update(zip(waiting, found, strict=True))
            is_small = len(cluster) <= DENSE_LIMIT
            halves = [half for split in found for half in split.halves] if is_small else []
            waiting = [half for half in halves if len(half) > 1]

    def _best_splits(self, clusters: list[Cluster]) -> list[Split]:
        """The best splits of disjoint clusters."""
        self.cache.find_modes(clusters)
        self.cache.find_small(clusters)
        ordered = self._in_order(clusters)
        self.cache.find_cuts(_rounds(ordered))
        found = list(map(self._best_split, ordered))
        without = [k for k, split in enumerate(found) if split.halves == _NO_HALVES]
        for k, halves in zip(without, self._bisected([clusters[k] for k in without]), strict=True):
            found[k] = replace(found[k], halves=halves)
        return found

    def _bisected(self, clusters: list[Cluster]) -> list[Pair]:
        """The halves of clusters by the cuts of lowest conductance along Fiedler vectors."""
        if not clusters:
            return []
        halves = halves_of(self.cache.blocks(clusters), self._fiedler(clusters))
        return [(tuple(first.tolist()), tuple(rest.tolist())) for first, rest in halves]

    def _in_order(self, clusters: Sequence[Cluster]) -> list[_Ordered]:
        """The devices of clusters along their Fiedler vectors, and where to cut."""
        blocks = self.cache.blocks(clusters)
        order = blocks.order(self._fiedler(clusters))
        devices, values = blocks.devices[order], blocks.prefixes(order)
        places = map(blocks.places, range(len(clusters)))
        return [
            _Ordered(cluster, devices[place], self._prefixes(values[place]))
            for cluster, place in zip(clusters, places, strict=True)
        ]

    def _fiedler(self, clusters: Sequence[Cluster]) -> FloatArray:
        return np.concatenate([self.cache.mode(cluster)[1] for cluster in clusters])

    def _prefixes(self, values: FloatArray) -> list[int]:
        """The sizes of the first half to try: 2 to n − 2, or as many as the budget allows."""
        n = len(values)
        every = range(2, n - 1)
        most = self.cache.budget.prefixes
        if most is None or len(every) <= most:
            return list(every)
        balanced = np.arange(max(2, n // 4), n - max(2, n // 4) + 1)
        least = np.argsort(values[balanced - 1], kind="stable")[:most]
        return sorted(int(n) for n in balanced[least])

    def _best_split(self, ordered: _Ordered) -> Split:
        """Best-first search: each cut has an upper bound, made exact only at the front.

        The bounds on a half's conductance are, in this order: its weakest single device, the cut
        along its Fiedler vector, the best cut of a short search, and the conductance itself. Ties
        go to the most balanced cut.
        """
        cache, halves = self.cache, {n: ordered.halves(n) for n in ordered.prefixes}
        bounds = (cache.weakest_device, cache.fiedler_cut, cache.quick_cut, self._final_cut)
        first = [(-_least(bounds[0], halves[n]), 0, n) for n in halves]
        queue = [entry for entry in first if entry[0] < 0]
        heapify(queue)
        best, weighed = _NO_SPLIT, list[Cluster]()
        while queue and -queue[0][0] >= -best[0] - _TIE:
            _, level, n = heappop(queue)
            value = _least(bounds[level + 1], halves[n])
            if level + 2 < len(bounds):
                heappush(queue, (-value, level + 1, n))
                continue
            weighed.extend(halves[n])
            if value > 0:
                best = min(best, (-round(value, 12), abs(2 * n - len(ordered.cluster)), n))
        chosen = halves.get(best[2], _NO_HALVES)
        value = _least(self._final_cut, chosen) if chosen != _NO_HALVES else 0.0
        inexact = frozenset(half for half in weighed if not cache.conductance(half).exact)
        return Split(ordered.cluster, chosen, value, ordered.skipped_prefixes, inexact)

    def _final_cut(self, half: Cluster) -> float:
        """Φ or, if even the long search does not end, the conductance of the best cut."""
        return self.cache.conductance(half).upper


def _least(bound: Callable[[Cluster], float], halves: Pair) -> float:
    return min(map(bound, halves))


def _rounds(ordered: Sequence[_Ordered]) -> list[list[Pair]]:
    """The first cut of each cluster, then the second of those that have one, and so on."""
    most = max(len(one.prefixes) for one in ordered)
    return [
        [one.halves(one.prefixes[k]) for one in ordered if k < len(one.prefixes)]
        for k in range(most)
    ]


def repeated_splits(
    splits: Splits, threshold: Callable[[int], float], sizes: Collection[int]
) -> Iterator[tuple[Clusters, Cluster, str]]:
    """Algorithm 2 (`alg:spectral_routine`), repeated: partitions into 1, 2, … N clusters.

    Each step splits the cluster of lowest conductance whose halves pass the threshold. If there is
    none, it splits the cluster of lowest conductance.

    Args:
        threshold: Φ_min(S), which must not rise with S.
        sizes: the numbers of clusters at which partitions are wanted.

    Yields:
        The clusters, the cluster that was split to make them (empty for the first), and the rule:
        ``start``, ``threshold``, or ``weakest`` if no split passed.
    """
    queue = _SplitQueue(splits)
    queue.add(tuple(range(splits.cache.network.num_devices)))
    split: Cluster = ()
    rule = "start"
    wanted = set(sizes)
    for size in range(1, max(wanted) + 1):
        if size > 1:
            split, rule = queue.next_to_split(threshold(size - 1))
            queue.replace(split, splits(split).halves)
        if size in wanted:
            yield tuple(sorted(queue.clusters)), split, rule


class _SplitQueue:
    """A queue of clusters to split.

    Attributes:
        clusters: the current clusters.
    """

    def __init__(self, splits: Splits) -> None:
        self.clusters: set[Cluster] = set()
        self._splits = splits
        self._passing: list[tuple[float, Cluster]] = []
        self._failing: list[tuple[float, float, Cluster]] = []
        self._weakest: list[tuple[float, Cluster]] = []

    def add(self, cluster: Cluster) -> None:
        """Add a cluster to the queue."""
        self.clusters.add(cluster)
        if len(cluster) > 1:
            split = self._splits(cluster)  # first: it finds the conductances of small clusters
            Φ = self._splits.cache.conductance(cluster).upper
            heappush(self._weakest, (Φ, cluster))
            heappush(self._failing, (-split.conductance, Φ, cluster))

    def replace(self, cluster: Cluster, halves: tuple[Cluster, Cluster]) -> None:
        """Replace a cluster by its two halves."""
        self.clusters.remove(cluster)
        for half in halves:
            self.add(half)

    def next_to_split(self, threshold: float) -> tuple[Cluster, str]:
        """The cluster to split next, and why; there must be one of several devices."""
        while self._failing and -self._failing[0][0] >= threshold:
            _, Φ, cluster = heappop(self._failing)
            heappush(self._passing, (Φ, cluster))
        for queue in (self._passing, self._weakest):
            self._drop_split(queue)
        if self._passing:
            return self._passing[0][1], "threshold"
        return self._weakest[0][1], "weakest"

    def _drop_split(self, queue: list[tuple[float, Cluster]]) -> None:
        """Drop clusters from the front of a queue that have already been split."""
        while queue and queue[0][1] not in self.clusters:
            heappop(queue)
