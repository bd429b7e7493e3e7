"""The paper's figures from our runs: curves, points, bars, the bound against S, and costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, cycle
from operator import attrgetter, itemgetter
from statistics import fmean, geometric_mean

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from ssdfl.records.artefacts import Artefact, Variant
from ssdfl.records.record import METRICS, Metric
from ssdfl.records.tables import Row, is_measured
from ssdfl.report.figures import COLOURS
from ssdfl.report.grouping import group_by
from ssdfl.report.paper import (
    NONE,
    Entry,
    Runs,
    accuracy_sentence,
    by_series,
    half_width,
)

COLUMNS = {"costs": 4, "table": 2}
X_LABELS = {"table": "accuracy to reach"}
Y_LABELS = {"bound": "score over its least", "table": "global cycles"}
NOTES = {
    "table": "Dot: ours, mean over seeds and 95 % interval. Cross: the paper's. "
    "At the top: not reached.\n"
    "Ring: when the mean over seeds gets there, though not every seed does."
}
"""How to read a figure, by the kind of its artefact."""


def plot_artefact(artefact: Artefact, runs: Runs, numbers: Sequence[Entry]) -> Figure:
    """The figure: a plot per panel, a colour per method, the paper's numbers as crosses.

    The bound has a plot per panel and score, and one colour per τ_a.
    """
    plots = _plots(artefact, numbers)
    columns = COLUMNS.get(artefact.kind, min(3, len(plots)))
    rows = math.ceil(len(plots) / columns)
    figure = Figure(figsize=(4.2 * columns, 3.2 * rows + 0.5), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, (title, own) in zip(grid.flat, plots.items(), strict=False):
        _DRAW[artefact.kind](axes, artefact, runs, own)
        axes.set_title(title.split(": ")[0], fontsize=10)
        axes.set_xlabel(X_LABELS.get(artefact.kind, artefact.axis or own[0].point))
        axes.set_ylabel(Y_LABELS.get(artefact.kind, "accuracy %"))
        axes.grid(alpha=0.3)
    for axes in grid.flat[len(plots) :]:
        axes.set_axis_off()
    named = _handles(artefact, grid.flat[: len(plots)])
    names, handles = list(named), list(named.values())
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    notes = (artefact.title, accuracy_sentence(artefact), NOTES.get(artefact.kind, ""))
    figure.suptitle("\n".join(filter(None, notes)), fontsize=10)
    return figure


def _handles(artefact: Artefact, plots: Iterable[Axes]) -> dict[str, Artist]:
    """What the legend shows by name, in the order of the series; some may lack in some plots."""
    found: dict[str, Artist] = {}
    for axes in plots:
        handles, names = axes.get_legend_handles_labels()
        found = dict(zip(names, handles, strict=True)) | found
    order = {series.name: place for place, series in enumerate(artefact.series)}
    return {name: found[name] for name in sorted(found, key=lambda name: order.get(name, 0))}


def _plots(artefact: Artefact, numbers: Sequence[Entry]) -> dict[str, list[Entry]]:
    """The entries of each plot, by title: one entry per curve with all thresholds.

    A table's plot shows every entry.
    """
    if artefact.kind == "table":
        return group_by(numbers, attrgetter("panel"))
    drawn = [
        entry
        for entry in numbers
        if entry.threshold in ("", _first_threshold(artefact, entry.panel))
    ]
    return group_by(drawn, partial(_title, artefact))


def _first_threshold(artefact: Artefact, panel: str) -> str:
    thresholds = next(one.thresholds for one in artefact.panels if one.name == panel)
    return f"{thresholds[0]:g}" if thresholds else ""


def _title(artefact: Artefact, entry: Entry) -> str:
    titles = {"bound": f"{entry.series}, {entry.panel}", "costs": f"{entry.panel}: {entry.point}"}
    return titles.get(artefact.kind, entry.panel)


def _colours(variants: Sequence[Variant]) -> dict[str, str]:
    """The colour of each series or point by name, the same in all plots."""
    return {one.name: colour for one, colour in zip(variants, cycle(COLOURS), strict=False)}


def _plot_curves(axes: Axes, artefact: Artefact, runs: Runs, entries: Sequence[Entry]) -> None:
    colours = _colours(artefact.series)
    for entry in entries:
        colour = colours[entry.series]
        of_seeds = runs[entry.panel, entry.point, entry.series]
        cycles = [of_seeds[0][k]["cycle"] for k in _tested(of_seeds, artefact)]
        by_cycle = [
            [run[k][artefact.reading] for run in of_seeds] for k in _tested(of_seeds, artefact)
        ]
        _plot_band(axes, cycles, by_cycle, colour, entry.series)
        _plot_papers(axes, cycles[-1:], [entry], colour, 8)
    axes.set_ylim(0, 100)


def _tested(of_seeds: Sequence[Sequence[Row]], artefact: Artefact) -> list[int]:
    """The positions of records with a test."""
    return [k for k, row in enumerate(of_seeds[0]) if is_measured(row, artefact.reading)]


def _plot_band(
    axes: Axes, cycles: Sequence[int], by_cycle: Sequence[Sequence[float]], colour: str, label: str
) -> None:
    """Plot means over seeds in per cent, with a band of their confidence intervals."""
    middle = np.array([100 * fmean(values) for values in by_cycle])
    spread = np.array([100 * (half_width(values) or 0.0) for values in by_cycle])
    axes.plot(cycles, middle, color=colour, label=label, linewidth=1.6)
    axes.fill_between(
        cycles, middle - spread, middle + spread, color=colour, alpha=0.12, linewidth=0
    )


def _percents(entries: Sequence[Entry]) -> tuple[list[float], list[float]]:
    """Values and half widths of their confidence intervals, in per cent."""
    values = [100 * (entry.value or math.nan) for entry in entries]
    errors = [100 * (entry.half_width or 0.0) for entry in entries]
    return values, errors


def _plot_table(axes: Axes, artefact: Artefact, runs: Runs, entries: Sequence[Entry]) -> None:
    """Plot our numbers and the paper's side by side, grouped by threshold, then by method."""
    series, colours = by_series(artefact, entries), _colours(artefact.series)
    top = 1.05 * artefact.cases[0].experiment.cycles
    for place, (name, own) in enumerate(series.items()):
        colour = colours[name]
        shift = 0.8 * ((place + 0.5) / len(series) - 0.5)
        for k, entry in enumerate(own):
            _plot_ours(axes, k + shift - 0.02, entry, colour, top)
            _plot_reported(axes, k + shift + 0.02, entry, colour, top)
        axes.plot([], [], "o", color=colour, label=name)
    axes.set_xticks(range(len(own)), [f"{100 * float(entry.threshold):g} %" for entry in own])
    axes.set_ylim(0, 1.1 * top)


def _plot_ours(axes: Axes, x: float, entry: Entry, colour: str, top: float) -> None:
    """Plot a dot with its interval, a ring if only the mean gets there, or a mark at the top."""
    if entry.value is not None:
        half = entry.half_width or 0.0
        axes.errorbar([x], [entry.value], [half], fmt="o", color=colour, markersize=4, capsize=2)
        return
    height = top if entry.of_mean is None else entry.of_mean
    marker = "^" if entry.of_mean is None else "o"
    axes.plot(x, height, marker, color=colour, markersize=4, markerfacecolor="none")


def _plot_reported(axes: Axes, x: float, entry: Entry, colour: str, top: float) -> None:
    """Plot a cross at the paper's number, or at the top if it has a dash."""
    if entry.paper:
        axes.plot(
            x, top if entry.paper == NONE else float(entry.paper), "x", color=colour, markersize=6
        )


def _plot_points(axes: Axes, artefact: Artefact, runs: Runs, entries: Sequence[Entry]) -> None:
    colours = _colours(artefact.series)
    for name, own in by_series(artefact, entries).items():
        colour = colours[name]
        x = [float(entry.point) for entry in own]
        y, errors = _percents(own)
        axes.errorbar(x, y, errors, color=colour, label=name, marker="o", markersize=4, capsize=2)
        _plot_papers(axes, x, own, colour, 8)
    axes.set_ylim(0, 100)


def _plot_bars(axes: Axes, artefact: Artefact, runs: Runs, entries: Sequence[Entry]) -> None:
    series, colours = by_series(artefact, entries), _colours(artefact.series)
    places = {point.name: place for place, point in enumerate(artefact.points)}
    width, bare = 0.8 / len(series), {"elinewidth": 0.8}
    for place, (name, own) in enumerate(series.items()):
        left = (place - (len(series) - 1) / 2) * width
        x = [places[entry.point] + left for entry in own]
        y, errors = _percents(own)
        axes.bar(x, y, width, yerr=errors, color=colours[name], label=name, error_kw=bare)
        _plot_papers(axes, x, own, "black", 6)
    axes.set_xticks(list(places.values()), list(places))
    axes.set_ylim(0, 100)


def _plot_papers(
    axes: Axes, x: Sequence[float], entries: Sequence[Entry], colour: str, size: float
) -> None:
    """Plot a cross for each number that the paper quotes."""
    for at, entry in zip(x, entries, strict=True):
        if entry.paper:
            axes.plot(at, 100 * float(entry.paper), "x", color=colour, markersize=size)


def _plot_bound(axes: Axes, artefact: Artefact, runs: Runs, entries: Sequence[Entry]) -> None:
    """Plot scores over the lowest of each τ_a, as geometric means over seeds where defined."""
    colours = _colours(artefact.points)
    for entry in entries:
        colour = colours[entry.point]
        of_seeds = map(_relative_scores, runs[entry.panel, entry.point, entry.series])
        scores = sorted(chain.from_iterable(of_seed.items() for of_seed in of_seeds))
        by_number = group_by(scores, itemgetter(0))
        middle = [geometric_mean(score for _, score in own) for own in by_number.values()]
        axes.plot(
            list(by_number), middle, color=colour, marker="o", markersize=4, label=entry.point
        )
    axes.set_yscale("log")
    first = runs[entries[0].panel, entries[0].point, entries[0].series][0]
    axes.set_xlim(0, max(row["clusters"] for row in first) + 1)
    if not any(entry.reached for entry in entries):
        axes.text(0.5, 0.5, "infinite at every S", ha="center", transform=axes.transAxes)


def _relative_scores(run: Sequence[Row]) -> dict[int, float]:
    """The finite scores divided by the lowest of them, by the number of clusters."""
    finite = {row["clusters"]: row["score"] for row in run if math.isfinite(row["score"])}
    least = min(finite.values(), default=1.0)
    return {number: score / least for number, score in finite.items()}


def _plot_costs(axes: Axes, artefact: Artefact, runs: Runs, entries: Sequence[Entry]) -> None:
    cost = next(metric for metric in METRICS.values() if metric.label == entries[0].point)
    colours = _colours(artefact.series)
    for entry in entries:
        of_seeds = runs[entry.panel, "", entry.series]
        tested = _tested(of_seeds, artefact)
        x = _means(of_seeds, tested, cost)
        y = _means(of_seeds, tested, METRICS[artefact.reading])
        axes.plot(x, y, color=colours[entry.series], label=entry.series, linewidth=1.6)
    if cost.log:
        axes.set_xscale("log")  # a server's relays cost a hundred times what neighbours do
        axes.xaxis.set_minor_formatter(NullFormatter())  # within a decade they would overlap
    axes.set_ylim(0, 100)


def _means(of_seeds: Sequence[Sequence[Row]], places: Sequence[int], metric: Metric) -> list[float]:
    """Means over seeds of a metric, in its unit."""
    return [fmean(run[k][metric.name] for run in of_seeds) / metric.scale for k in places]


_DRAW: dict[str, Callable[[Axes, Artefact, Runs, Sequence[Entry]], None]] = {
    "costs": _plot_costs,
    "curves": _plot_curves,
    "bars": _plot_bars,
    "points": _plot_points,
    "table": _plot_table,
    "bound": _plot_bound,
}
