"""The paper's tables and figures as files: CSV, Markdown, LaTeX, PNG and PDF."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from ssdfl.files import write_text
from ssdfl.records.artefacts import Artefact
from ssdfl.report.figures import save
from ssdfl.report.formats import latex_table, latex_text, markdown_table, write_csv
from ssdfl.report.paper import (
    NONE,
    CurvePoint,
    Entry,
    Runs,
    accuracy_sentence,
    by_series,
    curve_points,
    entries,
)
from ssdfl.report.paper_figures import plot_artefact
from ssdfl.report.paper_plans import PlanLine, plan_lines, plans_sentence, write_plans
from ssdfl.report.tables import Table

UNITS = {
    "table": "global cycles to reach an accuracy",
    "bound": "the number of clusters of least score",
    "costs": "what it costs to reach an accuracy",
}
"""The meaning of the numbers, by the kind of an artefact; all others show final accuracy."""
Column = tuple[str, str, str]
"""A panel, a point and a threshold."""
SCALE_AND_DIGITS = {"table": (1, 2), "bound": (1, 1), "costs": (1, 1)}


def write_artefact(artefact: Artefact, runs: Runs, folder: Path, command: str) -> list[Path]:
    """Write an artefact's table (CSV, Markdown, LaTeX) and figure (PNG, PDF); returns paths.

    ``…-plans.csv`` says how the clusters of each run were chosen, ``…-curves.csv`` has the curves
    of a figure of curves.
    """
    numbers, plans = entries(artefact, runs), plan_lines(artefact, runs)

    def file(ending: str) -> Path:
        return folder / f"{artefact.name}{ending}"

    tables = [file(ending) for ending in (".csv", ".md", ".tex")]
    write_csv(tables[0], list(Entry.__dataclass_fields__), map(_rounded, numbers))
    write_text(tables[1], markdown(artefact, numbers, command, plans))
    write_text(tables[2], latex(artefact, numbers))
    if plans:
        tables.append(file("-plans.csv"))
        write_plans(tables[-1], plans)
    if artefact.kind == "curves":
        tables.append(file("-curves.csv"))
        _write_curves(tables[-1], curve_points(artefact, runs))
    figure = plot_artefact(artefact, runs, numbers)
    figures = [file(".png"), file(".pdf")]
    for path in figures:
        save(figure, path, dpi=130)
    return tables + figures


def _write_curves(path: Path, points: Sequence[CurvePoint]) -> None:
    rows = (
        (one.panel, one.point, one.series, one.seed, one.cycle, f"{one.accuracy:.5g}")
        for one in points
    )
    write_csv(path, list(CurvePoint.__dataclass_fields__), rows)


def _rounded(entry: Entry) -> list[object]:
    values = asdict(entry)
    for key in ("value", "half_width", "of_mean", "clusters"):
        values[key] = "" if values[key] is None else f"{values[key]:.5g}"
    return list(values.values())


def _ours(artefact: Artefact, entry: Entry) -> str:
    """Our number, formatted for readers: cycles, or accuracy in per cent."""
    scale, digits = SCALE_AND_DIGITS.get(artefact.kind, (100, 1))
    if entry.value is None:
        return _not_by_all(entry, digits)
    spread = f" ± {scale * entry.half_width:.{digits}f}" if entry.half_width is not None else ""
    return f"{scale * entry.value:.{digits}f}{spread}"


def _not_by_all(entry: Entry, digits: int) -> str:
    """How many seeds have a value, and the value of the mean over seeds."""
    if not entry.reached:
        return "–"
    mean = f", mean {entry.of_mean:.{digits}f}" if entry.of_mean is not None else ""
    return f"– ({entry.reached}/{entry.seeds}{mean})"


def _papers(artefact: Artefact, entry: Entry) -> str:
    """The paper's number, formatted for readers."""
    if entry.paper in ("", "–") or artefact.kind in ("table", "bound"):
        return entry.paper
    return f"{100 * float(entry.paper):.1f}"


def markdown(
    artefact: Artefact, numbers: Sequence[Entry], command: str, plans: Sequence[PlanLine] = ()
) -> str:
    """A table per panel: methods by thresholds or points, the paper's number in brackets."""
    source = f"The paper's `{artefact.label}`." if artefact.label else "Beyond the paper."
    lines = [
        f"# {artefact.title}",
        "",
        f"{source} {_legend(artefact)}",
        "",
        f"    {command}",
        "",
        f"Profile {artefact.profile}, {_seeds(artefact)}. {accuracy_sentence(artefact)}".rstrip(),
        *([f"{plans_sentence(plans)} One by one: `{artefact.name}-plans.csv`."] if plans else []),
        "",
    ]
    for panel in artefact.panels:
        of_panel = [entry for entry in numbers if entry.panel == panel.name]
        lines += [f"## {panel.name}", "", markdown_table(_table(artefact, of_panel)), ""]
    return "\n".join(lines)


def _seeds(artefact: Artefact) -> str:
    """The seeds, and what to know if some cells have fewer than others."""
    seeds = f"seeds {', '.join(map(str, artefact.seeds))}"
    if artefact.is_even:
        return seeds
    return f"{seeds}, of each cell as many as are finished and it says"


def _legend(artefact: Artefact) -> str:
    """A sentence that explains the cells of the table."""
    number = len(artefact.seeds)
    most = "" if artefact.is_even else "up to "
    mean = f"the mean over {most}{number} seeds ± half the 95 % confidence interval"
    legend = (
        f"A cell holds {UNITS.get(artefact.kind, 'the final accuracy in %')}: "
        f"{mean if number > 1 else 'one seed'}, with the paper's number in bold brackets."
    )
    if artefact.kind not in ("table", "costs"):
        return legend
    return (
        f"{legend} A dash marks what not every seed reaches. Beside it stand how many seeds do,"
        " and when the mean accuracy over all seeds does."
    )


def _table(artefact: Artefact, of_panel: Sequence[Entry]) -> Table:
    """Methods by thresholds or points."""
    columns, rows = _grid(artefact, of_panel)
    cells = [
        [series, *(_ours_and_papers(artefact, entry) if entry else "" for entry in row)]
        for series, row in rows.items()
    ]
    titles = [_title(point, threshold) for _, point, threshold in columns]
    return Table(["method", *titles], cells)


def _grid(
    artefact: Artefact, numbers: Sequence[Entry]
) -> tuple[list[Column], dict[str, list[Entry | None]]]:
    """The columns of entries, and a row per series; None where nothing has been run."""
    columns = list(dict.fromkeys(map(_column, numbers)))
    rows = {}
    for series, own in by_series(artefact, numbers).items():
        found = {_column(entry): entry for entry in own}
        rows[series] = [found.get(column) for column in columns]
    return columns, rows


def _column(entry: Entry) -> Column:
    return entry.panel, entry.point, entry.threshold


def _ours_and_papers(artefact: Artefact, entry: Entry) -> str:
    ours = _ours(artefact, entry)
    seeds = "" if artefact.is_even else f", {entry.seeds} seed{'s' * (entry.seeds > 1)}"
    return f"{ours}{seeds} **({_papers(artefact, entry)})**" if entry.paper else f"{ours}{seeds}"


def latex(artefact: Artefact, numbers: Sequence[Entry]) -> str:
    """A table in the paper's layout: panels side by side, the paper's row under each of ours."""
    columns, rows = _grid(artefact, numbers)
    titles = [latex_text(_title(point, threshold)) for _, point, threshold in columns]
    widths = Counter(panel for panel, _, _ in columns)
    panels = [
        f"\\multicolumn{{{width}}}{{c}}{{{latex_text(name)}}}" for name, width in widths.items()
    ]
    lines = chain.from_iterable(_latex_rows(artefact, *row) for row in rows.items())
    return latex_table([["Method", *panels], ["", *titles]], lines, artefact.title)


def _latex_rows(artefact: Artefact, series: str, row: Sequence[Entry | None]) -> list[list[str]]:
    """The row of our numbers and, if the paper has any, the row of its numbers."""
    ours = [_latex_number(artefact, entry) if entry else "" for entry in row]
    if not any(entry and entry.paper for entry in row):
        return [[series, *ours]]
    theirs = [latex_text(_papers(artefact, entry)) if entry else "" for entry in row]
    return [[series, *ours], ["\\quad paper", *theirs]]


def _latex_number(artefact: Artefact, entry: Entry) -> str:
    return latex_text(NONE if entry.value is None else _ours(artefact, entry))


def _title(point: str, threshold: str) -> str:
    """The title of a column."""
    if not threshold:
        return point or "final"
    percent = f"{100 * float(threshold):g} %"
    return f"{point} to {percent}" if point else percent
