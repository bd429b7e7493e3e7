"""How well each setting fits the paper's tables for τ_r = 1 and 3, by both readings of accuracy.

    python docs/studies/calibration/report.py

The misfit is the root mean square, over methods, data and thresholds, of log(our cycles / the
paper's), where a threshold not reached in 20 cycles counts as 24 on either side. Prints a Markdown
table for each grid, the best first, and draws ``<grid>.png``.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from matplotlib.figure import Figure

from ssdfl.records.artefacts import load_artefact
from ssdfl.report.figures import COLOURS
from ssdfl.report.target import cost_to_target

HERE = Path(__file__).parent
READINGS = {"accuracy": "mean over devices", "average_model_accuracy": "mean model"}
METHODS = {"SSD-FL": "ssdfl", "pDFL": "pdfl"}
LABELS = {"mild": "3", "extreme": "1"}
NEVER = 24.0
SHOWN = 12

Point = tuple[str, str, str]
"""η, E and M."""
Run = list[dict[str, float]]
Curves = dict[tuple[Point, str, str, str], list[Run]]
"""Records of each seed, by setting, labels per device, τ_r and method."""


def read(grid: str) -> Curves:
    """What ``measure.py`` wrote."""
    runs: dict[tuple[Point, str, str, str, str], Run] = defaultdict(list)
    with (HERE / f"{grid}.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            point = (row["rate"], row["steps"], row["batch"])
            record = {key: float(row[key]) for key in ("cycle", *READINGS)}
            runs[point, row["labels"], row["tau_r"], row["method"], row["seed"]].append(record)
    curves: Curves = defaultdict(list)
    for (point, labels, tau_r, method, _), records in runs.items():
        curves[point, labels, tau_r, method].append(
            sorted(records, key=lambda record: record["cycle"])
        )
    return curves


def told(dataset: str) -> list[tuple[str, str, Mapping[str, str]]]:
    """What the paper says of hybrid optimizers: τ_r, mild or extreme, and the table's row."""
    rows = []
    for artefact, panels in (
        (f"{dataset}-taur1", {f"hybrid, {data}": ("1", data) for data in LABELS}),
        (f"{dataset}-taur", {f"τ_r = 3, {data}": ("3", data) for data in LABELS}),
    ):
        rows += [
            (*panels[row["panel"]], row)
            for row in load_artefact(artefact).expected
            if row["panel"] in panels and row["series"] in METHODS
        ]
    return rows


def misfit(curves: Curves, point: Point, dataset: str, reading: str) -> tuple[float, float, float]:
    """Of a setting: over all, mild, extreme."""
    logs: dict[str, list[float]] = {data: [] for data in LABELS}
    for tau_r, data, row in told(dataset):
        of_seeds = curves.get((point, LABELS[data], tau_r, METHODS[row["series"]]))
        if of_seeds is None:
            continue
        threshold = float(row["threshold"])
        ours = fmean(_cycles(run, threshold, reading) for run in of_seeds)
        logs[data].append(math.log(ours / float(row["value"] or NEVER)))
    both = [*logs["mild"], *logs["extreme"]]
    overall, mild, extreme = (math.sqrt(fmean(x * x for x in xs)) for xs in (both, *logs.values()))
    return overall, mild, extreme


def _cycles(run: Run, threshold: float, reading: str) -> float:
    """Until a threshold, interpolated as the paper's are."""
    return cost_to_target(run, threshold, quantity=reading, interpolate=True) or NEVER


def draw(curves: Curves, dataset: str, points: list[Point]) -> Figure:
    """τ_r = 1: the paper's thresholds as crosses, ours as curves, the mean model's solid."""
    figure = Figure(figsize=(10, 7), layout="constrained")
    grid = figure.subplots(2, 2)
    for row_of_axes, (series, method) in zip(grid, METHODS.items(), strict=True):
        for axes, (data, labels) in zip(row_of_axes, LABELS.items(), strict=True):
            for colour, point in zip(COLOURS, points, strict=False):
                of_seeds = curves[point, labels, "1", method]
                for reading, style in (("average_model_accuracy", "-"), ("accuracy", "--")):
                    length = min(map(len, of_seeds))
                    y = [100 * fmean(run[k][reading] for run in of_seeds) for k in range(length)]
                    label = "η = {}, E = {}, M = {}".format(*point) if style == "-" else None
                    axes.plot(range(1, len(y) + 1), y, style, color=colour, label=label)
            crosses = [
                (float(row["value"]), 100 * float(row["threshold"]))
                for tau_r, kind, row in told(dataset)
                if (tau_r, kind, row["series"]) == ("1", data, series) and row["value"]
            ]
            axes.plot(*zip(*crosses, strict=True), "kx", markersize=9, label="the paper")
            axes.set(
                title=f"{series}, {data}", xlabel="global cycle", ylabel="accuracy %", ylim=(0, 80)
            )
            axes.grid(alpha=0.3)
    figure.legend(
        *grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
    )
    figure.suptitle("τ_r = 1. Solid: the mean model's accuracy; dashed: the mean over devices")
    return figure


def main() -> None:
    """Print the tables and draw the figures."""
    heads = ("η", "E", "M", "accuracy is", "misfit", "mild", "extreme")
    for grid in sorted(path.stem for path in HERE.glob("*.csv")):
        dataset, curves = grid.split("-")[0], read(grid)
        points = sorted({point for point, *_ in curves})
        fits = sorted(
            (misfit(curves, point, dataset, reading), point, reading)
            for point in points
            for reading in READINGS
        )
        print(f"\n{grid}: the best {min(SHOWN, len(fits))} of {len(fits)}\n")
        print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
        for numbers, point, reading in fits[:SHOWN]:
            cells = [*point, READINGS[reading], *(f"{x:.2f}" for x in numbers)]
            print(f"| {' | '.join(cells)} |")
        best = list(dict.fromkeys(point for _, point, _ in fits))[:4]
        draw(curves, dataset, best).savefig(HERE / f"{grid}.png", dpi=100)


if __name__ == "__main__":
    main()
