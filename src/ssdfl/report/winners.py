"""Who won, and by how much, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from ssdfl.records.record import METRICS, RANKED_COSTS, Metric
from ssdfl.report.grouping import group_by
from ssdfl.report.numbers import amount, listed
from ssdfl.report.summary import MethodSummary

LEVEL_POINTS = 0.05
LEVEL_SHARE = 0.005


@dataclass(frozen=True)
class Winner:
    """Who won in one category.

    Attributes:
        category: such as ``Fewest bytes to 85 %``.
        method: who won it; all of them where several take as many.
        value: the winner's number, with its unit.
        margin: how far ahead of whom; empty if there is nobody else.
        noun: what is counted, if the category is a cost.
    """

    category: str
    method: str
    value: str
    margin: str
    noun: str = ""


def winners(summaries: Sequence[MethodSummary], target: float) -> list[Winner]:
    """Who has the best final accuracy, and who took the least of each cost to the target with every seed.

    Methods that have not finished are not ranked.
    """
    finished = [summary for summary in summaries if summary.finished]
    if not finished:
        return []
    return [_best_accuracy(finished), *_soonest(finished, target)]


def _soonest(finished: Sequence[MethodSummary], target: float) -> list[Winner]:
    """The winner of each cost that all methods that reached the target have."""
    reached = [summary for summary in finished if summary.reached_target]
    everybody_did = len(reached) == len(finished)
    return [_least_cost(reached, everybody_did, target, cost) for cost in _shared_costs(reached)]


def _shared_costs(summaries: Sequence[MethodSummary]) -> list[Metric]:
    """The costs to the target that all of some methods have."""
    if not summaries:
        return []
    shared = set.intersection(*(set(summary.to_target) for summary in summaries))
    return [METRICS[name] for name in RANKED_COSTS if name in shared]


def verdict(summaries: Sequence[MethodSummary], target: float) -> str:
    """Who was best and who was soonest, or how far each method is if none has finished."""
    if not summaries:
        return "There is nothing to rank yet."
    found = winners(summaries, target)
    if not found:
        return _so_far(summaries)
    best, *soonest = found
    said = [best.method, best.value, best.margin]
    sentence = f"{best.category}: {', '.join(filter(None, said))}."
    if soonest:
        return f"{sentence} Soonest at {100 * target:g} %: {_by_winner(soonest)}."
    return f"{sentence} No method reached {100 * target:g} % with every seed."


def _so_far(summaries: Sequence[MethodSummary]) -> str:
    """``So far, after cycle 3: ssdfl 45.0 %, sdfl 40.2 %.``."""
    by_progress = group_by(summaries, attrgetter("unfinished"))
    parts = [f"{where}: {', '.join(map(_accuracy, those))}" for where, those in by_progress.items()]
    return f"So far, {'; '.join(parts)}."


def _accuracy(summary: MethodSummary) -> str:
    return f"{summary.method} {100 * summary.accuracy:.1f} %"


def _by_winner(soonest: Sequence[Winner]) -> str:
    """``sdfl by cycles (8), ssdfl by bytes (9.1 MB) and simulated seconds (3.1 s)``."""
    by_method = group_by(soonest, attrgetter("method"))
    return ", ".join(f"{method} by {listed(map(_reason, won))}" for method, won in by_method.items())


def _reason(winner: Winner) -> str:
    return f"{winner.noun} ({winner.value})"


def _names(summaries: Sequence[MethodSummary]) -> str:
    return listed(summary.method for summary in summaries)


def _best_accuracy(summaries: Sequence[MethodSummary]) -> Winner:
    best, *others = sorted(summaries, key=lambda summary: -summary.accuracy)
    value = f"{100 * best.accuracy:.1f} %"
    margin = _accuracy_margin(best, others) if others else ""
    return Winner(f"Best final {METRICS[best.reading].noun}", best.method, value, margin)


def _accuracy_margin(best: MethodSummary, others: Sequence[MethodSummary]) -> str:
    """How far the best is ahead of the second, and how sure that is."""
    level = [one for one in others if _points(best, one) < LEVEL_POINTS]
    if level:
        return f"level with {_names(level)}{_one_seed_only(best, *level)}"
    second = others[0]
    return f"{_points_ahead(best, second)}{_one_seed_only(best, second)}"


def _one_seed_only(*summaries: MethodSummary) -> str:
    return ", of one seed only" if min(summary.seeds for summary in summaries) == 1 else ""


def _points_ahead(best: MethodSummary, second: MethodSummary) -> str:
    points = _points(best, second)
    spread = 100 * max(best.accuracy_std, second.accuracy_std)
    doubt = ", less than the spread over seeds" if points < spread else ""
    return f"{points:.1f} points ahead of {second.method}{doubt}"


def _points(best: MethodSummary, other: MethodSummary) -> float:
    return 100 * (best.accuracy - other.accuracy)


def _least_cost(
    reached: Sequence[MethodSummary], everybody_did: bool, target: float, metric: Metric
) -> Winner:
    ordered = sorted(reached, key=lambda summary: summary.to_target[metric.name])
    least = ordered[0].to_target[metric.name]
    level = [one for one in ordered if one.to_target[metric.name] <= (1 + LEVEL_SHARE) * least]
    slower = ordered[len(level) :]
    margin = "" if everybody_did else "no other method reached it with every seed"
    if slower:
        margin = _cost_margin(slower[0], least, metric)
    category = f"Fewest {metric.noun} to {100 * target:g} %"
    return Winner(category, _names(level), amount(least, metric), margin, metric.noun)


def _cost_margin(second: MethodSummary, least: float, metric: Metric) -> str:
    cost = second.to_target[metric.name]
    more = f"{cost / least:,.2f} times as many" if least else amount(cost, metric)
    return f"{second.method} takes {more}"
