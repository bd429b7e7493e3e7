"""A sweep's combinations side by side: a table as CSV and Markdown, a figure, and a page."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from matplotlib.figure import Figure

from ssdfl.files import atomic_path, write_text
from ssdfl.records.folder import Row
from ssdfl.records.sweep import Combination, Sweep
from ssdfl.report.comparison import comparison_page
from ssdfl.report.figures import COLOURS, save
from ssdfl.report.ranking import Side
from ssdfl.report.summary import MethodSummary, cells, headers, seeds_done, summarise_method


@dataclass(frozen=True)
class Line:
    """What one method came to with one combination: the records of each seed, and their summary."""

    combination: Combination
    runs: Mapping[int, Sequence[Row]]
    summary: MethodSummary


def compare(sweep: Sweep, cache: Path) -> list[Line]:
    """A line for each combination and method that has finished runs in a cache."""
    lines = []
    for combination in sweep.combinations:
        for method, runs in combination.finished(cache).items():
            if runs:
                unfinished = seeds_done(len(runs), len(combination.experiment.seeds))
                summary = summarise_method(method, list(runs.values()), sweep.target, unfinished)
                lines.append(Line(combination, runs, summary))
    return lines


def headers_of(sweep: Sweep) -> list[str]:
    """The titles of the table's columns."""
    return [*sweep.keys, *headers(sweep.target)]


def texts_of(sweep: Sweep, line: Line) -> list[str]:
    """A line as the cells of the table."""
    return [*(str(line.combination.choices[key]) for key in sweep.keys), *cells(line.summary)]


def write_sweep(sweep: Sweep, lines: Sequence[Line], out: Path) -> list[Path]:
    """Write ``sweep.csv``, ``sweep.md``, ``sweep.png`` and ``sweep.html`` into a folder."""
    paths = [out / f"sweep.{kind}" for kind in ("csv", "md", "png", "html")]
    with atomic_path(paths[0]) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*sweep.keys, *MethodSummary.__dataclass_fields__])
        for line in lines:
            choices = [line.combination.choices[key] for key in sweep.keys]
            writer.writerow([*choices, *asdict(line.summary).values()])
    write_text(paths[1], _markdown(sweep, lines))
    save(draw_sweep(sweep, lines), paths[2])
    write_text(paths[3], comparison_page(sweep.name, _sides(sweep, lines), [sweep.command]))
    return paths


def _sides(sweep: Sweep, lines: Sequence[Line]) -> list[Side]:
    """The combinations that have records, each named by its choices."""
    names = {key: key.rpartition(".")[2] for key in sweep.keys}
    if len(set(names.values())) < len(names):
        names = {key: key for key in names}
    sides = []
    for one in sweep.combinations:
        rows = [
            {"method": line.summary.method, "seed": seed, **row}
            for line in lines
            if line.combination is one
            for seed, run in line.runs.items()
            for row in run
        ]
        if rows:
            name = ", ".join(f"{names[key]} {value}" for key, value in one.choices.items())
            sides.append(Side(one.experiment, rows, name))
    return sides


def _markdown(sweep: Sweep, lines: Sequence[Line]) -> str:
    titles = headers_of(sweep)
    rows = [titles, ["---"] * len(titles), *(texts_of(sweep, line) for line in lines)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"# {sweep.name}\n\n{len(sweep.combinations)} combinations.\n\n{table}\n"


def draw_sweep(sweep: Sweep, lines: Sequence[Line]) -> Figure:
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
            (x, v.bytes_to_target / 1e6)
            for x, v in zip(shifted, values, strict=True)
            if v.bytes_to_target is not None
        ]
        cost.errorbar([x for x, _ in reached], [y for _, y in reached], **style)
    accuracy.set_ylabel("final accuracy %")
    cost.set_ylabel(f"megabytes to {100 * sweep.target:g} %")
    cost.set_xticks(range(len(labels)), labels, parse_math=False)
    cost.set_xlabel(", ".join(sweep.keys))
    accuracy.legend(frameon=False, ncols=len(methods))
    return figure
