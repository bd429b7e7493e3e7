"""The paper's figures from our runs: curves, points, bars, the bound against S, and costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from statistics import fmean, geometric_mean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ssdfl.records.artefacts import Artefact, Variant
from ssdfl.records.record import METRICS, Metric
from ssdfl.records.tables import Row, is_measured
from ssdfl.report.figures import COLOURS
from ssdfl.report.paper import Entry, Runs, half_width


def draw_artefact(artefact: Artefact, runs: Runs, numbers: Sequence[Entry]) -> Figure:
    """The figure: a small plot per panel, one colour per method, the paper's quoted numbers as crosses.

    The bound has a plot per panel and score, and one colour per τ_a.
    """
    plots = _plots(artefact, numbers)
    columns = 4 if artefact.kind == "costs" else min(3, len(plots))
    rows = math.ceil(len(plots) / columns)
    figure = Figure(figsize=(4.2 * columns, 3.2 * rows + 0.5), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, (title, own) in zip(grid.flat, plots.items(), strict=False):
        _DRAW[artefact.kind](axes, artefact, runs, own)
        axes.set_title(title.split(": ")[0], fontsize=10)
        axes.set_xlabel(artefact.axis or own[0].point)
        axes.set_ylabel("score over its least" if artefact.kind == "bound" else "accuracy %")
        axes.grid(alpha=0.3)
    for axes in grid.flat[len(plots) :]:
        axes.set_axis_off()
    handles, names = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    figure.suptitle(artefact.title)
    return figure


def _plots(artefact: Artefact, numbers: Sequence[Entry]) -> dict[str, list[Entry]]:
    """What each small plot shows, by its title."""
    plots: dict[str, list[Entry]] = {}
    for entry in numbers:
        first = _panel(artefact, entry.panel).thresholds[:1]
        if not entry.threshold or entry.threshold == f"{first[0]:g}":  # a curve shows all thresholds
            plots.setdefault(_title(artefact, entry), []).append(entry)
    return plots


def _title(artefact: Artefact, entry: Entry) -> str:
    titles = {"bound": f"{entry.series}, {entry.panel}", "costs": f"{entry.panel}: {entry.point}"}
    return titles.get(artefact.kind, entry.panel)


def _panel(artefact: Artefact, name: str) -> Variant:
    return next(panel for panel in artefact.panels if panel.name == name)


def _coloured(entries: Sequence[Entry]) -> Iterable[tuple[str, Entry]]:
    return zip(cycle(COLOURS), entries, strict=False)


def _draw_curves(axes: Axes, artefact: Artefact, runs: Runs, entries: Sequence[Entry]) -> None:
    for colour, entry in _coloured(entries):
        of_seeds = runs[entry.panel, entry.point, entry.series]
        cycles = [row["cycle"] for row in of_seeds[0] if is_measured(row, artefact.reading)]
        by_cycle = [[run[k - 1][artefact.reading] for run in of_seeds] for k in cycles]
        _draw_band(axes, cycles, by_cycle, colour, entry.series)
        if entry.paper:
            axes.plot(cycles[-1], 100 * float(entry.paper), "x", color=colour, markersize=8)
    axes.set_ylim(0, 100)


def _draw_band(
    axes: Axes, cycles: Sequence[int], by_cycle: Sequence[Sequence[float]], colour: str, label: str
) -> None:
    """Means over seeds in per cent, in the band of their confidence intervals."""
    middle = [100 * fmean(values) for values in by_cycle]
    spread = [100 * (half_width(values) or 0.0) for values in by_cycle]
    low, high = ([m + sign * s for m, s in zip(middle, spread, strict=True)] for sign in (-1, 1))
    axes.plot(cycles, middle, color=colour, label=label, linewidth=1.6)
    axes.fill_between(cycles, low, high, color=colour, alpha=0.12, linewidth=0)


def _by_series(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    series: dict[str, list[Entry]] = {}
    for entry in entries:
        series.setdefault(entry.series, []).append(entry)
    return series


def _percents(entries: Sequence[Entry]) -> tuple[list[float], list[float]]:
    """Values and half widths of their confidence intervals."""
    values = [100 * (entry.value or math.nan) for entry in entries]
    errors = [100 * (entry.half_width or 0.0) for entry in entries]
    return values, errors


def _draw_points(axes: Axes, artefact: Artefact, runs: Runs, entries: Sequence[Entry]) -> None:
    for colour, (name, own) in zip(cycle(COLOURS), _by_series(entries).items(), strict=False):
        x = [float(entry.point) for entry in own]
        y, errors = _percents(own)
        axes.errorbar(x, y, errors, color=colour, label=name, marker="o", markersize=4, capsize=2)
        _draw_papers(axes, x, own, colour, 8)
    axes.set_ylim(0, 100)


def _draw_bars(axes: Axes, artefact: Artefact, runs: Runs, entries: Sequence[Entry]) -> None:
    series = _by_series(entries)
    width = 0.8 / len(series)
    for place, (name, own) in enumerate(series.items()):
        left = (place - (len(series) - 1) / 2) * width
        x = [k + left for k in range(len(own))]
        y, errors = _percents(own)
        axes.bar(x, y, width, yerr=errors, color=COLOURS[place], label=name, error_kw={"elinewidth": 0.8})
        _draw_papers(axes, x, own, "black", 6)
    axes.set_xticks(range(len(artefact.points)), [point.name for point in artefact.points])
    axes.set_ylim(0, 100)


def _draw_papers(axes: Axes, x: Sequence[float], entries: Sequence[Entry], colour: str, size: float) -> None:
    """A cross for each number that the paper quotes."""
    for at, entry in zip(x, entries, strict=True):
        if entry.paper:
            axes.plot(at, 100 * float(entry.paper), "x", color=colour, markersize=size)


def _draw_bound(axes: Axes, artefact: Artefact, runs: Runs, entries: Sequence[Entry]) -> None:
    """Scores of each τ_a over its least, a geometric mean over seeds; none where the theorem fails."""
    for colour, entry in _coloured(entries):
        by_number: dict[int, list[float]] = {}
        for run in runs[entry.panel, entry.point, entry.series]:
            for number, score in _relative_scores(run).items():
                by_number.setdefault(number, []).append(score)
        numbers = sorted(by_number)
        middle = [geometric_mean(by_number[number]) for number in numbers]
        axes.plot(numbers, middle, color=colour, marker="o", markersize=4, label=entry.point)
    axes.set_yscale("log")
    first = runs[entries[0].panel, entries[0].point, entries[0].series][0]
    axes.set_xlim(0, max(row["clusters"] for row in first) + 1)


def _relative_scores(run: Sequence[Row]) -> dict[int, float]:
    """The finite scores over the least of them, by the number of clusters."""
    finite = {row["clusters"]: row["score"] for row in run if math.isfinite(row["score"])}
    least = min(finite.values(), default=1.0)
    return {number: score / least for number, score in finite.items()}


def _draw_costs(axes: Axes, artefact: Artefact, runs: Runs, entries: Sequence[Entry]) -> None:
    cost = next(metric for metric in METRICS.values() if metric.label == entries[0].point)
    for colour, entry in _coloured(entries):
        of_seeds = runs[entry.panel, "", entry.series]
        tested = [k for k, row in enumerate(of_seeds[0]) if is_measured(row, artefact.reading)]
        x = _means(of_seeds, tested, cost)
        y = _means(of_seeds, tested, METRICS[artefact.reading])
        axes.plot(x, y, color=colour, label=entry.series, linewidth=1.6)
    if cost.log:
        axes.set_xscale("log")  # a server's relays cost a hundred times what neighbours do
    axes.set_ylim(0, 100)


def _means(of_seeds: Sequence[Sequence[Row]], places: Sequence[int], metric: Metric) -> list[float]:
    """Means over seeds of a metric, in its unit."""
    return [fmean(run[k][metric.name] for run in of_seeds) / metric.scale for k in places]


_DRAW: dict[str, Callable[[Axes, Artefact, Runs, Sequence[Entry]], None]] = {
    "costs": _draw_costs,
    "curves": _draw_curves,
    "bars": _draw_bars,
    "points": _draw_points,
    "bound": _draw_bound,
}
