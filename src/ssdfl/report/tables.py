"""Summaries as the tables that commands print and pages show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ssdfl.records.record import METRICS, Metric
from ssdfl.report.numbers import number
from ssdfl.report.summary import MethodSummary

COMPARED_COST = "sent_bytes"
"""The cost of a cycle that the table of costs also gives as a multiple of the least."""


class Table(NamedTuple):
    """A table's header and rows, as texts."""

    headers: list[str]
    rows: list[list[str]]


def summary_table(summaries: Sequence[MethodSummary], target: float) -> Table:
    """How good each method was, what it cost to reach the target, and what it cost in all."""
    ranked = [metric for metric in measured_costs(summaries) if metric.ranked]
    in_all = [metric for metric in ranked if metric.name != "cycle"]
    goal = f"to {100 * target:g}%"
    headers = [
        "method",
        "accuracy %",
        "worst %",
        *(f"{metric.column} {goal}" for metric in ranked),
        *(metric.column for metric in in_all),
    ]
    rows = [
        [
            _name(summary),
            _accuracy(summary),
            f"{100 * summary.accuracy_worst:.1f}",
            *(_to_target(summary, metric) for metric in ranked),
            *(_shown(summary.totals.get(metric.name), metric) for metric in in_all),
        ]
        for summary in summaries
    ]
    return Table(headers, rows)


def cost_table(summaries: Sequence[MethodSummary]) -> Table:
    """What methods cost, in all and a cycle."""
    costs = [metric for metric in measured_costs(summaries) if metric.name != "cycle"]
    columns = [column for metric in costs for column in _cost_columns(summaries, metric)]
    names = [_name(summary) for summary in summaries]
    headers, *rows = zip(["method", *names], *columns, strict=True)
    return Table(list(headers), [list(row) for row in rows])


def _cost_columns(summaries: Sequence[MethodSummary], metric: Metric) -> list[list[str]]:
    """A cost in all, a cycle's, and perhaps how many times the least that is; headers on top."""
    totals = [summary.totals.get(metric.name) for summary in summaries]
    of_cycle = [
        None if total is None else total / summary.cycles
        for total, summary in zip(totals, summaries, strict=True)
    ]
    columns = [
        [metric.column, *(_shown(total, metric) for total in totals)],
        [f"{metric.column} a cycle", *(_shown(cost, metric) for cost in of_cycle)],
    ]
    if metric.name == COMPARED_COST:
        least = min((cost for cost in of_cycle if cost is not None), default=0.0)
        multiples = [f"{cost / least:,.2f}" if cost and least else "–" for cost in of_cycle]
        columns.append([f"times the least {metric.column} a cycle", *multiples])
    return columns


def measured_costs(summaries: Sequence[MethodSummary]) -> list[Metric]:
    """The costs that every run has, and those that some of these have."""
    known = {name for summary in summaries for name in summary.totals}
    costs = [metric for metric in METRICS.values() if metric.axis]
    return [metric for metric in costs if metric.name in known or not metric.optional]


def _name(summary: MethodSummary) -> str:
    return f"{summary.method} ({summary.unfinished})" if summary.unfinished else summary.method


def _accuracy(summary: MethodSummary) -> str:
    mean = f"{100 * summary.accuracy:.1f}"
    return f"{mean} ±{100 * summary.accuracy_std:.1f}" if summary.seeds > 1 else mean


def _to_target(summary: MethodSummary, metric: Metric) -> str:
    cost = summary.to_target.get(metric.name)
    shown = _shown(cost, metric)
    if cost is None or summary.seeds_at_target == summary.seeds:
        return shown
    return f"{shown} ({summary.seeds_at_target}/{summary.seeds})"


def _shown(value: float | None, metric: Metric) -> str:
    return "–" if value is None else number(value / metric.scale)
