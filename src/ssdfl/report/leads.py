"""Who won, and by how much, in plain words; `central` is a reference, not a contender."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssdfl.report.summary import MethodSummary

REFERENCE = "central"
COSTS = (
    ("cycles", "cycles", "{:.3g}", 1.0),
    ("bytes", "bytes", "{:.1f} MB", 1e6),
    ("seconds", "simulated seconds", "{:.3g} s", 1.0),
)


@dataclass(frozen=True)
class Lead:
    """One thing that a run can be won by.

    Attributes:
        what: such as ``Fewest bytes to 85 %``.
        method: who won it.
        value: the winner's number, with its unit.
        margin: how far ahead of whom; empty if there is nobody else.
        unit: what is counted.
    """

    what: str
    method: str
    value: str
    margin: str
    unit: str


def contenders(summaries: Sequence[MethodSummary]) -> list[MethodSummary]:
    """All but the reference, or all if there is nobody else."""
    return [summary for summary in summaries if summary.method != REFERENCE] or list(summaries)


def leads(field: Sequence[MethodSummary], target: float) -> list[Lead]:
    """Who has the best final accuracy, and who took the least to the target with every seed."""
    if not field:
        return []
    racing = [summary for summary in field if summary.seeds_at_target == summary.seeds]
    costs = [_least_cost(racing, len(field), target, *cost) for cost in COSTS] if racing else []
    return [_best_accuracy(field), *costs]


def headline(summaries: Sequence[MethodSummary], target: float) -> str:
    """Who was best and who was soonest, in plain words."""
    field = contenders(summaries)
    if not field:
        return "Nothing has been tested yet."
    best, *soonest = leads(field, target)
    sentences = [f"{best.what}: {best.method}, {best.value}{f', {best.margin}' if best.margin else ''}."]
    if soonest:
        sentences.append(f"Soonest at {100 * target:g} %: {_by_winner(soonest)}.")
    else:
        sentences.append(f"No method reached {100 * target:g} % with every seed.")
    if len(field) < len(summaries):
        sentences.append(f"The reference {REFERENCE} is not ranked.")
    return " ".join(sentences)


def _by_winner(soonest: Sequence[Lead]) -> str:
    """``sdfl by cycles (8), ssdfl by bytes (9.1 MB) and simulated seconds (3.1 s)``."""
    won: dict[str, list[str]] = {}
    for lead in soonest:
        won.setdefault(lead.method, []).append(f"{lead.unit} ({lead.value})")
    return ", ".join(f"{method} by {_listed(reasons)}" for method, reasons in won.items())


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _best_accuracy(field: Sequence[MethodSummary]) -> Lead:
    best, *others = sorted(field, key=lambda summary: -summary.accuracy)
    margin = ""
    if others:
        points = 100 * (best.accuracy - others[0].accuracy)
        spread = 100 * max(best.accuracy_std, others[0].accuracy_std)
        doubt = ", less than the spread over seeds" if points < spread else ""
        ahead = f"{points:.1f} points ahead of" if points >= 0.05 else "level with"
        margin = f"{ahead} {others[0].method}{doubt if points >= 0.05 else ''}"
    return Lead("Best final accuracy", best.method, f"{100 * best.accuracy:.1f} %", margin, "points")


def _least_cost(
    racing: Sequence[MethodSummary], rivals: int, target: float, key: str, unit: str, form: str, scale: float
) -> Lead:
    def cost(summary: MethodSummary) -> float:
        return float(getattr(summary, f"{key}_to_target"))

    best, *others = sorted(racing, key=cost)
    if others:
        more = cost(others[0]) / cost(best) if cost(best) else 1.0
        margin = f"{others[0].method} takes {'as many' if more < 1.005 else f'{more:.2f} times as many'}"
    else:
        margin = "no other method reached it with every seed" if rivals > 1 else ""
    what = f"Fewest {unit} to {100 * target:g} %"
    return Lead(what, best.method, form.format(cost(best) / scale), margin, unit)
