"""Algorithm 2, spectral partitioning, with what is known of each cluster computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.clusters.partition import Cluster, Clusters, bisect
from ssdfl.graph import (
    TABLE_LIMIT,
    Conductance,
    MixingMatrix,
    Network,
    Weights,
    conductance,
    metropolis,
    prefix_conductance,
    slowest_mode,
    smallest_eigenvalue,
)


@dataclass(frozen=True)
class Budget:
    """What may be left out to be fast; nothing by default.

    Attributes:
        table_limit: how large a table exact conductance may take; beyond, it is an interval.
        prefixes: how many cuts along a Fiedler vector to try; beyond, those of least cut conductance
            among the balanced ones.
    """

    table_limit: int = TABLE_LIMIT
    prefixes: int | None = None


@dataclass(frozen=True, eq=False)
class ClusterFacts:
    """A cluster's slowest mode of mixing and its conductance."""

    lambda_2: float
    fiedler: FloatArray
    conductance: Conductance


@dataclass(frozen=True)
class Split:
    """Two halves of a cluster and the smaller of their conductances (where inexact, the best cut's)."""

    cluster: Cluster
    halves: tuple[Cluster, Cluster]
    conductance: float


class ClusterCache:
    """Facts and best splits of clusters of one network: only what changed is computed again.

    Attributes:
        skipped_prefixes: how many cuts were left out for the budget so far.
    """

    def __init__(self, network: Network, weights: Weights = metropolis, budget: Budget | None = None) -> None:
        self.network, self.weights, self.budget = network, weights, budget or Budget()
        self.skipped_prefixes = 0
        self._facts: dict[Cluster, ClusterFacts] = {}
        self._splits: dict[Cluster, Split] = {}
        self._lambda_min: dict[Cluster, float] = {}

    def links(self, devices: IntArray | Cluster) -> csr_array:
        """The links inside a set of devices, by position in it."""
        chosen = np.asarray(devices)
        return self.network.adjacency[chosen][:, chosen]

    def mixing(self, cluster: Cluster) -> MixingMatrix:
        """Ã_s."""
        return self.weights(self.links(cluster))

    def facts(self, cluster: Cluster) -> ClusterFacts:
        """A cluster's slowest mode and conductance."""
        if cluster not in self._facts:
            W = self.mixing(cluster)
            mode = slowest_mode(W)
            self._facts[cluster] = ClusterFacts(*mode, conductance(W, self.budget.table_limit, mode))
        return self._facts[cluster]

    def lambda_min(self, cluster: Cluster) -> float:
        """λ_N(Ã_s)."""
        if cluster not in self._lambda_min:
            self._lambda_min[cluster] = smallest_eigenvalue(self.mixing(cluster))
        return self._lambda_min[cluster]

    def weakest(self, clusters: Clusters) -> Conductance:
        """The least conductance of clusters, with the cut of the weakest one in device ids."""
        known = [(self.facts(cluster).conductance, cluster) for cluster in clusters]
        weakest, cluster = min(known, key=lambda item: item[0].upper)
        lower = min(found.lower for found, _ in known)
        return Conductance(lower, weakest.upper, tuple(cluster[k] for k in weakest.cut))

    def split(self, cluster: Cluster) -> Split:
        """The cut of a cluster along its Fiedler vector whose weaker half is strongest: Algorithm 2's loop.

        Halves of Φ = 0 (single devices, or not connected) cannot win; if there are no others, the cut of
        least conductance is taken instead.
        """
        if cluster not in self._splits:
            self._splits[cluster] = self._best_split(cluster)
        return self._splits[cluster]

    def _best_split(self, cluster: Cluster) -> Split:
        fiedler = self.facts(cluster).fiedler
        order = np.argsort(np.round(fiedler, 9), kind="stable")
        best: Split | None = None
        for ceiling, halves in self._promising_halves(cluster, order):
            if best is not None and ceiling <= best.conductance:
                break
            value = min(self.facts(half).conductance.upper for half in halves)
            if value > 0 and (best is None or value > best.conductance):
                best = Split(cluster, halves, value)
        if best is None:
            best = Split(cluster, bisect(cluster, self.mixing(cluster), fiedler), 0.0)
        return best

    def _promising_halves(
        self, cluster: Cluster, order: IntArray
    ) -> list[tuple[float, tuple[Cluster, Cluster]]]:
        """Connected halves along an order, most promising first, each with an upper bound of Φ_n.

        No set conducts better than its weakest single device, so most halves need no exact conductance.
        """
        devices = np.array(cluster)
        found = []
        for n in self._prefixes(cluster, order):
            halves = np.sort(devices[order[:n]]), np.sort(devices[order[n:]])
            ceiling = min(self._ceiling(half) for half in halves)
            if ceiling > 0:
                found.append((ceiling, (tuple(halves[0].tolist()), tuple(halves[1].tolist()))))
        return sorted(found, key=lambda item: -item[0])

    def _prefixes(self, cluster: Cluster, order: IntArray) -> list[int]:
        """How many devices the first half may have: any number but one, or as many of these as the budget."""
        n = len(cluster)
        every = range(2, n - 1)
        if self.budget.prefixes is None or len(every) <= self.budget.prefixes:
            return list(every)
        balanced = np.arange(max(2, n // 4), n - max(2, n // 4) + 1)
        value = prefix_conductance(self.mixing(cluster), order)[balanced - 1]
        least = np.argsort(value, kind="stable")[: self.budget.prefixes]
        self.skipped_prefixes += len(every) - len(least)
        return sorted(int(n) for n in balanced[least])

    def _ceiling(self, devices: IntArray) -> float:
        links = self.links(devices)
        if connected_components(links, directed=False)[0] > 1:
            return 0.0
        return float((1.0 - self.weights(links).diagonal()).min())


def partitions(
    cache: ClusterCache, threshold: Callable[[int], float]
) -> Iterator[tuple[Clusters, Cluster, str]]:
    """Algorithm 2, repeated: partitions into 1, 2, … N clusters.

    Each time the cluster of least conductance whose halves pass the threshold is split, or, if there is
    none, the one of least conductance.

    Args:
        threshold: Φ_min(S), which must not rise with S.

    Yields:
        The clusters, the cluster that was split to make them (empty for the first), and the rule:
        ``start``, ``threshold``, or ``weakest`` if no split passed.
    """
    clusters: set[Cluster] = set()
    passing: list[tuple[float, Cluster]] = []
    failing: list[tuple[float, float, Cluster]] = []
    weakest: list[tuple[float, Cluster]] = []

    def add(cluster: Cluster) -> None:
        clusters.add(cluster)
        if len(cluster) > 1:
            Φ = cache.facts(cluster).conductance.upper
            heappush(weakest, (Φ, cluster))
            heappush(failing, (-cache.split(cluster).conductance, Φ, cluster))

    add(tuple(range(cache.network.num_devices)))
    split: Cluster = ()
    rule = "start"
    while True:
        yield tuple(sorted(clusters)), split, rule
        Φ_min = threshold(len(clusters))
        while failing and -failing[0][0] >= Φ_min:
            _, Φ, cluster = heappop(failing)
            heappush(passing, (Φ, cluster))
        rule = "threshold" if _first_left(passing, clusters) else "weakest"
        queue = passing if rule == "threshold" else weakest
        if not _first_left(queue, clusters):
            return
        split = heappop(queue)[1]
        clusters.remove(split)
        for half in cache.split(split).halves:
            add(half)


def _first_left(queue: list[tuple[float, Cluster]], clusters: set[Cluster]) -> bool:
    """Drop clusters from the front of a queue that were split meanwhile; whether one is left."""
    while queue and queue[0][1] not in clusters:
        heappop(queue)
    return bool(queue)
