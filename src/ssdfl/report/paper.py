"""The paper's tables and figures from our runs, with the paper's numbers beside ours."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, geometric_mean, stdev

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import t as student

from ssdfl.experiments.paper import Artefact, CaseKey, Variant
from ssdfl.experiments.store import Row
from ssdfl.files import atomic_path, write_text
from ssdfl.report.figures import AXES, COLOURS, UNIT

Runs = Mapping[CaseKey, Sequence[Sequence[Row]]]
"""Records of every seed, by panel, point and series."""


@dataclass(frozen=True)
class Cell:
    """One number of a table or figure.

    Attributes:
        threshold: the accuracy whose first cycle is reported, or empty where it is the final accuracy.
        value: mean over seeds; None where a seed did not reach the threshold.
        half_width: of its 95 % confidence interval; None for one seed.
        of_mean: when the mean over seeds reaches the threshold, which also has a value where a seed does not.
        values: of each seed, so that methods can be compared seed by seed; a dash where there is none.
        reached: how many of the seeds have a value.
        paper: what the paper reports: a number, a dash, or empty where it gives none.
    """

    panel: str
    point: str
    series: str
    threshold: str
    value: float | None
    half_width: float | None
    of_mean: float | None
    values: str
    reached: int
    seeds: int
    paper: str


def cells(artefact: Artefact, runs: Runs) -> list[Cell]:
    """All numbers of an artefact, in its order."""
    told = {
        (row["panel"], row["point"], row["series"], row["threshold"]): row["value"] or "–"
        for row in artefact.expected
    }
    found = []
    for panel in artefact.panels:
        for point in artefact.points:
            for series in artefact.series:
                of_seeds = runs[panel.name, point.name, series.name]
                for threshold, along in product(panel.thresholds or (None,), _axes(artefact)):
                    at = AXES[along] if artefact.kind == "costs" else point.name
                    key = "" if threshold is None else f"{threshold:g}"
                    values = [_value(artefact, run, threshold, along) for run in of_seeds]
                    there = [value for value in values if value is not None]
                    whole = len(there) == len(values) and bool(there)
                    found.append(
                        Cell(
                            panel=panel.name,
                            point=at,
                            series=series.name,
                            threshold=key,
                            value=fmean(there) if whole else None,
                            half_width=half_width(there) if whole else None,
                            of_mean=_of_mean(of_seeds, threshold, artefact.reading, along),
                            values=" ".join("–" if value is None else f"{value:.5g}" for value in values),
                            reached=len(there),
                            seeds=len(values),
                            paper=told.get((panel.name, at, series.name, key), ""),
                        )
                    )
    return found


def _of_mean(
    of_seeds: Sequence[Sequence[Row]], threshold: float | None, reading: str, along: str
) -> float | None:
    if threshold is None:
        return None
    mean = [
        {key: fmean(row[key] for row in rows) for key in (reading, along)}
        for rows in zip(*of_seeds, strict=True)
    ]
    return cost_to(mean, threshold, reading, along)


def _axes(artefact: Artefact) -> tuple[str, ...]:
    """What a threshold's cost is counted in."""
    return ("cycle", "transmissions", "sent_bytes", "time_s") if artefact.kind == "costs" else ("cycle",)


def _value(artefact: Artefact, run: Sequence[Row], threshold: float | None, along: str) -> float | None:
    if artefact.kind == "bound":
        finite = [row for row in run if math.isfinite(row["score"])]
        return float(min(finite, key=lambda row: row["score"])["clusters"]) if finite else None
    if threshold is None:
        return final(run, artefact.reading)
    return cost_to(run, threshold, artefact.reading, along)


def cost_to(
    run: Sequence[Row], threshold: float, reading: str = "accuracy", along: str = "cycle"
) -> float | None:
    """When accuracy first reaches a threshold, interpolated between tests; None if it does not.

    Args:
        reading: the record that is taken for accuracy.
        along: cycles, messages, bytes or simulated seconds.

    Examples:
        >>> cost_to([{"cycle": 1, "accuracy": 0.4}, {"cycle": 2, "accuracy": 0.6}], 0.5)
        1.5
    """
    before_cost, before = 0.0, 0.0
    for row in run:
        value = row[reading]
        if math.isnan(value):
            continue
        if value >= threshold:
            share = (threshold - before) / (value - before) if value > before else 1.0
            return float(before_cost + max(share, 0.0) * (row[along] - before_cost)) / UNIT.get(along, 1)
        before_cost, before = row[along], value
    return None


def final(run: Sequence[Row], reading: str) -> float | None:
    """The last value of a record."""
    return next((float(row[reading]) for row in reversed(run) if not math.isnan(row[reading])), None)


def half_width(values: Sequence[float]) -> float | None:
    """Of the 95 % confidence interval of a mean (Student's t); None for one value.

    Examples:
        >>> round(half_width([1.0, 2.0, 3.0]), 2)
        2.48
    """
    if len(values) < 2:
        return None
    return float(student.ppf(0.975, len(values) - 1) * stdev(values) / math.sqrt(len(values)))


def write_artefact(artefact: Artefact, runs: Runs, folder: Path, command: str) -> list[Path]:
    """Write an artefact's table as CSV, Markdown and LaTeX, and its figure as PNG and PDF; returns them."""
    numbers = cells(artefact, runs)
    written = [folder / f"{artefact.name}{suffix}" for suffix in (".csv", ".md", ".tex")]
    with atomic_path(written[0]) as path, path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(Cell.__dataclass_fields__), lineterminator="\n")
        writer.writeheader()
        writer.writerows(_rounded(cell) for cell in numbers)
    write_text(written[1], markdown(artefact, numbers, command))
    write_text(written[2], latex(artefact, numbers))
    if artefact.kind != "table":
        figure = draw(artefact, runs, numbers)
        for suffix in (".png", ".pdf"):
            written.append(folder / f"{artefact.name}{suffix}")
            with atomic_path(written[-1]) as path:
                figure.savefig(path, dpi=130, metadata={"CreationDate": None} if suffix == ".pdf" else None)
    return written


def _rounded(cell: Cell) -> dict[str, object]:
    values = asdict(cell)
    for key in ("value", "half_width", "of_mean"):
        values[key] = "" if values[key] is None else f"{values[key]:.5g}"
    return values


def _shown(artefact: Artefact, cell: Cell) -> str:
    """Ours, as a reader wants it: cycles, or accuracy in per cent."""
    scale, digits = {"table": (1, 2), "bound": (1, 1), "costs": (1, 1)}.get(artefact.kind, (100, 1))
    if cell.value is None:
        mean = f", mean {cell.of_mean:.{digits}f}" if cell.of_mean is not None else ""
        return f"– ({cell.reached}/{cell.seeds}{mean})" if cell.reached else "–"
    spread = f" ± {scale * cell.half_width:.{digits}f}" if cell.half_width is not None else ""
    return f"{scale * cell.value:.{digits}f}{spread}"


def _paper(artefact: Artefact, cell: Cell) -> str:
    if not cell.paper or cell.paper == "–" or artefact.kind in ("table", "bound"):
        return cell.paper
    return f"{100 * float(cell.paper):.1f}"


def markdown(artefact: Artefact, numbers: Sequence[Cell], command: str) -> str:
    """A table per panel: methods down, thresholds or points across, the paper's number in brackets."""
    units = {
        "table": "global cycles to reach an accuracy",
        "bound": "the number of clusters of least score",
        "costs": "what it costs to reach an accuracy",
    }
    unit = units.get(artefact.kind, "final accuracy, %")
    some = artefact.cases[0].experiment
    lines = [
        f"# {artefact.title}",
        "",
        f"The paper's `{artefact.label}`. Given is: {unit}; mean over {len(some.seeds)} seeds ± half the 95 %"
        " confidence interval, the paper's number in brackets. A dash: not reached by every"
        " seed; then how many did, and when the mean over seeds does.",
        "",
        f"    {command}",
        "",
    ]
    for panel in artefact.panels:
        of_panel = [cell for cell in numbers if cell.panel == panel.name]
        columns = list(dict.fromkeys((cell.point, cell.threshold) for cell in of_panel))
        titles = [_title(*column) for column in columns]
        lines += [
            f"## {panel.name}",
            "",
            f"| method | {' | '.join(titles)} |",
            "|---" + "|---:" * len(titles) + "|",
        ]
        for series in artefact.series:
            row = [cell for cell in of_panel if cell.series == series.name]
            texts = [
                _shown(artefact, cell) + (f" **({_paper(artefact, cell)})**" if cell.paper else "")
                for cell in row
            ]
            lines.append(f"| {series.name} | {' | '.join(texts)} |")
        lines.append("")
    return "\n".join(lines)


def latex(artefact: Artefact, numbers: Sequence[Cell]) -> str:
    """The paper's layout: panels side by side; under each method's row, the paper's."""
    columns = [
        (panel.name, _title(cell.point, cell.threshold))
        for panel in artefact.panels
        for cell in numbers
        if cell.panel == panel.name and cell.series == artefact.series[0].name
    ]
    widths = {panel.name: sum(name == panel.name for name, _ in columns) for panel in artefact.panels}
    heads = " & ".join(
        f"\\multicolumn{{{widths[panel.name]}}}{{c}}{{{_escape(panel.name)}}}" for panel in artefact.panels
    )
    lines = [
        f"% {artefact.title}",
        f"\\begin{{tabular}}{{l{'r' * len(columns)}}}",
        "\\toprule",
        f"Method & {heads} \\\\",
        " & ".join(["", *(_escape(title) for _, title in columns)]) + " \\\\",
        "\\midrule",
    ]
    for series in artefact.series:
        row = [
            cell
            for panel in artefact.panels
            for cell in numbers
            if (cell.panel, cell.series) == (panel.name, series.name)
        ]
        ours = ["--" if cell.value is None else _shown(artefact, cell).replace("±", "$\\pm$") for cell in row]
        lines.append(" & ".join([series.name, *ours]) + " \\\\")
        if any(cell.paper for cell in row):
            theirs = [_paper(artefact, cell).replace("–", "--") for cell in row]
            lines.append(" & ".join(["\\quad paper", *theirs]) + " \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def _title(point: str, threshold: str) -> str:
    """Of a column."""
    percent = f"{100 * float(threshold):g} %" if threshold else ""
    return f"{point} to {percent}" if point and percent else point or percent or "final"


def _escape(text: str) -> str:
    return text.replace("%", "\\%").replace("τ_a", "$\\tau_a$").replace("τ_r", "$\\tau_r$")


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
        cycles = [row["cycle"] for row in of_seeds[0] if not math.isnan(row[artefact.reading])]
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
        tested = [k for k, row in enumerate(of_seeds[0]) if not math.isnan(row[artefact.reading])]
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
