"""Who won, and by how much, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssdfl.records.record import METRICS, Metric
from ssdfl.report.numbers import amount, listed
from ssdfl.report.summary import MethodSummary

LEVEL_POINTS = 0.05
LEVEL_SHARE = 0.005
BEST_ACCURACY = "Best final accuracy"


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
    finished = [summary for summary in summaries if not summary.unfinished]
    if not finished:
        return []
    reached = [summary for summary in finished if summary.seeds_at_target == summary.seeds]
    everybody_did = len(reached) == len(finished)
    costs = [_least_cost(reached, everybody_did, target, metric) for metric in _shared_costs(reached)]
    return [_best_accuracy(finished), *costs]


def _shared_costs(summaries: Sequence[MethodSummary]) -> list[Metric]:
    """The costs to rank by: those that all of these have."""
    if not summaries:
        return []
    shared = set.intersection(*(set(summary.to_target) for summary in summaries))
    return [metric for name, metric in METRICS.items() if name in shared]


def verdict(summaries: Sequence[MethodSummary], target: float) -> str:
    """Who was best and who was soonest, or how far each method is if none has finished."""
    if not summaries:
        return "There is nothing to rank yet."
    found = winners(summaries, target)
    if not found:
        return _so_far(summaries)
    best, *soonest = found
    margin = f", {best.margin}" if best.margin else ""
    sentence = f"{best.category}: {best.method}, {best.value}{margin}."
    if soonest:
        return f"{sentence} Soonest at {100 * target:g} %: {_by_winner(soonest)}."
    return f"{sentence} No method reached {100 * target:g} % with every seed."


def _so_far(summaries: Sequence[MethodSummary]) -> str:
    """``So far, after cycle 3: ssdfl 45.0 %, sdfl 40.2 %.``."""
    reached: dict[str, list[str]] = {}
    for summary in summaries:
        text = f"{summary.method} {100 * summary.accuracy:.1f} %"
        reached.setdefault(summary.unfinished, []).append(text)
    parts = [f"{where}: {', '.join(texts)}" for where, texts in reached.items()]
    return f"So far, {'; '.join(parts)}."


def _by_winner(soonest: Sequence[Winner]) -> str:
    """``sdfl by cycles (8), ssdfl by bytes (9.1 MB) and simulated seconds (3.1 s)``."""
    won: dict[str, list[str]] = {}
    for winner in soonest:
        won.setdefault(winner.method, []).append(f"{winner.noun} ({winner.value})")
    return ", ".join(f"{method} by {listed(reasons)}" for method, reasons in won.items())


def _names(summaries: Sequence[MethodSummary]) -> str:
    return listed([summary.method for summary in summaries])


def _best_accuracy(summaries: Sequence[MethodSummary]) -> Winner:
    best, *others = sorted(summaries, key=lambda summary: -summary.accuracy)
    value = f"{100 * best.accuracy:.1f} %"
    margin = _accuracy_margin(best, others) if others else ""
    return Winner(BEST_ACCURACY, best.method, value, margin)


def _accuracy_margin(best: MethodSummary, others: Sequence[MethodSummary]) -> str:
    """How far the best is ahead of the second, and how sure that is."""
    level = [one for one in others if _points(best, one) < LEVEL_POINTS]
    rivals = level or others[:1]
    margin = f"level with {_names(level)}" if level else _points_ahead(best, others[0])
    one_seed = any(summary.seeds == 1 for summary in (best, *rivals))
    return f"{margin}, of one seed only" if one_seed else margin


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
    if slower:
        margin = _cost_margin(slower[0], least, metric)
    else:
        margin = "" if everybody_did else "no other method reached it with every seed"
    category = f"Fewest {metric.noun} to {100 * target:g} %"
    return Winner(category, _names(level), amount(least, metric), margin, metric.noun)


def _cost_margin(second: MethodSummary, least: float, metric: Metric) -> str:
    cost = second.to_target[metric.name]
    more = f"{cost / least:,.2f} times as many" if least else amount(cost, metric)
    return f"{second.method} takes {more}"
