"""The paper's assumptions that a partition satisfies, and its predicted costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ssdfl.clusters.partition import Clusters
from ssdfl.clusters.scores import ScoreInputs
from ssdfl.graph import survived_liars
from ssdfl.theory import published

_FEW = 20


@dataclass(frozen=True)
class Diagnostic:
    """A condition, whether it holds, and the numbers.

    Attributes:
        name: the condition.
        holds: whether it holds; None for a mere fact.
        detail: the numbers that decide it.
    """

    name: str
    holds: bool | None
    detail: str


def diagnose(inputs: ScoreInputs, clusters: Clusters) -> tuple[Diagnostic, ...]:
    """The conditions of Assumption 3, Lemma 1 and Theorem 1 per cluster, and predicted costs."""
    return (*_conditions(inputs, clusters), *_predictions(inputs, clusters))


def _conditions(inputs: ScoreInputs, clusters: Clusters) -> Iterable[Diagnostic]:
    η = inputs.constants.learning_rate
    terms = inputs.terms_of_all(clusters)
    whole = inputs.terms(tuple(range(inputs.network.num_devices)))
    least = min(whole.lambda_min, *(term.lambda_min for term in terms))
    yield Diagnostic(
        "Assumption 3: A and every Ã_s positive definite",
        least > 1e-9,
        f"least eigenvalue {least:.4g}",
    )
    largest = max((term.lambda_2 for term in terms if term.size > 1), default=0.0)
    yield Diagnostic(
        "Lemma 1: η < 1 − λ₂(Ã_s) in every cluster",
        η < 1 - largest,
        f"η = {η:g}, least 1 − λ₂ = {1 - largest:.4g}",
    )
    most = published.largest_learning_rate(inputs.constants, terms)
    yield Diagnostic(
        "Theorem 1: η < 2 / (α̂_s Γ_s) in every cluster",
        η < most,
        f"η = {η:g}; solved for η, with Lemma 1: η < {most:.4g}",
    )
    alone = sum(len(cluster) == 1 for cluster in clusters)
    yield Diagnostic(
        "No device alone in a cluster", alone == 0, f"{alone} of {len(clusters)} clusters"
    )
    yield Diagnostic(
        "Lying neighbours per device that clusters survive with trimmed: "
        "(2 F + 1)-robust, LeBlanc et al. 2013",
        None,
        _liars(survived_liars(inputs.network, clusters)),
    )


def _liars(survived: tuple[int, ...]) -> str:
    """The number of liars that each cluster tolerates; counted if there are many clusters.

    Examples:
        >>> _liars((1, 0, 2))
        'F = 1, 0, 2, cluster by cluster'
    """
    if len(survived) <= _FEW:
        return f"F = {', '.join(map(str, survived))}, cluster by cluster"
    return ", ".join(
        f"F = {liars} in {survived.count(liars)} clusters" for liars in sorted(set(survived))
    )


def _predictions(inputs: ScoreInputs, clusters: Clusters) -> Iterable[Diagnostic]:
    n = inputs.network.num_devices
    ends = {
        "These clusters": clusters,
        "One cluster (sdfl)": (tuple(range(n)),),
        "No clusters (pdfl)": tuple((device,) for device in range(n)),
    }
    for name, partition in ends.items():
        cost = inputs.cycle_cost(partition)
        drift = "drift unknown"
        if inputs.devices_differ:
            drift = f"{inputs.slowdown(partition):.3g} times as many cycles as devices that agree"
        cycle = f"{cost.time_s:.4g} s and {cost.sent_bytes / 1e6:.4g} MB a cycle"
        yield Diagnostic(f"{name}: predicted", None, f"{cycle}, {drift}")
