"""Summaries as the tables that commands print and pages show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ssdfl.records.record import COSTS, METRICS, READINGS, Metric
from ssdfl.report.numbers import number
from ssdfl.report.summary import MethodSummary

NONE = "–"
COMPARED_COST = "sent_bytes"
"""The cost of a cycle that the table of costs also gives as a multiple of the least."""


class Table(NamedTuple):
    """A table's header and rows, as texts."""

    headers: list[str]
    rows: list[list[str]]


def summary_table(summaries: Sequence[MethodSummary], target: float) -> Table:
    """How good each method was, what it cost to reach the target, and what it cost in all."""
    ranked = [metric for metric in measured_costs(summaries) if metric.ranked]
    columns = [
        ["method", *map(_name, summaries)],
        [_reading(summaries).column, *map(_accuracy, summaries)],
        *_worst_column(summaries),
        *(_column_to_target(summaries, metric, target) for metric in ranked),
        *(_column(metric.column, _totals(summaries, metric), metric) for metric in ranked[1:]),
    ]
    return _from_columns(columns)


def cost_table(summaries: Sequence[MethodSummary]) -> Table:
    """What methods cost, in all and a cycle."""
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


def _column_to_target(summaries: Sequence[MethodSummary], metric: Metric, target: float) -> list[str]:
    texts = [_to_target(summary, metric) for summary in summaries]
    return [f"{metric.column} to {100 * target:g}%", *texts]


def _column(header: str, values: Sequence[float], metric: Metric) -> list[str]:
    return [header, *(_shown(value, metric) for value in values)]


def _totals(summaries: Sequence[MethodSummary], metric: Metric) -> list[float]:
    """What whole runs cost; NaN for those that did not measure it."""
    return [summary.totals.get(metric.name, math.nan) for summary in summaries]


def _costs_of_cycle(summaries: Sequence[MethodSummary], metric: Metric) -> list[float]:
    return [summary.totals.get(metric.name, math.nan) / summary.cycles for summary in summaries]


def _multiples(costs: Sequence[float]) -> list[str]:
    """Each cost over the least; nothing where that is 0."""
    least = min(costs, default=0.0)
    return [f"{cost / least:,.2f}" if least > 0 else NONE for cost in costs]


def measured_costs(summaries: Sequence[MethodSummary]) -> list[Metric]:
    """The costs that every run has, and those that some of these have; cycles are the first."""
    always = {name for name in COSTS if not METRICS[name].optional}
    known = always.union(*(summary.totals for summary in summaries))
    return [METRICS[name] for name in COSTS if name in known]


def _name(summary: MethodSummary) -> str:
    return f"{summary.method} ({summary.unfinished})" if summary.unfinished else summary.method


def _accuracy(summary: MethodSummary) -> str:
    mean = f"{100 * summary.accuracy:.1f}"
    return f"{mean} ±{100 * summary.accuracy_std:.1f}" if summary.seeds > 1 else mean


def _reading(summaries: Sequence[MethodSummary]) -> Metric:
    """What is reported as accuracy; it is the same of all that share a table."""
    return METRICS[summaries[0].reading if summaries else READINGS[0]]


def _worst_column(summaries: Sequence[MethodSummary]) -> list[list[str]]:
    """The column of the worst device's accuracy; none where devices were not tested."""
    if summaries and all(math.isnan(summary.accuracy_worst) for summary in summaries):
        return []
    return [["worst %", *map(_worst_accuracy, summaries)]]


def _worst_accuracy(summary: MethodSummary) -> str:
    worst = summary.accuracy_worst
    return NONE if math.isnan(worst) else f"{100 * worst:.1f}"


def _to_target(summary: MethodSummary, metric: Metric) -> str:
    shown = _shown(summary.to_target.get(metric.name, math.nan), metric)
    if shown == NONE or summary.reached_target:
        return shown
    return f"{shown} ({summary.seeds_at_target}/{summary.seeds})"


def _shown(value: float, metric: Metric) -> str:
    return NONE if math.isnan(value) else number(value / metric.scale)
