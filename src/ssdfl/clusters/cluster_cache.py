"""A cache of facts about clusters of one network."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from scipy.sparse import block_diag

from ssdfl.arrays import FloatArray, IntArray, SparseMatrix
from ssdfl.clusters.partition import Cluster, Clusters
from ssdfl.graph import (
    ENUMERATION_LIMIT,
    STATE_LIMIT,
    Blocks,
    Conductance,
    ConductanceSearch,
    MixingMatrix,
    Network,
    Weights,
    links_inside,
    make_blocks,
    metropolis,
    prefix_conductance,
    small_conductances,
    smallest_eigenvalue,
)

Pair = tuple[Cluster, Cluster]
"""The two halves of a cluster."""

_CERTAIN = 1e-6  # Lanczos finds λ₂ to about 1e-7
_COPIES = 3  # of the network, so that overlapping halves are examined together
_KEPT = 3  # latest blocks
_SMALL = 24  # devices of halves whose modes are found before they are asked for
_AHEAD = 64  # clusters whose conductances are found together


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


class ClusterCache:
    """Facts about clusters, each computed once, and those of many small clusters together."""

    def __init__(
        self, network: Network, weights: Weights = metropolis, budget: Budget | None = None
    ) -> None:
        self.network, self.weights, self.budget = network, weights, budget or Budget()
        # Only these: their mixing is asked for next, and thousands of earlier ones need memory.
        self._latest: deque[tuple[dict[Cluster, int], Blocks]] = deque(maxlen=_KEPT)
        self._mixings: dict[Cluster, MixingMatrix] = {}
        self._modes: dict[Cluster, tuple[float, FloatArray]] = {}
        self._weakest_device: dict[Cluster, float] = {}
        self._fiedler_cut: dict[Cluster, float] = {}
        self._quick: dict[Cluster, Conductance] = {}
        self._searches: dict[Cluster, ConductanceSearch] = {}
        self._conductances: dict[Cluster, Conductance] = {}
        self._lambda_min: dict[Cluster, float] = {}

    def mixing(self, cluster: Cluster) -> MixingMatrix:
        """Ã_s."""
        if cluster not in self._mixings:
            self._mixings[cluster] = self._mixing(cluster)
        return self._mixings[cluster]

    def _mixing(self, cluster: Cluster) -> MixingMatrix:
        for numbers, blocks in self._latest:
            if cluster in numbers:
                return blocks.matrix(numbers[cluster])
        return self.weights(links_inside(self.network.adjacency, np.array(cluster)))

    def conductance(self, cluster: Cluster) -> Conductance:
        """Φ(Ã_s), as exact as the budget allows."""
        if cluster not in self._conductances:
            found = self._quick.get(cluster)
            if found is None or not found.exact:
                found = self._searched(cluster, self.budget.state_limit)
            self._conductances[cluster] = found
        return self._conductances[cluster]

    def quick_cut(self, cluster: Cluster) -> float:
        """The conductance of the best cut that a short search finds."""
        if cluster not in self._quick:
            self._quick[cluster] = self._searched(cluster, self.budget.half_limit)
        return self._quick[cluster].upper

    def _searched(self, cluster: Cluster, state_limit: int) -> Conductance:
        """Φ, by continuing the search before if that reached its limit."""
        mode = self.mode(cluster)
        search = self._searches.pop(cluster, None)
        if search is None:
            search = ConductanceSearch(self.mixing(cluster), mode)
        found = search.within(state_limit)
        if not found.exact and state_limit < self.budget.state_limit:
            self._searches[cluster] = search
        return found

    def mode(self, cluster: Cluster) -> tuple[float, FloatArray]:
        """λ₂(Ã_s) and the Fiedler vector."""
        if cluster not in self._modes:
            search = ConductanceSearch(self.mixing(cluster))
            self._modes[cluster] = search.mode
            self._searches[cluster] = search  # it has found more vectors than this
        return self._modes[cluster]

    def lambda_min(self, cluster: Cluster) -> float:
        """λ_N(Ã_s)."""
        if cluster not in self._lambda_min:
            self._lambda_min[cluster] = smallest_eigenvalue(self.mixing(cluster))
        return self._lambda_min[cluster]

    def weakest_device(self, cluster: Cluster) -> float:
        """The least cut conductance of one device; 0 if the cluster is not connected.

        Only of clusters that `find_cuts` has examined.
        """
        return self._weakest_device[cluster]

    def fiedler_cut(self, cluster: Cluster) -> float:
        """The conductance of the best cut along the Fiedler vector."""
        if cluster not in self._fiedler_cut:
            order = np.argsort(np.round(self.mode(cluster)[1], 9), kind="stable")
            values = prefix_conductance(self.mixing(cluster), order)
            self._fiedler_cut[cluster] = float(values.min())
        return self._fiedler_cut[cluster]

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
        self.find_modes(clusters)
        least = np.array([(1 - self._modes[cluster][0]) / 2 for cluster in clusters])
        order = np.argsort(least, kind="stable").tolist()
        known: dict[int, Conductance] = {}
        best = math.inf
        for k, number in enumerate(order):
            if least[number] > best * (1 + _CERTAIN) + _CERTAIN:
                break
            if k % _AHEAD == 0:
                self.find_small([clusters[ahead] for ahead in order[k : k + _AHEAD]])
            known[number] = self.conductance(clusters[number])
            best = min(best, known[number].upper)
        return known

    def find_spectra(self, clusters: Sequence[Cluster]) -> None:
        """Compute what is not known yet of `mode` and `lambda_min`, of all clusters together."""
        self.find_modes(clusters)
        missing = [cluster for cluster in clusters if cluster not in self._lambda_min]
        if missing:
            found = self.blocks(missing).smallest.tolist()
            self._lambda_min.update(zip(missing, found, strict=True))

    def blocks(self, clusters: Sequence[Cluster]) -> Blocks:
        """The mixing inside disjoint clusters."""
        return make_blocks(self.network.adjacency, list(map(np.array, clusters)), self.weights)

    def find_modes(self, clusters: Sequence[Cluster]) -> None:
        """Compute what is not known yet of `mode`, of all disjoint clusters together."""
        missing = [cluster for cluster in clusters if cluster not in self._modes]
        if missing:
            blocks = self.blocks(missing)
            self._take_modes(missing, blocks, np.arange(len(missing)))
            self._keep(missing, blocks)

    def find_small(self, clusters: Sequence[Cluster]) -> None:
        """Compute what is not known yet of conductances of small disjoint clusters, together."""
        small = [cluster for cluster in clusters if 1 < len(cluster) <= ENUMERATION_LIMIT]
        missing = [cluster for cluster in small if cluster not in self._quick]
        if missing:
            blocks = self.blocks(missing)
            self._take_small(missing, blocks, np.flatnonzero(blocks.weakest_device > 0))

    def find_cuts(self, rounds: Sequence[Sequence[Pair]]) -> None:
        """Compute bounds on the conductance of halves, together: cuts of one device and others.

        Args:
            rounds: pairs of halves; those of one round are disjoint.
        """
        for start in range(0, len(rounds), _COPIES):
            together = rounds[start : start + _COPIES]
            halves = [half for pairs in together for half in chain.from_iterable(pairs)]
            blocks = make_blocks(self._copies, self._in_copies(together), self.weights)
            bound = blocks.weakest_device
            self._weakest_device.update(zip(halves, bound.tolist(), strict=True))
            both = np.repeat(np.minimum(bound[::2], bound[1::2]), 2) > 0
            small = np.flatnonzero(both & (blocks.sizes <= _SMALL))
            self._take_cuts(halves, blocks, small)
            self._take_small(halves, blocks, small)
            self._keep(halves, blocks)

    @cached_property
    def _copies(self) -> SparseMatrix:
        """Several networks in one, with no links between them."""
        return block_diag([self.network.adjacency] * _COPIES, format="csr")

    def _in_copies(self, rounds: Sequence[Sequence[Pair]]) -> list[IntArray]:
        """The devices of halves, each round in its own copy of the network."""
        n = self.network.num_devices
        return [
            np.array(half) + copy * n
            for copy, pairs in enumerate(rounds)
            for half in chain.from_iterable(pairs)
        ]

    def _keep(self, clusters: Sequence[Cluster], blocks: Blocks) -> None:
        """Keep blocks for a while, in case the mixing of one of their clusters is asked for."""
        self._latest.append(({cluster: k for k, cluster in enumerate(clusters)}, blocks))

    def _take_modes(
        self, clusters: Sequence[Cluster], blocks: Blocks, chosen: IntArray
    ) -> FloatArray:
        """Take λ₂ and Fiedler vectors of some clusters from blocks; returns all the vectors."""
        lambda_2, fiedler = blocks.modes(chosen)
        for number in chosen.tolist():
            mode = float(lambda_2[number]), fiedler[blocks.places(number)]
            self._modes[clusters[number]] = mode
        return fiedler

    def _take_cuts(self, clusters: Sequence[Cluster], blocks: Blocks, chosen: IntArray) -> None:
        """Take modes and cuts along Fiedler vectors of some clusters from blocks."""
        fiedler = self._take_modes(clusters, blocks, chosen)
        values = blocks.prefixes(blocks.order(fiedler))
        least = np.minimum.reduceat(values, blocks.starts[:-1])
        for number in chosen.tolist():
            self._fiedler_cut[clusters[number]] = float(least[number])

    def _take_small(self, clusters: Sequence[Cluster], blocks: Blocks, chosen: IntArray) -> None:
        """Take exact conductances of small clusters from blocks."""
        if self.budget.half_limit > 1:
            for number, found in small_conductances(blocks, chosen):
                self._quick[clusters[number]] = found
