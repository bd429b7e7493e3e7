"""Tables as Markdown, LaTeX and CSV files."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ssdfl.files import atomic_path, write_text
from ssdfl.report.tables import Table

_IN_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "²": r"$^2$",
    "τ_a": r"$\tau_a$",
    "τ_r": r"$\tau_r$",
    **{character: f"\\{character}" for character in "%&$#_{}"},
}
_SPECIAL = re.compile("|".join(map(re.escape, sorted(_IN_LATEX, key=len, reverse=True))))


def latex_text(text: str) -> str:
    r"""A text for LaTeX, with its special characters escaped.

    Examples:
        >>> latex_text("R² of site_1 & site_2, ±5 %")
        'R$^2$ of site\\_1 \\& site\\_2, $\\pm$5 \\%'
    """
    return _SPECIAL.sub(lambda found: _IN_LATEX[found[0]], text)


def latex_table(heads: Sequence[Sequence[str]], rows: Iterable[Sequence[str]], title: str) -> str:
    """A ``tabular`` in the style of the package booktabs: first column left, others right.

    Args:
        heads: lines above the rule; the last has a text for every column.
        rows: texts that are LaTeX already, as the heads are.
        title: goes into a comment.
    """
    lines = [
        f"% {title}",
        f"\\begin{{tabular}}{{l{'r' * (len(heads[-1]) - 1)}}}",
        "\\toprule",
        *map(_latex_row, heads),
        "\\midrule",
        *map(_latex_row, rows),
        "\\bottomrule",
        "\\end{tabular}",
        "",
    ]
    return "\n".join(lines)


def _latex_row(texts: Sequence[str]) -> str:
    return " & ".join(texts) + " \\\\"


def markdown_table(table: Table) -> str:
    """A table in Markdown: first column left, others right.

    Examples:
        >>> print(markdown_table(Table(["method", "MB"], [["ssdfl", "37.6"]])))
        | method | MB |
        |---|---:|
        | ssdfl | 37.6 |
    """
    rule = "|---" + "|---:" * (len(table.headers) - 1) + "|"
    head, *rows = [f"| {' | '.join(line)} |" for line in (table.headers, *table.rows)]
    return "\n".join([head, rule, *rows])


def write_table_files(base: Path, table: Table, title: str) -> list[Path]:
    """Write a table as ``base.md`` and ``base.tex``; returns the paths."""
    markdown, latex = (base.with_name(f"{base.name}.{kind}") for kind in ("md", "tex"))
    write_text(markdown, f"# {title}\n\n{markdown_table(table)}\n")
    head, *rows = [list(map(latex_text, line)) for line in (table.headers, *table.rows)]
    write_text(latex, latex_table([head], rows, title))
    return [markdown, latex]


def write_csv(path: Path, headers: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file; None is an empty cell."""
    with atomic_path(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(headers)
        writer.writerows(rows)
