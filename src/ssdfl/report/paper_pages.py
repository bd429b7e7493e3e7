"""The paper's tables and figures as files: CSV, Markdown, LaTeX, PNG and PDF."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ssdfl.files import atomic_path, write_text
from ssdfl.records.artefacts import Artefact
from ssdfl.report.paper import Cell, Runs, cells
from ssdfl.report.paper_figures import draw


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
    for key in ("value", "half_width", "of_mean", "clusters"):
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
    source = f"The paper's `{artefact.label}`." if artefact.label else "Beyond the paper."
    some = artefact.cases[0].experiment
    lines = [
        f"# {artefact.title}",
        "",
        f"{source} Given is: {unit}; mean over {len(some.seeds)} seeds ± half the 95 % confidence interval,"
        " in bold brackets the paper's number. A dash: not reached by every seed; then how many did, and when"
        " the mean over seeds does.",
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
