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
        score: lower is better; infinite if a bound's condition fails.
        threshold: Φ_min(S).
        min_conductance: the least conductance of its clusters, a value or an interval.
        split: the cluster that was split to make it, if any.
        rule: how it was made. In Algorithm 2: ``start``; ``threshold`` if both halves passed Φ_min;
            ``weakest`` if no split did; ``end`` for N single devices. In the cost-aware partition:
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
        """Whether every cluster certainly reaches the threshold."""
        return self.min_conductance.lower >= self.threshold


def choose(
    candidates: Sequence[Candidate],
    price: float = math.inf,
    indifference: float = 1.0,
    assumed: Callable[[Candidate], float] | None = None,
) -> tuple[Candidate, str]:
    """The feasible candidate of lowest score, unless it costs over ``price`` times the best of all.

    Scores within a factor of ``indifference`` count as equal, and then fewer clusters win.

    Args:
        assumed: a candidate's cost if devices differed in the usual way. If nothing is known of
            the devices, it decides where nothing is feasible. Where clusters save time, a feasible
            candidate then gives way to one with fewer clusters at the same predicted cost.

    Returns:
        The candidate and the rule, a name of `CHOICES`. ``feasible``: it keeps to Φ_min.
        ``price``: Φ_min gave way to the least score, because keeping to it costs too much or
        nothing keeps to it. At an infinite price, if nothing is feasible: ``assumed`` is the
        least assumed cost, ``nearest`` the nearest to its threshold. ``fewest`` has fewer clusters
        than the feasible or the nearest one, at the same predicted cost.
    """
    feasible = [candidate for candidate in candidates if candidate.feasible]
    if math.isinf(price) and not feasible:
        if assumed is not None:
            return _least_assumed(candidates, indifference, assumed), "assumed"
        return _below_threshold(candidates, indifference)
    best = _simplest_of_best(candidates, indifference)
    keeping = _simplest_of_best(feasible or candidates, indifference)
    if assumed is not None:
        fewest, rule = _fewest_as_cheap(candidates, keeping, "feasible", indifference)
        # One cluster that is as cheap shows that clusters save nothing: then Φ_min decides.
        return (fewest, rule) if fewest.num_clusters > 1 else (keeping, "feasible")
    chosen = keeping if _is_affordable(keeping, best, price) else best
    return chosen, "feasible" if chosen.feasible else "price"


def _is_affordable(keeping: Candidate, best: Candidate, price: float) -> bool:
    """Whether the candidate that keeps to Φ_min costs at most ``price`` times the overall best."""
    return math.isinf(price) or keeping.score <= best.score * price


def _simplest_of_best(candidates: Sequence[Candidate], indifference: float) -> Candidate:
    """Among candidates near the lowest score: fewest clusters first, then most conductance."""
    least = min(round_score(candidate.score) for candidate in candidates)
    equal = [c for c in candidates if round_score(c.score) <= max(least, least * indifference)]
    return min(
        equal, key=lambda c: (c.num_clusters, round_score(c.score), -c.min_conductance.lower)
    )


def _least_assumed(
    candidates: Sequence[Candidate], indifference: float, assumed: Callable[[Candidate], float]
) -> Candidate:
    """The candidate with the fewest clusters at about the lowest assumed cost.

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
    """The candidate nearest to its threshold, or with fewer clusters at an equal predicted cost."""
    nearest = _nearest(candidates)
    if indifference > 1:
        return _fewest_as_cheap(candidates, nearest, "nearest", indifference)
    return nearest, "nearest"


def _fewest_as_cheap(
    candidates: Sequence[Candidate], found: Candidate, rule: str, indifference: float
) -> tuple[Candidate, str]:
    """The candidate that a rule found, or one with fewer clusters that costs no more."""
    as_cheap = [c for c in candidates if c.score <= found.score * indifference]
    fewest = min([found, *as_cheap], key=lambda c: c.num_clusters)
    if fewest.num_clusters < found.num_clusters:
        return fewest, "fewest"
    return found, rule


def _nearest(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate that misses its threshold least; ties go to the one with fewest clusters."""

    def margin(candidate: Candidate) -> float:
        return candidate.min_conductance.lower - candidate.threshold

    return max(candidates, key=lambda c: (margin(c), -c.num_clusters))


def round_score(score: float) -> float:
    """A score rounded to nine digits, so that scores that differ only by rounding are equal."""
    return float(f"{score:.9g}")
