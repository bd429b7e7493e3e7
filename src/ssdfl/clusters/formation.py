"""Algorithm 1, cluster formation: a candidate of every size from 1 to N, and the best feasible one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ssdfl.clusters.heterogeneity import Device, amplification
from ssdfl.clusters.partition import Cluster, Clusters
from ssdfl.clusters.spectral import ClusterCache, partition_once
from ssdfl.errors import InputError
from ssdfl.graph import Conductance, Network, Weights, links_of, metropolis
from ssdfl.theory import Constants, conductance_threshold, stationarity_bound


@dataclass(frozen=True)
class Candidate:
    """One partition that formation passed through.

    Attributes:
        clusters: its clusters.
        score: H(S), lower is better; infinite where Theorem 1 says nothing.
        threshold: Φ_min(S).
        min_conductance: the least conductance of its clusters, a value or an interval.
        split: the cluster that was split to make it; empty for the first.
        rule: ``start``; ``threshold`` if both halves passed Φ_min; ``weakest`` if no split did.
    """

    clusters: Clusters
    score: float
    threshold: float
    min_conductance: Conductance
    split: Cluster
    rule: str

    @property
    def num_clusters(self) -> int:
        """S."""
        return len(self.clusters)

    @property
    def feasible(self) -> bool:
        """Whether every cluster certainly has the conductance that the threshold asks for."""
        return self.min_conductance.lower >= self.threshold


@dataclass(frozen=True)
class FormationSettings:
    """How to form clusters."""

    constants: Constants = field(default_factory=Constants)
    weights: Weights = metropolis
    with_tau_a: bool = False


def form_candidates(
    network: Network, devices: Sequence[Device], settings: FormationSettings
) -> list[Candidate]:
    """Every partition that Algorithm 1 passes through, literally and deterministically.

    Raises:
        InputError: there are not as many descriptors as devices.
    """
    n = network.num_devices
    if len(devices) != n:
        raise InputError(
            "number of device descriptors", len(devices), f"{n}, one per device", "List them all."
        )
    cache = ClusterCache(network, settings.weights)
    scores: dict[Cluster, float] = {}
    clusters: Clusters = (tuple(range(n)),)
    split: Cluster = ()
    rule = "start"
    found: list[Candidate] = []
    while True:
        for cluster in clusters:
            if cluster not in scores:
                scores[cluster] = _stationarity(cache, cluster, devices, settings.constants)
        threshold = conductance_threshold(settings.constants, n, len(clusters), settings.with_tau_a)
        score = math.fsum(scores[cluster] for cluster in clusters) / len(clusters)
        found.append(Candidate(clusters, score, threshold, _weakest(cache, clusters), split, rule))
        if len(clusters) == n:
            return found
        clusters, chosen, rule = partition_once(cache, clusters, threshold)
        split = chosen.cluster


def _stationarity(
    cache: ClusterCache, cluster: Cluster, devices: Sequence[Device], constants: Constants
) -> float:
    """A cluster's summand of H(S): Theorem 1's bound with its heterogeneity α_s."""
    i, j, _ = links_of(cache.links(cluster))
    α = amplification([devices[device] for device in cluster], np.stack([i, j], axis=1))
    return stationarity_bound(constants, cache.facts(cluster).spectrum.lambda_N, len(cluster), α)


def _weakest(cache: ClusterCache, clusters: Clusters) -> Conductance:
    known = [(cache.facts(cluster).conductance, cluster) for cluster in clusters]
    weakest, cluster = min(known, key=lambda item: item[0].upper)
    lower = min(found.lower for found, _ in known)
    return Conductance(lower, weakest.upper, tuple(cluster[k] for k in weakest.cut))


def choose(candidates: Sequence[Candidate]) -> Candidate:
    """The feasible candidate of least score; where none is feasible, the one nearest to its threshold."""
    feasible = [candidate for candidate in candidates if candidate.feasible]
    if feasible:
        return min(feasible, key=lambda c: (c.score, c.num_clusters))
    return max(candidates, key=lambda c: (c.min_conductance.lower - c.threshold, -c.num_clusters))
