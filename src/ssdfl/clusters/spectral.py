"""Algorithm 2, spectral partitioning, with what is known of each cluster computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ssdfl.arrays import IntArray
from ssdfl.clusters.partition import Cluster, Clusters, bisect
from ssdfl.graph import Conductance, Network, Spectrum, Weights, conductance, metropolis, spectrum


@dataclass(frozen=True, eq=False)
class ClusterFacts:
    """The spectrum of a cluster's mixing matrix Ã_s and its conductance."""

    spectrum: Spectrum
    conductance: Conductance


@dataclass(frozen=True)
class Split:
    """Two halves of a cluster and the smaller of their conductances (where inexact, the best cut's)."""

    cluster: Cluster
    halves: tuple[Cluster, Cluster]
    conductance: float


class ClusterCache:
    """Facts and best splits of clusters of one network: only what changed is computed again."""

    def __init__(self, network: Network, weights: Weights = metropolis) -> None:
        self.network, self.weights = network, weights
        self._facts: dict[Cluster, ClusterFacts] = {}
        self._splits: dict[Cluster, Split] = {}

    def links(self, devices: IntArray | Cluster) -> csr_array:
        """The links inside a set of devices, by position in it."""
        chosen = np.asarray(devices)
        return self.network.adjacency[chosen][:, chosen]

    def facts(self, cluster: Cluster) -> ClusterFacts:
        """A cluster's spectrum and conductance."""
        if cluster not in self._facts:
            W = self.weights(self.links(cluster))
            self._facts[cluster] = ClusterFacts(spectrum(W), conductance(W))
        return self._facts[cluster]

    def split(self, cluster: Cluster) -> Split:
        """The cut of a cluster along its Fiedler vector whose weaker half is strongest: Algorithm 2's loop.

        Halves of Φ = 0 (single devices, or not connected) cannot win; if there are no others, the cut of
        least conductance is taken instead.
        """
        if cluster not in self._splits:
            self._splits[cluster] = self._best_split(cluster)
        return self._splits[cluster]

    def _best_split(self, cluster: Cluster) -> Split:
        order = np.argsort(np.round(self.facts(cluster).spectrum.fiedler, 9), kind="stable")
        best: Split | None = None
        for ceiling, halves in self._promising_halves(np.array(cluster), order):
            if best is not None and ceiling <= best.conductance:
                break
            value = min(self.facts(half).conductance.upper for half in halves)
            if value > 0 and (best is None or value > best.conductance):
                best = Split(cluster, halves, value)
        return best or Split(cluster, bisect(self.network, cluster, self.weights), 0.0)

    def _promising_halves(
        self, devices: IntArray, order: IntArray
    ) -> list[tuple[float, tuple[Cluster, Cluster]]]:
        """Connected halves along an order, most promising first, each with an upper bound of Φ_n.

        No set conducts better than its weakest single device, so most halves need no exact conductance.
        """
        found = []
        for n in range(2, len(devices) - 1):
            halves = np.sort(devices[order[:n]]), np.sort(devices[order[n:]])
            ceiling = min(self._ceiling(half) for half in halves)
            if ceiling > 0:
                found.append((ceiling, (tuple(halves[0].tolist()), tuple(halves[1].tolist()))))
        return sorted(found, key=lambda item: -item[0])

    def _ceiling(self, devices: IntArray) -> float:
        links = self.links(devices)
        if connected_components(links, directed=False)[0] > 1:
            return 0.0
        return float((1.0 - self.weights(links).diagonal()).min())


def partition_once(cache: ClusterCache, clusters: Clusters, threshold: float) -> tuple[Clusters, Split, str]:
    """Algorithm 2: split the cluster of least conductance whose halves pass the threshold, or the least one.

    Returns:
        The new clusters, the split, and the rule: ``threshold``, or ``weakest`` if no split passed.
    """
    queue = sorted(
        (cluster for cluster in clusters if len(cluster) > 1),
        key=lambda cluster: (cache.facts(cluster).conductance.upper, cluster),
    )
    passing = (split for cluster in queue if (split := cache.split(cluster)).conductance >= threshold)
    chosen = next(passing, None)
    split = chosen or cache.split(queue[0])
    rest = [cluster for cluster in clusters if cluster != split.cluster]
    return tuple(sorted([*rest, *split.halves])), split, "threshold" if chosen else "weakest"
