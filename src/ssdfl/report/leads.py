"""Who won, and by how much, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ssdfl.report.numbers import data_size, number
from ssdfl.report.summary import MethodSummary

COSTS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("cycles", "cycles", number),
    ("bytes", "bytes", data_size),
    ("seconds", "simulated seconds", lambda seconds: f"{number(seconds)} s"),
)
LEVEL_POINTS = 0.05
LEVEL_SHARE = 0.005


@dataclass(frozen=True)
class Lead:
    """One thing that a run can be won by.

    Attributes:
        what: such as ``Fewest bytes to 85 %``.
        method: who won it; all of them where several take as many.
        value: the winner's number, with its unit.
        margin: how far ahead of whom; empty if there is nobody else.
        unit: what is counted of a cost.
    """

    what: str
    method: str
    value: str
    margin: str
    unit: str = ""


def leads(field: Sequence[MethodSummary], target: float) -> list[Lead]:
    """Who has the best final accuracy, and who took the least to the target with every seed.

    Methods that have not finished are not ranked.
    """
    whole = [summary for summary in field if not summary.unfinished]
    if not whole:
        return []
    racing = [summary for summary in whole if summary.seeds_at_target == summary.seeds]
    costs = [_least_cost(racing, len(whole), target, *cost) for cost in COSTS] if racing else []
    return [_best_accuracy(whole), *costs]


def verdict(field: Sequence[MethodSummary], target: float) -> str:
    """Who of the field was best and who was soonest, or how far each is if none has finished."""
    if not field:
        return "There is nothing to rank yet."
    found = leads(field, target)
    if not found:
        return _so_far(field)
    best, *soonest = found
    sentence = f"{best.what}: {best.method}, {best.value}{f', {best.margin}' if best.margin else ''}."
    if soonest:
        return f"{sentence} Soonest at {100 * target:g} %: {_by_winner(soonest)}."
    return f"{sentence} No method reached {100 * target:g} % with every seed."


def _so_far(field: Sequence[MethodSummary]) -> str:
    """``So far, after cycle 3: ssdfl 45.0 %, sdfl 40.2 %.``."""
    reached: dict[str, list[str]] = {}
    for summary in field:
        reached.setdefault(summary.unfinished, []).append(f"{summary.method} {100 * summary.accuracy:.1f} %")
    parts = [f"{where}: {', '.join(those)}" for where, those in reached.items()]
    return f"So far, {'; '.join(parts)}."


def _by_winner(soonest: Sequence[Lead]) -> str:
    """``sdfl by cycles (8), ssdfl by bytes (9.1 MB) and simulated seconds (3.1 s)``."""
    won: dict[str, list[str]] = {}
    for lead in soonest:
        won.setdefault(lead.method, []).append(f"{lead.unit} ({lead.value})")
    return ", ".join(f"{method} by {_listed(reasons)}" for method, reasons in won.items())


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _names(summaries: Sequence[MethodSummary]) -> str:
    return _listed([summary.method for summary in summaries])


def _best_accuracy(field: Sequence[MethodSummary]) -> Lead:
    best, *others = sorted(field, key=lambda summary: -summary.accuracy)
    value = f"{100 * best.accuracy:.1f} %"
    if not others:
        return Lead("Best final accuracy", best.method, value, "")
    level = [one for one in others if 100 * (best.accuracy - one.accuracy) < LEVEL_POINTS]
    rivals = level or others[:1]
    if level:
        margin = f"level with {_names(level)}"
    else:
        points = 100 * (best.accuracy - rivals[0].accuracy)
        spread = 100 * max(best.accuracy_std, rivals[0].accuracy_std)
        doubt = ", less than the spread over seeds" if points < spread else ""
        margin = f"{points:.1f} points ahead of {rivals[0].method}{doubt}"
    one_seed = any(summary.seeds == 1 for summary in (best, *rivals))
    return Lead(
        "Best final accuracy", best.method, value, margin + (", of one seed only" if one_seed else "")
    )


def _least_cost(
    racing: Sequence[MethodSummary],
    rivals: int,
    target: float,
    key: str,
    unit: str,
    shown: Callable[[float], str],
) -> Lead:
    def cost(summary: MethodSummary) -> float:
        return float(getattr(summary, f"{key}_to_target"))

    ordered = sorted(racing, key=cost)
    least = cost(ordered[0])
    level = [summary for summary in ordered if cost(summary) <= (1 + LEVEL_SHARE) * least]
    if len(level) < len(ordered):
        second = ordered[len(level)]
        more = f"{cost(second) / least:,.2f} times as many" if least else shown(cost(second))
        margin = f"{second.method} takes {more}"
    else:
        margin = "no other method reached it with every seed" if rivals > len(racing) else ""
    return Lead(f"Fewest {unit} to {100 * target:g} %", _names(level), shown(least), margin, unit)
