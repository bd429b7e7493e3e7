"""The winners and their margins, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from ssdfl.records.record import METRICS, RANKED_COSTS, Metric
from ssdfl.records.scores import Goal, Score
from ssdfl.report.grouping import group_by
from ssdfl.report.numbers import amount, listed
from ssdfl.report.summary import MethodSummary

LEVEL_POINTS = 0.05
LEVEL_SHARE = 0.005


@dataclass(frozen=True)
class Winner:
    """The winner of one category.

    Attributes:
        category: its name, such as ``Fewest bytes to 85 %``.
        method: the winning method, or all of them in a tie.
        value: the winner's number, with its unit.
        margin: the lead over the second; empty if there is no other method.
        noun: the counted units, if the category is a cost.
    """

    category: str
    method: str
    value: str
    margin: str
    noun: str = ""


def winners(summaries: Sequence[MethodSummary], goal: Goal) -> list[Winner]:
    """The best final score, and the lowest of each cost to the target with every seed.

    Methods that have not finished are not ranked.
    """
    finished = [summary for summary in summaries if summary.finished]
    if not finished:
        return []
    return [_best_score(finished, goal), *_soonest(finished, goal)]


def _soonest(finished: Sequence[MethodSummary], goal: Goal) -> list[Winner]:
    """The winner of each cost that is known for all methods that reached the target."""
    reached = [
        summary for summary in finished if goal.target is not None and summary.reached_target
    ]
    everybody_did = len(reached) == len(finished)
    return [_least_cost(reached, everybody_did, goal, cost) for cost in _shared_costs(reached)]


def _shared_costs(summaries: Sequence[MethodSummary]) -> list[Metric]:
    """The costs to the target that are known for all given methods."""
    if not summaries:
        return []
    shared = set.intersection(*(set(summary.to_target) for summary in summaries))
    return [METRICS[name] for name in RANKED_COSTS if name in shared]


def verdict(summaries: Sequence[MethodSummary], goal: Goal) -> str:
    """The best and the fastest method, or the progress of each if none has finished."""
    if not summaries:
        return "There is nothing to rank yet."
    found = winners(summaries, goal)
    if not found:
        return _so_far(summaries, goal.score)
    best, *soonest = found
    said = [best.method, best.value, best.margin]
    sentence = f"{best.category}: {', '.join(filter(None, said))}."
    if soonest:
        return f"{sentence} Soonest at {goal.named_target}: {_by_winner(soonest)}."
    if goal.target is None:
        return sentence
    return f"{sentence} No method reached {goal.named_target} with every seed."


def _so_far(summaries: Sequence[MethodSummary], score: Score) -> str:
    """``So far, after cycle 3: ssdfl 45.0 %, sdfl 40.2 %.``."""
    by_progress = group_by(summaries, attrgetter("unfinished"))
    parts = [f"{where}: {_final_scores(those, score)}" for where, those in by_progress.items()]
    return f"So far, {'; '.join(parts)}."


def _final_scores(summaries: Sequence[MethodSummary], score: Score) -> str:
    return ", ".join(f"{summary.method} {score.shown(summary.score)}" for summary in summaries)


def _by_winner(soonest: Sequence[Winner]) -> str:
    """``sdfl by cycles (8), ssdfl by bytes (9.1 MB) and simulated seconds (3.1 s)``."""
    by_method = group_by(soonest, attrgetter("method"))
    return ", ".join(
        f"{method} by {listed(map(_reason, won))}" for method, won in by_method.items()
    )


def _reason(winner: Winner) -> str:
    return f"{winner.noun} ({winner.value})"


def _names(summaries: Sequence[MethodSummary]) -> str:
    return listed(summary.method for summary in summaries)


def _best_score(summaries: Sequence[MethodSummary], goal: Goal) -> Winner:
    score = goal.score
    best, *others = sorted(summaries, key=lambda summary: -score.sign * summary.score)
    margin = _margin(best, others, score) if others else ""
    return Winner(f"{score.best} final {goal.noun}", best.method, score.shown(best.score), margin)


def _margin(best: MethodSummary, others: Sequence[MethodSummary], score: Score) -> str:
    """The lead of the best over the second, and how certain it is."""
    level = [one for one in others if _lead(best, one, score) < _level(best, score)]
    if level:
        return f"level with {_names(level)}{_one_seed_only(best, *level)}"
    second = others[0]
    return f"{_ahead(best, second, score)}{_one_seed_only(best, second)}"


def _level(best: MethodSummary, score: Score) -> float:
    """A lead that is too small to count: less than the last digit shown."""
    return LEVEL_POINTS if score.unit == "%" else LEVEL_SHARE * abs(best.score) / score.scale


def _one_seed_only(*summaries: MethodSummary) -> str:
    return ", of one seed only" if min(summary.seeds for summary in summaries) == 1 else ""


def _ahead(best: MethodSummary, second: MethodSummary, score: Score) -> str:
    lead = _lead(best, second, score)
    spread = max(best.score_std, second.score_std) / score.scale
    doubt = ", less than the spread over seeds" if lead < spread else ""
    points = f"{lead:.1f} points" if score.unit == "%" else score.shown(lead * score.scale)
    where = "ahead of" if score.better == "higher" else "below"
    return f"{points} {where} {second.method}{doubt}"


def _lead(best: MethodSummary, other: MethodSummary, score: Score) -> float:
    """The difference of two scores in their unit, positive if the first is better."""
    return score.sign * (best.score - other.score) / score.scale


def _least_cost(
    reached: Sequence[MethodSummary], everybody_did: bool, goal: Goal, metric: Metric
) -> Winner:
    ordered = sorted(reached, key=lambda summary: summary.to_target[metric.name])
    least = ordered[0].to_target[metric.name]
    level = [one for one in ordered if one.to_target[metric.name] <= (1 + LEVEL_SHARE) * least]
    slower = ordered[len(level) :]
    margin = "" if everybody_did else "no other method reached it with every seed"
    if slower:
        margin = _cost_margin(slower[0], least, metric)
    category = f"Fewest {metric.noun} to {goal.named_target}"
    return Winner(category, _names(level), amount(least, metric), margin, metric.noun)


def _cost_margin(second: MethodSummary, least: float, metric: Metric) -> str:
    cost = second.to_target[metric.name]
    more = f"{cost / least:,.2f} times as many" if least else amount(cost, metric)
    return f"{second.method} takes {more}"
