"""Compare a sweep's combinations: records, tables, a figure, and a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ssdfl.files import write_text
from ssdfl.records.scores import Goal
from ssdfl.records.sweep import Combination, Sweep
from ssdfl.records.tables import SWEEP_RECORDS, Row, write_swept_records
from ssdfl.report.comparison import comparison_page
from ssdfl.report.figures import COLOURS, save
from ssdfl.report.formats import write_csv, write_table_files
from ssdfl.report.grouping import group_by
from ssdfl.report.ranking import RunResults
from ssdfl.report.summary import MethodSummary, flat_columns, seeds_done, summarise_method
from ssdfl.report.tables import Table, summary_table


@dataclass(frozen=True)
class SweepResult:
    """One method's result for one combination: records per seed, a summary, and the goal."""

    combination: Combination
    runs: Mapping[int, Sequence[Row]]
    summary: MethodSummary
    goal: Goal

    @property
    def rows(self) -> list[Row]:
        """All records, with method and seed."""
        method = self.summary.method
        return [
            {"method": method, "seed": seed, **row}
            for seed, run in self.runs.items()
            for row in run
        ]


def sweep_results(sweep: Sweep, cache: Path) -> list[SweepResult]:
    """The results of each method with each combination whose runs the cache has finished."""
    goal = sweep.goal(cache)
    return [
        SweepResult(combination, runs, _summary(combination, method, runs, goal), goal)
        for combination in sweep.combinations
        for method, runs in combination.finished(cache).items()
        if runs
    ]


def _summary(
    combination: Combination, method: str, runs: Mapping[int, Sequence[Row]], goal: Goal
) -> MethodSummary:
    unfinished = seeds_done(len(runs), len(combination.experiment.seeds))
    return summarise_method(method, list(runs.values()), goal, unfinished)


def sweep_table(sweep: Sweep, results: Sequence[SweepResult]) -> Table:
    """One row per combination and method: the choices, then the summary."""
    headers, rows = summary_table([result.summary for result in results], _goal(results))
    with_choices = [
        [*map(str, result.combination.choices.values()), *row]
        for result, row in zip(results, rows, strict=True)
    ]
    return Table([*sweep.keys, *headers], with_choices)


def _goal(results: Sequence[SweepResult]) -> Goal:
    return results[0].goal if results else Goal()


def write_sweep(sweep: Sweep, results: Sequence[SweepResult], out: Path) -> list[Path]:
    """Write a sweep's records, table, figure and page into a folder; returns the paths."""
    records, table, page = (out / name for name in (SWEEP_RECORDS, "sweep.csv", "sweep.html"))
    _write_records(sweep, results, records)
    _write_csv(sweep, results, table)
    title = f"{sweep.name}: {len(sweep.combinations)} combinations"
    tables = write_table_files(out / "sweep", sweep_table(sweep, results), title)
    figure = plot_sweep(sweep, results)
    figures = [out / f"sweep.{kind}" for kind in ("png", "pdf")]
    for path in figures:
        save(figure, path)
    runs = _named_runs(sweep, results)
    write_text(page, comparison_page(sweep.name, runs, [sweep.command], _goal(results)))
    return [records, table, *tables, *figures, page]


def _write_records(sweep: Sweep, results: Sequence[SweepResult], path: Path) -> None:
    """All records, each with its combination's values."""
    found = [(result.combination.choices, row) for result in results for row in result.rows]
    swept = {key: [choices[key] for choices, _ in found] for key in sweep.keys}
    write_swept_records(path, swept, [row for _, row in found])


def _write_csv(sweep: Sweep, results: Sequence[SweepResult], path: Path) -> None:
    columns, values = flat_columns([result.summary for result in results])
    rows = (
        [*result.combination.choices.values(), *own]
        for result, own in zip(results, values, strict=True)
    )
    write_csv(path, [*sweep.keys, *columns], rows)  # a key may have the name of a column


def _named_runs(sweep: Sweep, results: Sequence[SweepResult]) -> list[RunResults]:
    """The combinations that have records, each named by its choices."""
    found = []
    for _, group in groupby(results, key=lambda result: id(result.combination)):
        own = list(group)
        combination = own[0].combination
        rows = [row for result in own for row in result.rows]
        found.append(
            RunResults(combination.experiment, rows, _combination_name(sweep, combination))
        )
    return found


def _combination_name(sweep: Sweep, combination: Combination) -> str:
    """Such as ``tau_a 3, tau_r 1``: the last words of the keys, or whole keys if these coincide."""
    names = [key.rpartition(".")[2] for key in sweep.keys]
    if len(set(names)) < len(names):
        names = list(sweep.keys)
    values = combination.choices.values()
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))


def plot_sweep(sweep: Sweep, results: Sequence[SweepResult]) -> Figure:
    """Plot the final score, and megabytes to the target, of each combination and method."""
    labels = ["\n".join(map(str, one.choices.values())) for one in sweep.combinations]
    width = min(24.0, max(6.4, 0.5 * len(labels) + 2))
    figure = Figure(figsize=(width, 6.4), layout="constrained")
    score, cost = figure.subplots(2, 1, sharex=True)
    goal = _goal(results)
    by_method = group_by(results, attrgetter("summary.method"))
    for number, (method, own) in enumerate(by_method.items()):
        shift = 0.6 * ((number + 0.5) / len(by_method) - 0.5)
        places = [sweep.combinations.index(result.combination) + shift for result in own]
        summaries = [result.summary for result in own]
        style = {"color": COLOURS[number % len(COLOURS)], "fmt": "o", "label": method}
        _plot_scores(score, places, summaries, style, goal.score.scale)
        _plot_cost(cost, places, summaries, style)
    score.set_ylabel(f"final {goal.header}")
    cost.set_ylabel(
        "megabytes, no target" if goal.target is None else f"megabytes to {goal.shown_target}"
    )
    cost.set_xticks(range(len(labels)), labels, parse_math=False)
    cost.set_xlabel(", ".join(sweep.keys))
    score.legend(frameon=False, ncols=len(by_method))
    return figure


def _plot_scores(
    axes: Axes,
    places: Sequence[float],
    summaries: Sequence[MethodSummary],
    style: Mapping[str, Any],
    scale: float,
) -> None:
    means = [summary.score / scale for summary in summaries]
    deviations = [summary.score_std / scale for summary in summaries]
    axes.errorbar(places, means, deviations, **style)


def _plot_cost(
    axes: Axes,
    places: Sequence[float],
    summaries: Sequence[MethodSummary],
    style: Mapping[str, Any],
) -> None:
    """Plot megabytes to the target where it was reached."""
    megabytes = [summary.to_target.get("sent_bytes", math.nan) / 1e6 for summary in summaries]
    axes.errorbar(places, megabytes, **style)
