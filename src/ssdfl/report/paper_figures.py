"""The paper's figures from our runs: curves, points, bars, the bound against S, and costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, geometric_mean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ssdfl.records.artefacts import Artefact, Variant
from ssdfl.records.folder import measured
from ssdfl.report.figures import AXES, COLOURS, UNIT
from ssdfl.report.paper import Cell, Runs, half_width


def draw(artefact: Artefact, runs: Runs, numbers: Sequence[Cell]) -> Figure:
    """The figure: a small plot per panel, one colour per method, the paper's quoted numbers as crosses.

    The bound has a plot per panel and score, and one colour per τ_a.
    """
    of_plots: dict[str, list[Cell]] = {}
    for cell in numbers:
        if cell.threshold and cell.threshold != f"{_panel(artefact, cell.panel).thresholds[0]:g}":
            continue  # a curve shows all thresholds
        titles = {"bound": f"{cell.series}, {cell.panel}", "costs": f"{cell.panel}: {cell.point}"}
        of_plots.setdefault(titles.get(artefact.kind, cell.panel), []).append(cell)
    columns = 4 if artefact.kind == "costs" else min(3, len(of_plots))
    rows = math.ceil(len(of_plots) / columns)
    figure = Figure(figsize=(4.2 * columns, 3.2 * rows + 0.5), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, (title, of_plot) in zip(grid.flat, of_plots.items(), strict=False):
        _DRAW[artefact.kind](axes, artefact, runs, of_plot)
        axes.set_title(title.split(": ")[0], fontsize=10)
        axes.set_xlabel(artefact.axis or of_plot[0].point)
        axes.set_ylabel("score over its least" if artefact.kind == "bound" else "accuracy %")
        axes.grid(alpha=0.3)
    for axes in grid.flat[len(of_plots) :]:
        axes.set_axis_off()
    handles, names = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    figure.suptitle(artefact.title)
    return figure


def _panel(artefact: Artefact, name: str) -> Variant:
    return next(panel for panel in artefact.panels if panel.name == name)


def _draw_curves(axes: Axes, artefact: Artefact, runs: Runs, of_panel: Sequence[Cell]) -> None:
    for place, cell in enumerate(of_panel):
        of_seeds = runs[cell.panel, cell.point, cell.series]
        cycles = [row["cycle"] for row in of_seeds[0] if measured(row, artefact.reading)]
        at = [[run[cycle - 1][artefact.reading] for run in of_seeds] for cycle in cycles]
        middle = [100 * fmean(values) for values in at]
        spread = [100 * (half_width(values) or 0.0) for values in at]
        axes.plot(cycles, middle, color=COLOURS[place], label=cell.series, linewidth=1.6)
        low, high = ([m + sign * s for m, s in zip(middle, spread, strict=True)] for sign in (-1, 1))
        axes.fill_between(cycles, low, high, color=COLOURS[place], alpha=0.12, linewidth=0)
        if cell.paper:
            axes.plot(cycles[-1], 100 * float(cell.paper), "x", color=COLOURS[place], markersize=8)
    axes.set_ylim(0, 100)


def _by_series(of_panel: Sequence[Cell]) -> dict[str, list[Cell]]:
    series: dict[str, list[Cell]] = {}
    for cell in of_panel:
        series.setdefault(cell.series, []).append(cell)
    return series


def _draw_points(axes: Axes, artefact: Artefact, runs: Runs, of_panel: Sequence[Cell]) -> None:
    for place, (name, row) in enumerate(_by_series(of_panel).items()):
        x = [float(cell.point) for cell in row]
        y = [100 * (cell.value or math.nan) for cell in row]
        error = [100 * (cell.half_width or 0.0) for cell in row]
        axes.errorbar(x, y, error, color=COLOURS[place], label=name, marker="o", markersize=4, capsize=2)
        told = [(float(cell.point), 100 * float(cell.paper)) for cell in row if cell.paper]
        for point in told:
            axes.plot(*point, "x", color=COLOURS[place], markersize=8)
    axes.set_ylim(0, 100)


def _draw_bars(axes: Axes, artefact: Artefact, runs: Runs, of_panel: Sequence[Cell]) -> None:
    series = _by_series(of_panel)
    width = 0.8 / len(series)
    for place, (name, row) in enumerate(series.items()):
        x = [k + (place - (len(series) - 1) / 2) * width for k in range(len(row))]
        y = [100 * (cell.value or math.nan) for cell in row]
        error = [100 * (cell.half_width or 0.0) for cell in row]
        axes.bar(x, y, width, yerr=error, color=COLOURS[place], label=name, error_kw={"elinewidth": 0.8})
        for at, cell in zip(x, row, strict=True):
            if cell.paper:
                axes.plot(at, 100 * float(cell.paper), "kx", markersize=6)
    axes.set_xticks(range(len(artefact.points)), [point.name for point in artefact.points])
    axes.set_ylim(0, 100)


def _draw_bound(axes: Axes, artefact: Artefact, runs: Runs, of_plot: Sequence[Cell]) -> None:
    """Scores of each τ_a over its least, a geometric mean over seeds; none where the theorem fails."""
    for place, cell in enumerate(of_plot):
        by_number: dict[int, list[float]] = {}
        for run in runs[cell.panel, cell.point, cell.series]:
            finite = {row["clusters"]: row["score"] for row in run if math.isfinite(row["score"])}
            for number, score in finite.items():
                by_number.setdefault(number, []).append(score / min(finite.values()))
        numbers = sorted(by_number)
        middle = [geometric_mean(by_number[number]) for number in numbers]
        axes.plot(numbers, middle, color=COLOURS[place], marker="o", markersize=4, label=cell.point)
    axes.set_yscale("log")
    axes.set_xlim(
        0, max(row["clusters"] for row in runs[of_plot[0].panel, of_plot[0].point, of_plot[0].series][0]) + 1
    )


def _draw_costs(axes: Axes, artefact: Artefact, runs: Runs, of_plot: Sequence[Cell]) -> None:
    along = next(key for key, name in AXES.items() if name == of_plot[0].point)
    for place, cell in enumerate(of_plot):
        of_seeds = runs[cell.panel, "", cell.series]
        tested = [k for k, row in enumerate(of_seeds[0]) if measured(row, artefact.reading)]
        x = [fmean(run[k][along] for run in of_seeds) / UNIT.get(along, 1) for k in tested]
        y = [100 * fmean(run[k][artefact.reading] for run in of_seeds) for k in tested]
        axes.plot(x, y, color=COLOURS[place], label=cell.series, linewidth=1.6)
    if along != "cycle":
        axes.set_xscale("log")  # a server's relays cost a hundred times what neighbours do
    axes.set_ylim(0, 100)


_DRAW = {
    "costs": _draw_costs,
    "curves": _draw_curves,
    "bars": _draw_bars,
    "points": _draw_points,
    "bound": _draw_bound,
}
