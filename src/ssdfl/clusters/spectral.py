"""Algorithm 2 (`alg:spectral_routine`), with a cache of facts about clusters."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from ssdfl.arrays import FloatArray, IntArray, SparseMatrix
from ssdfl.clusters.partition import Cluster, Clusters, bisect
from ssdfl.graph import (
    STATE_LIMIT,
    Blocks,
    Conductance,
    MixingMatrix,
    Network,
    Weights,
    conductance,
    links_inside,
    make_blocks,
    metropolis,
    num_components,
    prefix_conductance,
    slowest_mode,
    smallest_eigenvalue,
)

_TIE = 1e-12
_CERTAIN = 1e-6  # Lanczos finds λ₂ to about 1e-7
# Minus its conductance, its imbalance, and devices of its first half: worse than any split.
_NO_SPLIT = (math.inf, 0, 0)


@dataclass(frozen=True)
class Budget:
    """Limits on the work; unlimited by default.

    Attributes:
        state_limit: the most states in the search for a cluster's exact conductance; beyond that,
            the conductance is an interval.
        half_limit: the same limit for halves at first; halves that reach the front are searched
            longer.
        prefixes: the most cuts along a Fiedler vector to try; beyond that, the balanced ones of
            lowest cut conductance.
    """

    state_limit: int = STATE_LIMIT
    half_limit: int = STATE_LIMIT >> 5
    prefixes: int | None = None


@dataclass(frozen=True)
class Split:
    """A cluster's two halves and the smaller of their conductances (if inexact, the best cut's)."""

    cluster: Cluster
    halves: tuple[Cluster, Cluster]
    conductance: float


class ClusterCache:
    """A cache of facts and best splits of clusters of one network.

    Attributes:
        skipped_prefixes: the number of cuts left out for the budget so far.
    """

    def __init__(
        self, network: Network, weights: Weights = metropolis, budget: Budget | None = None
    ) -> None:
        self.network, self.weights, self.budget = network, weights, budget or Budget()
        self.skipped_prefixes = 0
        self._mixings: dict[Cluster, MixingMatrix] = {}
        self._blocks_with: dict[Cluster, tuple[Blocks, int]] = {}
        self._modes: dict[Cluster, tuple[float, FloatArray]] = {}
        self._quick: dict[Cluster, Conductance] = {}
        self._inexact_halves: set[Cluster] = set()
        self._conductances: dict[Cluster, Conductance] = {}
        self._splits: dict[Cluster, Split] = {}
        self._lambda_min: dict[Cluster, float] = {}

    @property
    def inexact_halves(self) -> int:
        """The number of halves weighed by the best cut found instead of their conductance."""
        return len(self._inexact_halves)

    def links(self, devices: IntArray | Cluster) -> SparseMatrix:
        """The links inside a set of devices, by position in it."""
        return links_inside(self.network.adjacency, np.asarray(devices))

    def mixing(self, cluster: Cluster) -> MixingMatrix:
        """Ã_s."""
        if cluster not in self._mixings:
            blocks, number = self._blocks_with.get(cluster, (None, 0))
            self._mixings[cluster] = (
                blocks.matrix(number) if blocks else self.weights(self.links(cluster))
            )
        return self._mixings[cluster]

    def conductance(self, cluster: Cluster) -> Conductance:
        """Φ(Ã_s), as exact as the budget allows."""
        if cluster not in self._conductances:
            found = self._quick.get(cluster)
            if found is None or not found.exact:
                found = conductance(
                    self.mixing(cluster), self.budget.state_limit, self.mode(cluster)
                )
            self._conductances[cluster] = found
        return self._conductances[cluster]

    def mode(self, cluster: Cluster) -> tuple[float, FloatArray]:
        """λ₂(Ã_s) and the Fiedler vector."""
        if cluster not in self._modes:
            self._modes[cluster] = slowest_mode(self.mixing(cluster))
        return self._modes[cluster]

    def lambda_min(self, cluster: Cluster) -> float:
        """λ_N(Ã_s)."""
        if cluster not in self._lambda_min:
            self._lambda_min[cluster] = smallest_eigenvalue(self.mixing(cluster))
        return self._lambda_min[cluster]

    def weakest(self, clusters: Clusters) -> Conductance:
        """The lowest conductance of clusters, with the cut of the weakest one in device ids.

        If a device is alone in a cluster, it is 0.
        """
        if min(len(cluster) for cluster in clusters) == 1:
            return Conductance(0.0, 0.0, ())
        known = self._weakest_few(clusters)
        number = min(known, key=lambda k: (known[k].upper, k))
        weakest, cluster = known[number], clusters[number]
        lower = min(found.lower for found in known.values())
        return Conductance(lower, weakest.upper, tuple(cluster[k] for k in weakest.cut))

    def _weakest_few(self, clusters: Clusters) -> dict[int, Conductance]:
        """The conductances of clusters that may have the lowest, by the number of the cluster.

        By Cheeger's inequality Φ is at least (1 − λ₂) / 2: clusters that mix well need no search.
        """
        self._find_modes(clusters)
        least = np.array([(1 - self._modes[cluster][0]) / 2 for cluster in clusters])
        known: dict[int, Conductance] = {}
        best = math.inf
        for number in np.argsort(least, kind="stable").tolist():
            if least[number] > best * (1 + _CERTAIN) + _CERTAIN:
                break
            known[number] = self.conductance(clusters[number])
            best = min(best, known[number].upper)
        return known

    def find_spectra(self, clusters: Sequence[Cluster]) -> None:
        """Compute what is not known yet of `mode` and `lambda_min`, of all clusters together."""
        self._find_modes(clusters)
        missing = [cluster for cluster in clusters if cluster not in self._lambda_min]
        if missing:
            found = self._blocks(missing).smallest.tolist()
            self._lambda_min.update(zip(missing, found, strict=True))

    def _blocks(self, clusters: Sequence[Cluster]) -> Blocks:
        """The mixing inside disjoint clusters."""
        return make_blocks(self.network.adjacency, list(map(np.array, clusters)), self.weights)

    def _find_modes(self, clusters: Sequence[Cluster]) -> None:
        """Compute what is not known yet of `mode`, of all clusters together."""
        missing = [cluster for cluster in clusters if cluster not in self._modes]
        if not missing:
            return
        blocks = self._blocks(missing)
        lambda_2, fiedler = blocks.slowest
        for number, cluster in enumerate(missing):
            self._modes[cluster] = float(lambda_2[number]), fiedler[blocks.places(number)]
        # Only these: their mixing is asked for next, and thousands of earlier ones need memory.
        self._blocks_with = {cluster: (blocks, number) for number, cluster in enumerate(missing)}

    def split(self, cluster: Cluster) -> Split:
        """The cut along a cluster's Fiedler vector whose weaker half is strongest (Algorithm 2).

        Halves of Φ = 0 (single devices, or not connected) cannot win. If there are no others, the
        cut of lowest conductance is used instead.
        """
        if cluster not in self._splits:
            self._splits[cluster] = self._best_split(cluster)
        return self._splits[cluster]

    def _best_split(self, cluster: Cluster) -> Split:
        """Best-first search: each cut has an upper bound, made exact only at the front.

        The bounds on a half's conductance are, in this order: its weakest single device, the cut
        along its Fiedler vector, the best cut of a short search, and the conductance itself. Ties
        go to the most balanced cut.
        """
        bounds = (self._weakest_device, self._fiedler_cut, self._quick_cut, self._final_cut)
        _, fiedler = self.mode(cluster)
        devices = np.array(cluster)[np.argsort(np.round(fiedler, 9), kind="stable")]
        queue = [
            (-bound, 0, n)
            for n in self._prefixes(cluster, devices)
            if (bound := self._least(bounds[0], devices, n)) > 0
        ]
        heapify(queue)
        best = _NO_SPLIT
        while queue and -queue[0][0] >= -best[0] - _TIE:
            _, level, n = heappop(queue)
            value = self._least(bounds[level + 1], devices, n)
            if level + 2 < len(bounds):
                heappush(queue, (-value, level + 1, n))
            elif value > 0:
                best = min(best, (-round(value, 12), abs(2 * n - len(devices)), n))
        if best == _NO_SPLIT:
            return Split(cluster, bisect(cluster, self.mixing(cluster), fiedler), 0.0)
        halves = _halves(devices, best[2])
        return Split(cluster, halves, min(map(self._final_cut, halves)))

    def _least(self, bound: Callable[[Cluster], float], devices: IntArray, n: int) -> float:
        return min(bound(half) for half in _halves(devices, n))

    def _quick_cut(self, half: Cluster) -> float:
        """The conductance of the best cut that a short search finds."""
        if half not in self._quick:
            self._quick[half] = conductance(
                self.mixing(half), self.budget.half_limit, self.mode(half)
            )
        return self._quick[half].upper

    def _final_cut(self, half: Cluster) -> float:
        """Φ or, if even the long search does not end, the conductance of the best cut."""
        found = self.conductance(half)
        if not found.exact:
            self._inexact_halves.add(half)
        return found.upper

    def _weakest_device(self, half: Cluster) -> float:
        W = self.mixing(half)
        if num_components(W) > 1:
            return 0.0
        return float((1.0 - W.diagonal()).min())

    def _fiedler_cut(self, half: Cluster) -> float:
        order = np.argsort(np.round(self.mode(half)[1], 9), kind="stable")
        return float(prefix_conductance(self.mixing(half), order).min())

    def _prefixes(self, cluster: Cluster, devices: IntArray) -> list[int]:
        """The sizes of the first half to try: 2 to n − 2, or as many as the budget allows."""
        n = len(cluster)
        every = range(2, n - 1)
        if self.budget.prefixes is None or len(every) <= self.budget.prefixes:
            return list(every)
        balanced = np.arange(max(2, n // 4), n - max(2, n // 4) + 1)
        order = np.searchsorted(np.array(cluster), devices)
        value = prefix_conductance(self.mixing(cluster), order)[balanced - 1]
        least = np.argsort(value, kind="stable")[: self.budget.prefixes]
        self.skipped_prefixes += len(every) - len(least)
        return sorted(int(n) for n in balanced[least])


def _halves(devices: IntArray, n: int) -> tuple[Cluster, Cluster]:
    return tuple(np.sort(devices[:n]).tolist()), tuple(np.sort(devices[n:]).tolist())


def repeated_splits(
    cache: ClusterCache, threshold: Callable[[int], float], sizes: Collection[int]
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
    queue = _SplitQueue(cache)
    queue.add(tuple(range(cache.network.num_devices)))
    split: Cluster = ()
    rule = "start"
    wanted = set(sizes)
    for size in range(1, max(wanted) + 1):
        if size > 1:
            split, rule = queue.next_to_split(threshold(size - 1))
            queue.replace(split, cache.split(split).halves)
        if size in wanted:
            yield tuple(sorted(queue.clusters)), split, rule


class _SplitQueue:
    """A queue of clusters to split.

    Attributes:
        clusters: the current clusters.
    """

    def __init__(self, cache: ClusterCache) -> None:
        self.clusters: set[Cluster] = set()
        self._cache = cache
        self._passing: list[tuple[float, Cluster]] = []
        self._failing: list[tuple[float, float, Cluster]] = []
        self._weakest: list[tuple[float, Cluster]] = []

    def add(self, cluster: Cluster) -> None:
        """Add a cluster to the queue."""
        self.clusters.add(cluster)
        if len(cluster) > 1:
            Φ = self._cache.conductance(cluster).upper
            heappush(self._weakest, (Φ, cluster))
            heappush(self._failing, (-self._cache.split(cluster).conductance, Φ, cluster))

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
