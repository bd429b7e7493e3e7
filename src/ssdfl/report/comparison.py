"""``comparison.html``: several runs on one page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from ssdfl.errors import InputError
from ssdfl.experiments.config import Experiment
from ssdfl.experiments.store import RunFolder, flat
from ssdfl.files import write_text
from ssdfl.report.html import tested_rows, tiles
from ssdfl.report.leads import contenders, headline, leads
from ssdfl.report.page import BASE_SCRIPTS, fill, page, palette, table
from ssdfl.report.run_data import series_data
from ssdfl.report.summary import cells, headers, summarise_rows

COMPARISON_SCRIPTS = (*BASE_SCRIPTS, "curves.js", "comparison_page.js")


def write_comparison(folders: Sequence[RunFolder], path: Path) -> None:
    """Write a page that shows runs side by side, held to the first run's target accuracy.

    Raises:
        InputError: fewer than two folders, one twice, or one without a tested run.
    """
    if len({folder.path.resolve() for folder in folders}) < max(2, len(folders)):
        got = ", ".join(str(folder.path) for folder in folders)
        raise InputError("runs", got, "at least two, each once", "Name two folders or more.")
    runs = [tested_rows(folder) for folder in folders]
    names = run_names(folders)
    target = runs[0][0].evaluate.target_accuracy
    summaries = [summarise_rows(rows, target) for _, rows in runs]
    field = [
        replace(summary, method=f"{summary.method} in {name}")
        for name, of_run in zip(names, summaries, strict=True)
        for summary in contenders(of_run)
    ]
    body = fill(
        "comparison.html",
        title=escape(", ".join(names)),
        tiles=tiles(leads(field, target)),
        headline=escape(headline(field, target)),
        results=table(
            ["run", *headers(target)],
            (
                [name, *cells(summary)]
                for name, of_run in zip(names, summaries, strict=True)
                for summary in of_run
            ),
        ),
        differences=_differences([experiment for experiment, _ in runs], names),
        commands="\n".join(
            escape(shlex.join(["ssdfl", "run", str(folder.experiment_file)])) for folder in folders
        ),
    )
    series = [
        one
        for name, (experiment, rows) in zip(names, runs, strict=True)
        for one in series_data(rows, experiment.methods, name)
    ]
    methods = list(dict.fromkeys(one["method"] for one in series))
    data = {**palette(), "target": target, "runs": names, "methods": methods, "series": series}
    write_text(path, page("ssdfl: comparison", body, data, COMPARISON_SCRIPTS, charts=True))


def run_names(folders: Sequence[RunFolder]) -> list[str]:
    """The folders' names, or their paths where two have the same name.

    Examples:
        >>> run_names([RunFolder(Path("runs/a")), RunFolder(Path("runs/b"))])
        ['a', 'b']
    """
    names = [folder.path.resolve().name for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder.path) for folder in folders]


def _differences(experiments: Sequence[Experiment], names: Sequence[str]) -> str:
    """The keys in which the experiments differ."""
    values: list[dict[str, Any]] = [flat(experiment.model_dump(mode="json")) for experiment in experiments]
    keys = sorted({key for one in values for key in one})
    rows = [[key, *(_shown(one.get(key)) for one in values)] for key in keys]
    different = [row for row in rows if len(set(row[1:])) > 1]
    if not different:
        return "<p>The experiments are the same, key by key.</p>"
    return table(["key", *names], different)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    return "–" if value in (None, "") else str(value)
