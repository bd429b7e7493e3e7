"""A sweep's combinations side by side: a table as CSV and Markdown, and a figure."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from matplotlib.figure import Figure

from ssdfl.experiments.sweep import Combination, Sweep
from ssdfl.files import atomic_path, write_text
from ssdfl.report.figures import COLOURS, save
from ssdfl.report.summary import MethodSummary, cells, headers, summarise_method


@dataclass(frozen=True)
class Line:
    """What one method came to with one combination, over seeds."""

    combination: Combination
    summary: MethodSummary


def compare(sweep: Sweep, cache: Path) -> list[Line]:
    """A line for each combination and method that has finished runs in a cache."""
    lines = []
    for combination in sweep.combinations:
        target = combination.experiment.evaluate.target_accuracy
        for method, runs in combination.finished(cache).items():
            if runs:
                lines.append(Line(combination, summarise_method(method, runs, target)))
    return lines


def headers_of(sweep: Sweep) -> list[str]:
    """The titles of the table's columns."""
    return [*sweep.keys, *headers(sweep.combinations[0].experiment.evaluate.target_accuracy)]


def texts_of(sweep: Sweep, line: Line) -> list[str]:
    """A line as the cells of the table."""
    return [*(str(line.combination.choices[key]) for key in sweep.keys), *cells(line.summary)]


def write_comparison(sweep: Sweep, lines: Sequence[Line], out: Path) -> list[Path]:
    """Write ``sweep.csv``, ``sweep.md`` and ``sweep.png`` into a folder."""
    paths = [out / f"sweep.{kind}" for kind in ("csv", "md", "png")]
    with atomic_path(paths[0]) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*sweep.keys, *MethodSummary.__dataclass_fields__])
        for line in lines:
            choices = [line.combination.choices[key] for key in sweep.keys]
            writer.writerow([*choices, *asdict(line.summary).values()])
    write_text(paths[1], _markdown(sweep, lines))
    save(draw_comparison(sweep, lines), paths[2])
    return paths


def _markdown(sweep: Sweep, lines: Sequence[Line]) -> str:
    titles = headers_of(sweep)
    rows = [titles, ["---"] * len(titles), *(texts_of(sweep, line) for line in lines)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"# {sweep.name}\n\n{len(sweep.combinations)} combinations.\n\n{table}\n"


def draw_comparison(sweep: Sweep, lines: Sequence[Line]) -> Figure:
    """Final accuracy, and megabytes to the target accuracy, of each combination and method."""
    labels = ["\n".join(map(str, one.choices.values())) for one in sweep.combinations]
    width = min(24.0, max(6.4, 0.5 * len(labels) + 2))
    figure = Figure(figsize=(width, 6.4), layout="constrained")
    accuracy, cost = figure.subplots(2, 1, sharex=True)
    methods = list(dict.fromkeys(line.summary.method for line in lines))
    for number, method in enumerate(methods):
        of_method = [line for line in lines if line.summary.method == method]
        places = [sweep.combinations.index(line.combination) for line in of_method]
        shifted = [place + 0.6 * ((number + 0.5) / len(methods) - 0.5) for place in places]
        values = [line.summary for line in of_method]
        style = {"color": COLOURS[number % len(COLOURS)], "fmt": "o", "label": method}
        accuracy.errorbar(
            shifted, [100 * v.accuracy for v in values], [100 * v.accuracy_std for v in values], **style
        )
        reached = [
            (x, v.bytes_to_target / 1e6) for x, v in zip(shifted, values, strict=True) if v.bytes_to_target
        ]
        cost.errorbar([x for x, _ in reached], [y for _, y in reached], **style)
    accuracy.set_ylabel("final accuracy %")
    target = sweep.combinations[0].experiment.evaluate.target_accuracy
    cost.set_ylabel(f"megabytes to {100 * target:g} %")
    cost.set_xticks(range(len(labels)), labels)
    cost.set_xlabel(", ".join(sweep.keys))
    accuracy.legend(frameon=False, ncols=len(methods))
    return figure
