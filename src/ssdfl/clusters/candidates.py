"""Candidates of formation, and how one of them is chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ssdfl.clusters.partition import Cluster, Clusters
from ssdfl.graph import Conductance

_NOTICEABLE = 1e-3


@dataclass(frozen=True)
class Candidate:
    """One partition that formation weighed.

    Attributes:
        clusters: its clusters.
        score: lower is better; infinite where a bound says nothing.
        threshold: Φ_min(S).
        min_conductance: the least conductance of its clusters, a value or an interval.
        split: the cluster that was split to make it, where it was made so.
        rule: what made it. Of Algorithm 2: ``start``; ``threshold`` if both halves passed Φ_min;
            ``weakest`` if no split did; ``end`` for N single devices. Of the cost-aware partition:
            ``bisection``, ``agglomeration``, ``balance`` or ``moves``.
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


def choose(
    candidates: Sequence[Candidate],
    price: float = math.inf,
    indifference: float = 1.0,
    assumed: Callable[[Candidate], float] | None = None,
) -> tuple[Candidate, str]:
    """The feasible candidate of least score, unless it costs over ``price`` times the least of all.

    Scores within a factor of ``indifference`` count as equal, and then fewer clusters win.

    Args:
        assumed: a candidate's cost if devices differed in the usual way. If nothing is known of
            the devices, it decides where nothing is feasible.

    Returns:
        The candidate and the rule, a name of `CHOICES`. ``feasible``: it keeps to Φ_min.
        ``price``: Φ_min gave way to the least score, because keeping to it costs too much or
        nothing keeps to it. At an infinite price, if nothing is feasible: ``assumed`` is the
        least assumed cost, ``nearest`` the nearest to its threshold, and ``fewest`` has fewer
        clusters at the nearest one's score.
    """
    feasible = [candidate for candidate in candidates if candidate.feasible]
    if math.isinf(price) and not feasible:
        if assumed is not None:
            return _least_assumed(candidates, indifference, assumed), "assumed"
        return _below_threshold(candidates, indifference)
    best = _simplest_of_best(candidates, indifference)
    keeping = _simplest_of_best(feasible or candidates, indifference)
    chosen = keeping if _is_affordable(keeping, best, price) else best
    return chosen, "feasible" if chosen.feasible else "price"


def _is_affordable(keeping: Candidate, best: Candidate, price: float) -> bool:
    """Whether the candidate that keeps to Φ_min costs at most ``price`` times the best of all."""
    return math.isinf(price) or keeping.score <= best.score * price


def _simplest_of_best(candidates: Sequence[Candidate], indifference: float) -> Candidate:
    """Of candidates near the least score: fewest clusters first, then most conductance."""
    least = min(round_score(candidate.score) for candidate in candidates)
    equal = [c for c in candidates if round_score(c.score) <= max(least, least * indifference)]
    return min(
        equal, key=lambda c: (c.num_clusters, round_score(c.score), -c.min_conductance.lower)
    )


def _least_assumed(
    candidates: Sequence[Candidate], indifference: float, assumed: Callable[[Candidate], float]
) -> Candidate:
    """The fewest clusters of about the least assumed cost.

    Devices drift more in more clusters, so a candidate must cost less than all with fewer clusters.
    """
    worth = []
    least = math.inf
    for candidate in sorted(candidates, key=lambda c: (c.num_clusters, c.score)):
        if candidate.score < least * (1 - _NOTICEABLE):
            worth.append(candidate)
            least = candidate.score
    costs = [round_score(assumed(candidate)) for candidate in worth]
    near = [c for c, cost in zip(worth, costs, strict=True) if cost <= min(costs) * indifference]
    return near[0]


def _below_threshold(candidates: Sequence[Candidate], indifference: float) -> tuple[Candidate, str]:
    """The nearest to its threshold; among equal predicted costs, the fewest clusters."""
    nearest = _nearest(candidates)
    affordable = [c for c in candidates if c.score <= nearest.score * indifference]
    if indifference > 1 and affordable:
        fewest = min(affordable, key=lambda c: c.num_clusters)
        if fewest.num_clusters < nearest.num_clusters:
            return fewest, "fewest"
    return nearest, "nearest"


def _nearest(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate that misses its threshold least; of equals the one of fewest clusters."""

    def margin(candidate: Candidate) -> float:
        return candidate.min_conductance.lower - candidate.threshold

    return max(candidates, key=lambda c: (margin(c), -c.num_clusters))


def round_score(score: float) -> float:
    """A score to nine digits, so that what is equal but for rounding errors counts as equal."""
    return float(f"{score:.9g}")
