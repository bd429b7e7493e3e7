"""How well each setting fits the paper's table for τ_r = 1, by both readings of accuracy.

    python docs/studies/calibration/report.py

The misfit is the root mean square, over methods, data and thresholds, of log(our cycles / the paper's), where
a threshold not reached in 20 cycles counts as 24 on either side. Prints a Markdown table, the best first, and
draws ``figure.png``.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from matplotlib.figure import Figure

from ssdfl.experiments.paper import load_artefact
from ssdfl.report.figures import COLOURS
from ssdfl.report.paper import cost_to

HERE = Path(__file__).parent
READINGS = {"accuracy": "mean over devices", "average_model_accuracy": "mean model"}
METHODS = {"SSD-FL": "ssdfl", "pDFL": "pdfl"}
NEVER = 24.0

Point = tuple[str, ...]
Curves = dict[tuple[Point, str, str], list[list[dict[str, float]]]]
"""Records of each seed, by setting, labels per device and method."""


def read(dataset: str) -> Curves:
    """What ``measure.py`` wrote."""
    runs: dict[tuple[Point, str, str, str], list[dict[str, float]]] = defaultdict(list)
    with (HERE / f"{dataset}.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            point = (row["initial"], row["rate"], row["steps"], row["batch"])
            record = {key: float(row[key]) for key in ("cycle", *READINGS)}
            runs[point, row["labels"], row["method"], row["seed"]].append(record)
    curves: Curves = defaultdict(list)
    for (point, labels, method, _), records in runs.items():
        curves[point, labels, method].append(sorted(records, key=lambda record: record["cycle"]))
    return curves


def misfit(curves: Curves, point: Point, dataset: str, reading: str) -> tuple[float, dict[str, float]]:
    """Of a setting: over all, and for mild and extreme."""
    logs: dict[str, list[float]] = {"mild": [], "extreme": []}
    for row in load_artefact(f"{dataset}-taur1").expected:
        optimizers, _, data = row["panel"].partition(", ")
        if optimizers != "hybrid" or row["series"] not in METHODS:
            continue
        labels = "3" if data == "mild" else "1"
        of_seeds = curves[point, labels, METHODS[row["series"]]]
        ours = fmean(cost_to(run, float(row["threshold"]), reading) or NEVER for run in of_seeds)
        paper = float(row["value"]) if row["value"] else NEVER
        logs[data].append(math.log(ours / paper))
    each = {data: math.sqrt(fmean(x * x for x in values)) for data, values in logs.items()}
    return math.sqrt(fmean(x * x for values in logs.values() for x in values)), each


def draw(curves: Curves, dataset: str, points: list[Point]) -> Figure:
    """The paper's thresholds as crosses, ours as curves: methods by row, readings by style."""
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    grid = figure.subplots(2, 2)
    expected = load_artefact(f"{dataset}-taur1").expected
    for axes, (series, method) in zip(grid, METHODS.items(), strict=True):
        for ax, (data, labels) in zip(axes, (("mild", "3"), ("extreme", "1")), strict=True):
            for colour, point in zip(COLOURS, points, strict=False):
                of_seeds = curves[point, labels, method]
                for reading, style in (("average_model_accuracy", "-"), ("accuracy", "--")):
                    values = [fmean(run[k][reading] for run in of_seeds) for k in range(len(of_seeds[0]))]
                    label = f"{point[0]}, η = {point[1]}, E = {point[2]}" if style == "-" else None
                    ax.plot(
                        range(1, len(values) + 1), [100 * v for v in values], style, color=colour, label=label
                    )
            told = [
                r
                for r in expected
                if r["panel"] == f"hybrid, {data}" and r["series"] == series and r["value"]
            ]
            ax.plot(
                [float(r["value"]) for r in told],
                [100 * float(r["threshold"]) for r in told],
                "kx",
                markersize=9,
                label="the paper",
            )
            ax.set_title(f"{series}, {data}")
            ax.set_xlabel("global cycle")
            ax.set_ylabel("accuracy %")
            ax.set_ylim(0, 80)
            ax.grid(alpha=0.3)
    handles, labels_ = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels_, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle("Solid: the mean model's accuracy; dashed: the mean over devices")
    return figure


def main() -> None:
    """Print the table and draw the figure."""
    for dataset in ("fmnist", "cifar10"):
        if not (HERE / f"{dataset}.csv").exists():
            continue
        curves = read(dataset)
        points = sorted({point for point, _, _ in curves})
        fits = sorted(
            (*misfit(curves, point, dataset, reading), point, reading)
            for point in points
            for reading in READINGS
        )
        heads = ("initial", "η", "E", "M", "accuracy is", "misfit", "mild", "extreme")
        print(f"\n{dataset}\n\n| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
        for overall, each, point, reading in fits:
            cells = [*point, READINGS[reading], *(f"{x:.2f}" for x in (overall, *each.values()))]
            print(f"| {' | '.join(cells)} |")
        best = list(dict.fromkeys(point for *_, point, _ in fits))[:4]
        draw(curves, dataset, best).savefig(
            HERE / ("figure.png" if dataset == "fmnist" else f"{dataset}.png"), dpi=110
        )


if __name__ == "__main__":
    main()
