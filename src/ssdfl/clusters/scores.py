"""Scores of a partition, which formation minimises.

A score is a function ``score(inputs, clusters) -> float``; lower is better. Name your own as
``package.module:function``, or pass the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ssdfl.arrays import FloatArray, SparseMatrix
from ssdfl.clusters.cluster_cache import Budget, ClusterCache
from ssdfl.clusters.heterogeneity import (
    PAPER_AMPLIFICATION,
    AmplificationSettings,
    Device,
    amplification,
    assumed_directions,
    data_distances,
    drift_directions,
    label_frequencies,
    sketches,
)
from ssdfl.clusters.partition import Cluster, Clusters, labels_of
from ssdfl.clusters.spectral import Splits
from ssdfl.errors import InputError, find_function, number_from
from ssdfl.graph import (
    Clock,
    CycleCost,
    MixingMatrix,
    Network,
    Weights,
    links_within,
    metropolis,
)
from ssdfl.memo import by_identity
from ssdfl.theory import (
    ClusterTerms,
    Constants,
    Disagreement,
    Pilot,
    disagreement,
    integrated_bound,
    published,
    slowdown,
)

MESSAGE_BYTES = 19_240
"""The size of the default experiment's model: 4,810 parameters in float32."""
TRAINING = Constants(learning_rate=0.05, tau_a=5, local_steps=2)
"""The constants of the default experiment; B, γ̂ and L(θ⁰) are assumed, not measured."""
STRONG_DRIFT = 2.0
"""If one cluster is predicted to take more than this many times the cycles of devices that agree,
learning is simulated."""
SIMULATED = 100
"""Learning is simulated for at most this many devices; it was compared with training for 87."""


@dataclass(eq=False)
class ScoreInputs:
    """The inputs of scores; intermediate results that several scores need are computed once.

    Attributes:
        network: the devices and their links.
        devices: the devices' data and optimizers.
        constants: the constants of training and of the bounds.
        weights: the rule for mixing weights.
        message_bytes: the size of a model on the wire.
        budget: limits on the work.
        data_distance: (L,) `data_distances` of the links, if devices' samples are not available.
        amplification: how differences between devices become α_s.
        sends_early: messages leave before devices train, so sending overlaps with computing.
        corrects: the rule corrects drift.
        simulates: whether to simulate learning if devices drift far.
    """

    network: Network
    devices: Sequence[Device]
    constants: Constants = TRAINING
    weights: Weights = metropolis
    message_bytes: int = MESSAGE_BYTES
    budget: Budget = field(default_factory=Budget)
    data_distance: FloatArray | None = None
    amplification: AmplificationSettings = PAPER_AMPLIFICATION
    sends_early: bool = True
    corrects: bool = False
    simulates: bool = True

    def __post_init__(self) -> None:
        n = self.network.num_devices
        if len(self.devices) != n:
            expected = f"{n}, one per device"
            raise InputError(
                "number of device descriptors", len(self.devices), expected, "List them all."
            )
        self.cache = ClusterCache(self.network, self.weights, self.budget)
        self.splits = Splits(self.cache)
        self.A_intra = by_identity(self._A_intra, size=2)
        self._terms: dict[Cluster, ClusterTerms] = {}
        self._costs: dict[Clusters, CycleCost] = {}
        self._slowdowns: dict[Clusters, float] = {}
        self._simulated: dict[Clusters, float] = {}

    @cached_property
    def A(self) -> MixingMatrix:
        """The mixing matrix of the whole network."""
        return self.weights(self.network.adjacency)

    def _A_intra(self, clusters: Clusters) -> MixingMatrix:
        """Ã, the mixing matrix inside clusters."""
        labels = labels_of(clusters, self.network.num_devices)
        return self.weights(links_within(self.network.adjacency, labels))

    @cached_property
    def differences(self) -> FloatArray:
        """(N, C) the differences of devices' data from the mean; all 0 if unknown."""
        return drift_directions(self.devices)

    @property
    def devices_differ(self) -> bool:
        """Whether devices are known to differ, so that drift can be predicted."""
        return bool(self.differences.any())

    @cached_property
    def _clock(self) -> Clock:
        return Clock(self.network, self.message_bytes, sends_early=self.sends_early)

    @property
    def hidden_s(self) -> FloatArray:
        """(N,) how long a message may take while its receiver is still busy."""
        return self.network.compute_s * (self.constants.local_steps if self.sends_early else 0)

    def cycle_cost(self, clusters: Clusters) -> CycleCost:
        """The cost of a cycle with these clusters."""
        if clusters not in self._costs:
            constants = self.constants
            self._costs[clusters] = self._clock.cycle_cost(
                self.A,
                self.A_intra(clusters),
                constants.tau_a,
                constants.tau_r,
                self.network.compute_s * constants.local_steps,
            )
        return self._costs[clusters]

    def disagreement(self, clusters: Clusters) -> Disagreement:
        """The predicted distance between devices, in squared steps."""
        τ_a, τ_r = self.constants.tau_a, self.constants.tau_r
        return disagreement(self.A, self.A_intra(clusters), self.differences, τ_a, τ_r)

    def slowdown(self, clusters: Clusters) -> float:
        """The predicted number of cycles, relative to devices that agree.

        If devices drift far, learning is simulated, relative to one cluster; if the rule corrects
        drift, always, as the linear prediction is of a rule that does not.
        """
        if self.pilot is None:
            return self.linear_slowdown(clusters)
        if self.corrects:
            return self._cycles(clusters) / self._cycles_of_agreeing
        return self._slowdown_of_one * self._cycles(clusters) / self._cycles(self._one_cluster)

    def linear_slowdown(self, clusters: Clusters) -> float:
        """The same by the linear prediction of disagreement."""
        if clusters not in self._slowdowns:
            apart = self.disagreement(clusters)
            self._slowdowns[clusters] = slowdown(apart, self.network.num_devices)
        return self._slowdowns[clusters]

    @cached_property
    def pilot(self) -> Pilot | None:
        """The simulation of learning, if devices are few, have labels, and drift far.

        They need not drift far if the rule corrects drift.
        """
        is_possible = self.simulates and self.network.num_devices <= SIMULATED
        if not is_possible or sketches(self.devices) is not None or not self.devices_differ:
            return None
        if not self.corrects and self._slowdown_of_one <= STRONG_DRIFT:
            return None
        return Pilot(
            self.A.toarray(),
            label_frequencies(self.devices),
            self.constants.tau_a,
            self.constants.tau_r,
            self.corrects,
            self.constants.step_length,
        )

    def _cycles(self, clusters: Clusters) -> float:
        """The simulated number of cycles."""
        assert self.pilot is not None
        if clusters not in self._simulated:
            self._simulated[clusters] = self.pilot.cycles(self.A_intra(clusters))
        return self._simulated[clusters]

    @cached_property
    def _cycles_of_agreeing(self) -> float:
        """The simulated number of cycles if all devices held the same mix of labels."""
        assert self.pilot is not None
        everywhere = np.broadcast_to(
            self.pilot.frequencies.mean(axis=0), self.pilot.frequencies.shape
        )
        return replace(self.pilot, frequencies=everywhere).cycles(self.A)

    @property
    def _one_cluster(self) -> Clusters:
        return (tuple(range(self.network.num_devices)),)

    @property
    def _slowdown_of_one(self) -> float:
        return self.linear_slowdown(self._one_cluster)

    def assumed_slowdown(self, clusters: Clusters) -> float:
        """`slowdown` for unknown devices, as if they differed in the usual way."""
        n, τ_a, τ_r = self.network.num_devices, self.constants.tau_a, self.constants.tau_r
        apart = disagreement(self.A, self.A_intra(clusters), assumed_directions(n), τ_a, τ_r)
        return slowdown(apart, n)

    @cached_property
    def _data_distance(self) -> SparseMatrix:
        distances = self.data_distance
        if distances is None:
            distances = data_distances(self.devices, self.network.links)
        return self.network.link_matrix(distances)

    def terms_of_all(self, clusters: Clusters) -> list[ClusterTerms]:
        """What the paper's bounds ask of each cluster."""
        missing = tuple(cluster for cluster in clusters if cluster not in self._terms)
        self.cache.find_spectra(missing)
        distances = self._mean_distances(missing)
        for cluster, distance in zip(missing, distances, strict=True):
            self._terms[cluster] = self._terms_of(cluster, distance)
        return [self._terms[cluster] for cluster in clusters]

    def terms(self, cluster: Cluster) -> ClusterTerms:
        """The quantities of a cluster in the paper's bounds."""
        return self.terms_of_all((cluster,))[0]

    def _mean_distances(self, clusters: Clusters) -> list[float]:
        """The mean data distance over the links inside each of some disjoint clusters."""
        n = self.network.num_devices
        inside = links_within(self._data_distance, labels_of(clusters, n))
        counts = np.diff(inside.indptr)
        sums = np.bincount(np.repeat(np.arange(n), counts), inside.data, minlength=n)
        totals = ((sums[members].sum(), counts[members].sum()) for members in map(list, clusters))
        return [float(total / count) if count else 0.0 for total, count in totals]

    def _terms_of(self, cluster: Cluster, data_distance: float) -> ClusterTerms:
        members = [self.devices[device] for device in cluster]
        return ClusterTerms(
            size=len(cluster),
            lambda_2=self.cache.mode(cluster)[0],
            lambda_min=self.cache.lambda_min(cluster),
            amplification=amplification(members, data_distance, self.amplification),
            rho=max(member.rho for member in members),
            mu=max(member.mu for member in members),
        )


Score = Callable[[ScoreInputs, Clusters], float]


def stationarity(inputs: ScoreInputs, clusters: Clusters) -> float:
    """The paper's H(S) of `alg:cluster_form`: the mean over clusters of Theorem 1's bound.

    It falls with every split.
    """
    constants = inputs.constants
    terms = inputs.terms_of_all(clusters)
    bounds = (
        published.intra_convergence(constants, term, term.size * constants.initial_loss)
        for term in terms
    )
    return math.fsum(bounds) / len(clusters)


def integrated(inputs: ScoreInputs, clusters: Clusters) -> float:
    """Theorem 2 with Lemma 1's finite recursion and drift between clusters."""
    whole = inputs.terms(tuple(range(inputs.network.num_devices)))
    terms = inputs.terms_of_all(clusters)
    return integrated_bound(inputs.constants, whole, terms)


def drift(inputs: ScoreInputs, clusters: Clusters) -> float:
    """The predicted disagreement ``D = (η E)² ‖R G‖² / N``, without any costs."""
    return inputs.constants.step_length**2 * inputs.disagreement(clusters).trained


def time(inputs: ScoreInputs, clusters: Clusters) -> float:
    """Predicted seconds to an accuracy, in units of the cycles that agreeing devices need."""
    return inputs.cycle_cost(clusters).time_s * inputs.slowdown(clusters)


def sent_bytes(inputs: ScoreInputs, clusters: Clusters) -> float:
    """Predicted bytes to an accuracy, in units of the cycles that agreeing devices need.

    Without simulation, which is less certain about many clusters, the usual choice for bytes.
    """
    return inputs.cycle_cost(clusters).sent_bytes * inputs.linear_slowdown(clusters)


COSTS: dict[str, Callable[[CycleCost], float]] = {
    "time": lambda cost: cost.time_s,
    "bytes": lambda cost: cost.sent_bytes,
}
"""The cost of a cycle in the scores that predict a cost; they multiply it by the slowdown."""
SCORES: dict[str, Score] = {
    "time": time,
    "bytes": sent_bytes,
    "drift": drift,
    "stationarity": stationarity,
    "integrated": integrated,
}


def find_score(score: str | Score) -> Score:
    """A score by name, a user's own by ``package.module:function``, or the function itself.

    Examples:
        >>> find_score("drift") is drift
        True
    """
    return score if callable(score) else find_function(SCORES, score, "score")


def evaluate(score: Score, inputs: ScoreInputs, clusters: Clusters) -> float:
    """The score of clusters, with checks, since a user's own function may raise or return anything.

    Raises:
        InputError: the function raised an error, or did not return a number.
    """
    what = f"score {getattr(score, '__name__', 'own')} of {len(clusters)} clusters"
    return number_from(score, inputs, clusters, what=what)
