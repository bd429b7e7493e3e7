"""Tables of summaries, which commands print and pages show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ssdfl.records.record import COSTS, METRICS, Metric
from ssdfl.records.scores import Goal, Score
from ssdfl.report.numbers import number
from ssdfl.report.summary import MethodSummary

NONE = "–"
COMPARED_COST = "sent_bytes"
"""The cost per cycle that the table of costs also gives as a multiple of the lowest."""


class Table(NamedTuple):
    """A table's header and rows, as texts."""

    headers: list[str]
    rows: list[list[str]]


def summary_table(summaries: Sequence[MethodSummary], goal: Goal) -> Table:
    """Each method's score, its cost to the target, and its total cost."""
    ranked = [metric for metric in measured_costs(summaries) if metric.ranked]
    to_target = [] if goal.target is None else ranked
    columns = [
        ["method", *map(_name, summaries)],
        *_score_columns(summaries, goal),
        *(_column_to_target(summaries, metric, goal) for metric in to_target),
        *(_column(metric.column, _totals(summaries, metric), metric) for metric in ranked[1:]),
    ]
    return _from_columns(columns)


def _score_columns(summaries: Sequence[MethodSummary], goal: Goal) -> list[list[str]]:
    """Mean and worst score of all devices, or of the honest ones together with the liars' score."""
    score = goal.score
    final = [_final_score(summary, score) for summary in summaries]
    if not any(summary.lied_to for summary in summaries):
        return [[goal.header, *final], *_worst_column(summaries, score, "worst")]
    liars = [NONE if one.liar_score is None else score.number(one.liar_score) for one in summaries]
    return [
        [_with_unit("honest", score), *final],
        *_worst_column(summaries, score, "worst honest"),
        [_with_unit("liars", score), *liars],
    ]


def _with_unit(text: str, score: Score) -> str:
    return f"{text} {score.unit}".rstrip()


def cost_table(summaries: Sequence[MethodSummary]) -> Table:
    """The costs of methods, in total and per cycle."""
    columns = [["method", *map(_name, summaries)]]
    for metric in measured_costs(summaries)[1:]:
        totals, of_cycle = _totals(summaries, metric), _costs_of_cycle(summaries, metric)
        columns.append(_column(metric.column, totals, metric))
        columns.append(_column(f"{metric.column} a cycle", of_cycle, metric))
        if metric.name == COMPARED_COST:
            columns.append([f"times the least {metric.column} a cycle", *_multiples(of_cycle)])
    return _from_columns(columns)


def _from_columns(columns: Sequence[Sequence[str]]) -> Table:
    """A table from its columns, whose first texts are the headers."""
    headers, *rows = map(list, zip(*columns, strict=True))
    return Table(headers, rows)


def _column_to_target(summaries: Sequence[MethodSummary], metric: Metric, goal: Goal) -> list[str]:
    texts = [_to_target(summary, metric) for summary in summaries]
    return [f"{metric.column} to {goal.shown_target.replace(' %', '%')}", *texts]


def _column(header: str, values: Sequence[float], metric: Metric) -> list[str]:
    return [header, *(_shown(value, metric) for value in values)]


def _totals(summaries: Sequence[MethodSummary], metric: Metric) -> list[float]:
    """The costs of complete runs; NaN for runs that did not measure them."""
    return [summary.totals.get(metric.name, math.nan) for summary in summaries]


def _costs_of_cycle(summaries: Sequence[MethodSummary], metric: Metric) -> list[float]:
    return [summary.totals.get(metric.name, math.nan) / summary.cycles for summary in summaries]


def _multiples(costs: Sequence[float]) -> list[str]:
    """Each cost divided by the lowest; a dash if that is 0."""
    least = min(costs, default=0.0)
    return [f"{cost / least:,.2f}" if least > 0 else NONE for cost in costs]


def measured_costs(summaries: Sequence[MethodSummary]) -> list[Metric]:
    """The costs that every run has, and the ones that some of these have; cycles come first."""
    always = {name for name in COSTS if not METRICS[name].optional}
    known = always.union(*(summary.totals for summary in summaries))
    return [METRICS[name] for name in COSTS if name in known]


def _name(summary: MethodSummary) -> str:
    return f"{summary.method} ({summary.unfinished})" if summary.unfinished else summary.method


def _worst_column(summaries: Sequence[MethodSummary], score: Score, title: str) -> list[list[str]]:
    """The column of the worst device's score, if devices were tested."""
    worst = [summary.score_worst for summary in summaries]
    if worst and all(map(math.isnan, worst)):
        return []
    texts = (NONE if math.isnan(value) else score.number(value) for value in worst)
    return [[_with_unit(title, score), *texts]]


def _final_score(summary: MethodSummary, score: Score) -> str:
    mean = score.number(summary.score)
    return f"{mean} ±{score.number(summary.score_std)}" if summary.seeds > 1 else mean


def _to_target(summary: MethodSummary, metric: Metric) -> str:
    shown = _shown(summary.to_target.get(metric.name, math.nan), metric)
    if shown == NONE or summary.reached_target:
        return shown
    return f"{shown} ({summary.seeds_at_target}/{summary.seeds})"


def _shown(value: float, metric: Metric) -> str:
    return NONE if math.isnan(value) else number(value / metric.scale)
