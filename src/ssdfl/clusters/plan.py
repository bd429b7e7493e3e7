"""The plan: the clusters of devices, and every partition that was considered."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ssdfl.arrays import IntArray
from ssdfl.checksums import with_checksum
from ssdfl.clusters.advice import advice
from ssdfl.clusters.candidates import Candidate
from ssdfl.clusters.decision import GIVEN, Decision
from ssdfl.clusters.diagnostics import Diagnostic
from ssdfl.clusters.exchange import Exchange
from ssdfl.clusters.formation import INDIFFERENCE, PREDICTIONS, FormationSettings, Skipped, form
from ssdfl.clusters.heterogeneity import Device, unknown_devices
from ssdfl.clusters.partition import Clusters, labels_of, spectral_bisection
from ssdfl.clusters.recorded_settings import record
from ssdfl.clusters.standing import Standing
from ssdfl.errors import InputError
from ssdfl.graph import Network, NetworkLike, Weights, load_network, metropolis

VERSION = 4
_VIRTUES = {
    "nearest": "comes nearest",
    "fewest": "has the fewest clusters of the same predicted {}",
    "assumed": "is predicted to take the least {} if devices held three of ten labels each",
    "price": "is predicted to take the least {}",
}
"""Reasons for choosing a candidate that misses its threshold."""


@dataclass(frozen=True)
class Plan:
    """Disjoint clusters that cover devices 0 … N − 1.

    Attributes:
        clusters: device ids of each cluster, ordered by the lowest.
        partition: the rule that made them: ``cost``, ``paper`` or ``bisection``.
        candidates: the candidates of formation, one for every number of clusters weighed.
        score_name: the score by which it chose.
        choice: the rule that chose them, a name of `CHOICES`; ``given`` if nothing was formed.
        mode: ``literal`` or ``fast``.
        skipped: the work that the fast mode left out.
        settings: the settings of formation.
        diagnostics: which assumptions hold, and predicted costs.
        names: the names of the devices, in their order; empty if unknown.
        standing: how good the plan was for its network when formed, if its score predicts a cost.
    """

    clusters: Clusters
    partition: str
    candidates: tuple[Candidate, ...] = ()
    score_name: str = ""
    choice: str = GIVEN
    mode: str = ""
    skipped: Skipped = field(default_factory=Skipped)
    settings: Mapping[str, float | str] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    names: tuple[str, ...] = ()
    standing: Standing | None = None

    @property
    def exchange(self) -> Exchange:
        """What it was formed for."""
        given: Mapping[str, Any] = self.settings
        return Exchange(
            given.get("message_bytes"),
            bool(given.get("sends_early", True)),
            bool(given.get("corrects", False)),
        )

    @property
    def num_devices(self) -> int:
        """The number of devices in the plan."""
        return sum(len(cluster) for cluster in self.clusters)

    @property
    def num_clusters(self) -> int:
        """S, the number of clusters."""
        return len(self.clusters)

    @property
    def labels(self) -> IntArray:
        """(N,) the number of each device's cluster, like ``labels_`` in scikit-learn."""
        return labels_of(self.clusters, self.num_devices)

    def name_of(self, device: int) -> str | int:
        """The name of a device, or its number in a plan without names."""
        return self.names[device] if self.names else device

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that became the plan."""
        return next((c for c in self.candidates if c.clusters == self.clusters), None)

    @property
    def decision(self) -> Decision:
        """How the clusters were chosen, for reports."""
        chosen = self.chosen
        if chosen is None:
            return Decision(GIVEN, self.num_clusters)
        return Decision(
            rule=self.choice,
            num_clusters=self.num_clusters,
            score_name=self.score_name,
            score=chosen.score,
            conductance=chosen.min_conductance.lower,
            threshold=chosen.threshold,
            num_feasible=sum(candidate.feasible for candidate in self.candidates),
            num_candidates=len(self.candidates),
        )

    @property
    def left_out(self) -> str:
        """A sentence on what formation left out."""
        skipped = self.skipped
        moves = ", devices were not moved between clusters" if skipped.moves else ""
        return (
            f"{skipped.sizes} numbers of clusters were not weighed, "
            f"{skipped.prefixes} cuts not tried, "
            f"{skipped.halves} halves weighed by the best cut found{moves}; "
            f"{skipped.inexact} of {len(self.candidates)} conductances are intervals."
        )

    @property
    def remark(self) -> str:
        """A note or warning on how the plan was chosen; empty if it keeps to the threshold.

        Also empty for a given or repaired plan, which was not chosen from candidates.
        """
        chosen = self.chosen
        if chosen is None or chosen.feasible or self.choice not in _VIRTUES:
            return ""
        numbers = (
            f"Φ = {chosen.min_conductance.lower:.4f} against Φ_min = {chosen.threshold:.4f} "
            f"at S = {chosen.num_clusters}"
        )
        indifference = INDIFFERENCE if self.score_name in PREDICTIONS else 1.0
        remedy = ""
        if self.choice != "price":
            remedy = advice(self.candidates, self.settings, indifference, self.num_clusters)
        return f"{self._overruled(chosen, numbers)} {remedy}".strip()

    def _overruled(self, chosen: Candidate, numbers: str) -> str:
        """Why the chosen candidate does not keep to the threshold."""
        feasible = [candidate.score for candidate in self.candidates if candidate.feasible]
        if feasible:
            saved = f"{1 - chosen.score / min(feasible):.0%} less {self.score_name} than"
            if self.choice == "fewest":
                saved = f"the same {self.score_name} with fewer clusters as"
            return (
                f"note: the conductance threshold is overruled ({numbers}), since this plan is "
                f"predicted to take {saved} the best that keeps to it. Be strict to keep to it."
            )
        virtue = _VIRTUES[self.choice].format(self.score_name)
        return (
            "warning: no candidate reaches its conductance threshold; "
            f"this one {virtue}: {numbers}."
        )

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON data, with a version and a checksum; infinite values become null.

        ``clusters`` lists names. Candidates list positions in ``devices``, which are shorter.
        """
        data = {
            "version": VERSION,
            "num_devices": self.num_devices,
            "num_clusters": self.num_clusters,
            "clusters": [[self.name_of(device) for device in cluster] for cluster in self.clusters],
            "devices": list(self.names) or None,
            "partition": self.partition,
            "score": _finite(self.chosen.score) if self.chosen else None,
            "score_name": self.score_name,
            "choice": self.choice,
            "mode": self.mode,
            "skipped": asdict(self.skipped),
            "settings": {name: _finite(value) for name, value in self.settings.items()},
            "standing": asdict(self.standing) if self.standing else None,
            "diagnostics": [asdict(diagnostic) for diagnostic in self.diagnostics],
            "candidates": [_candidate_to_json(candidate) for candidate in self.candidates],
        }
        return with_checksum(data)


def form_clusters(
    network: NetworkLike,
    devices: Sequence[Device] | None = None,
    settings: FormationSettings | None = None,
) -> Plan:
    """Form clusters of a network: weigh partitions of every size and take the best that mixes.

    By default, this is the plan of least predicted time to an accuracy, from partitions that
    consider the costs of links. Without ``devices``, all count as alike.
    ``FormationSettings(partition="paper", score="stationarity")`` is the paper's formation,
    Algorithms 1 and 2, literally.

    Raises:
        InputError: the network is not connected or has one device, or descriptors are missing.

    Examples:
        >>> form_clusters("barbell:size=3").clusters
        ((0, 1, 2), (3, 4, 5))
    """
    network = load_network(network)
    settings = settings or FormationSettings()
    check_plannable(network)
    formation = form(network, unknown_devices(network) if devices is None else devices, settings)
    return Plan(
        clusters=formation.chosen.clusters,
        partition=settings.partition,
        candidates=formation.candidates,
        score_name=settings.score_name,
        choice=formation.choice,
        mode=formation.mode,
        skipped=formation.skipped,
        settings=record(settings),
        diagnostics=formation.diagnostics,
        standing=formation.standing,
        names=network.names,
    )


def check_plannable(network: Network) -> None:
    """Refuse a network that is not connected or has one device.

    Raises:
        InputError: the network is not connected, or has one device.
    """
    if network.num_devices < 2:
        raise InputError(
            "number of devices", network.num_devices, "at least 2", "One device needs no plan."
        )
    if network.components().max() > 0:
        raise InputError(
            "network", network.title, "a connected network", "Add links between its parts."
        )


def plan_clusters(network: NetworkLike, num_clusters: int, weights: Weights = metropolis) -> Plan:
    """A plan with a given number of clusters, by recursive spectral bisection.

    Examples:
        >>> plan_clusters("barbell:size=2", 2).clusters
        ((0, 1), (2, 3))
    """
    network = load_network(network)
    clusters = spectral_bisection(network, num_clusters, weights)
    return Plan(clusters, partition="bisection", names=network.names)


def _finite(value: float | str) -> float | str | None:
    """A value for JSON: infinite numbers become null."""
    if isinstance(value, str):
        return value
    return value if math.isfinite(value) else None


def _candidate_to_json(candidate: Candidate) -> dict[str, Any]:
    found = candidate.min_conductance
    return {
        "num_clusters": candidate.num_clusters,
        "clusters": [list(cluster) for cluster in candidate.clusters],
        "score": _finite(candidate.score),
        "threshold": candidate.threshold,
        "min_conductance": {
            "lower": found.lower,
            "upper": found.upper,
            "exact": found.exact,
            "cut": list(found.cut),
        },
        "feasible": candidate.feasible,
        "split": list(candidate.split),
        "rule": candidate.rule,
    }
