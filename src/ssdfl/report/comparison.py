"""``comparison.html``: several runs, or what a sweep has tried, on one page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from ssdfl.errors import InputError
from ssdfl.files import write_text
from ssdfl.records.folder import RunFolder, flat
from ssdfl.report.html import tested_rows, tiles
from ssdfl.report.leads import leads
from ssdfl.report.page import asset, fill, page, palette, table
from ssdfl.report.ranking import Side, headline, ranked
from ssdfl.report.run_data import series_data
from ssdfl.report.summary import cells, headers

COMPARISON_SCRIPTS = ("base.js", "curves.js", "comparison_page.js")


def write_comparison(folders: Sequence[RunFolder], path: Path) -> None:
    """Write a page that shows runs side by side, held to the first run's target accuracy.

    Raises:
        InputError: fewer than two folders, one twice, or one without a tested run.
    """
    if len({folder.path.resolve() for folder in folders}) < max(2, len(folders)):
        got = ", ".join(str(folder.path) for folder in folders)
        raise InputError("runs", got, "at least two, each once", "Name two folders or more.")
    sides = [
        Side(*tested_rows(folder), name) for name, folder in zip(run_names(folders), folders, strict=True)
    ]
    commands = [shlex.join(["ssdfl", "run", str(folder.experiment_file)]) for folder in folders]
    write_text(path, comparison_page(", ".join(side.name for side in sides), sides, commands))


def comparison_page(title: str, sides: Sequence[Side], commands: Sequence[str]) -> str:
    """The page that shows some side by side, held to the target accuracy of the first.

    Args:
        sides: at least one.
        commands: what does them again.
    """
    target = sides[0].experiment.evaluate.target_accuracy
    body = fill(
        "comparison.html",
        title=escape(title),
        tiles=tiles(leads(ranked(sides, target), target)),
        headline=escape(headline(sides, target)),
        curves_part=asset("curves_part.html"),
        results=table(
            ["run", *headers(target)],
            ([side.name, *cells(summary)] for side in sides for summary in side.summaries(target)),
        ),
        differences=_differences(sides),
        commands="\n".join(map(escape, commands)),
    )
    series = [one for side in sides for one in series_data(side.rows, side.experiment.methods, side.name)]
    methods = list(dict.fromkeys(one["method"] for one in series))
    names = [side.name for side in sides]
    data = {**palette(), "target": target, "runs": names, "methods": methods, "series": series}
    return page(f"ssdfl: {title}", body, data, COMPARISON_SCRIPTS, charts=True)


def run_names(folders: Sequence[RunFolder]) -> list[str]:
    """The folders' names, or their paths where two have the same name.

    Examples:
        >>> run_names([RunFolder(Path("runs/a")), RunFolder(Path("runs/b"))])
        ['a', 'b']
    """
    names = [folder.path.resolve().name for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder.path) for folder in folders]


def _differences(sides: Sequence[Side]) -> str:
    """The keys in which the experiments differ."""
    values: list[dict[str, Any]] = [flat(side.experiment.model_dump(mode="json")) for side in sides]
    keys = sorted({key for one in values for key in one})
    rows = [[key, *(_shown(one.get(key)) for one in values)] for key in keys]
    different = [row for row in rows if len(set(row[1:])) > 1]
    if not different:
        return "<p>The experiments are the same, key by key.</p>"
    return table(["key", *(side.name for side in sides)], different)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    return "–" if value in (None, "") else str(value)
