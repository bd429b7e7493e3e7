"""``comparison.html``: several runs, or the combinations of a sweep, on one page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from ssdfl.errors import InputError
from ssdfl.files import write_text
from ssdfl.records.folder import RunFolder, flat
from ssdfl.records.scores import READINGS, Goal
from ssdfl.records.tables import Row
from ssdfl.report.figures import plot_curves, save
from ssdfl.report.formats import write_csv, write_table_files
from ssdfl.report.html import tested_rows, tiles
from ssdfl.report.page import asset, fill, html_table, page, palette
from ssdfl.report.ranking import RunResults, headline, rankable
from ssdfl.report.run_data import metrics_data, series_data
from ssdfl.report.summary import MethodSummary, flat_columns
from ssdfl.report.tables import Table, summary_table
from ssdfl.report.winners import winners

COMPARISON_SCRIPTS = ("base.js", "curves.js", "comparison_page.js")


def write_comparison(folders: Sequence[RunFolder], path: Path, latex: bool = False) -> None:
    """Write a page that shows runs side by side, compared by the first run's target.

    Args:
        latex: also write the table as LaTeX, Markdown and CSV, and the curves as PDF, beside it.

    Raises:
        InputError: fewer than two folders, the same folder twice, a folder without a tested run, or
            runs with different metrics.
    """
    _check_distinct(folders)
    names = run_names(folders)
    runs = [
        RunResults(*tested_rows(folder), name) for folder, name in zip(folders, names, strict=True)
    ]
    commands = [shlex.join(["ssdfl", "run", str(folder.experiment_file)]) for folder in folders]
    goal, title = _shared_goal(folders), ", ".join(names)
    write_text(path, comparison_page(title, runs, commands, goal))
    if latex:
        _write_for_latex(path.with_suffix(""), title, runs, goal)


def _write_for_latex(base: Path, title: str, runs: Sequence[RunResults], goal: Goal) -> None:
    """Write files for a LaTeX document: the table of results, and curves as PDF."""
    names, summaries = _summaries(runs, goal)
    columns, values = flat_columns(summaries)
    named = ([name, *row] for name, row in zip(names, values, strict=True))
    write_csv(base.with_name(f"{base.name}.csv"), ["run", *columns], named)
    write_table_files(base, _table(runs, goal), title)
    rows = [{**row, "method": f"{run.name}: {row['method']}"} for run in runs for row in run.rows]
    save(plot_curves(rows, goal.reading, goal=goal), base.with_name(f"{base.name}.pdf"))


def _shared_goal(folders: Sequence[RunFolder]) -> Goal:
    """The goal of the first run, which all must share.

    It is read from the mean model if some run tested only that.
    """
    goal, *others = (folder.goal() for folder in folders)
    for folder, other in zip(folders[1:], others, strict=True):
        if other.score != goal.score:
            expected = f"{goal.score.label}, as {folders[0].path}"
            raise InputError(
                f"metric of {folder.path}", other.score.label, expected, "Compare like with like."
            )
    readings = {goal.reading, *(other.reading for other in others)}
    return replace(goal, reading=max(readings, key=READINGS.index))


def _check_distinct(folders: Sequence[RunFolder]) -> None:
    different = {folder.path.resolve() for folder in folders}
    if len(different) < max(2, len(folders)):
        got = ", ".join(str(folder.path) for folder in folders)
        raise InputError("runs", got, "at least two different folders", "Name two folders or more.")


def comparison_page(
    title: str, runs: Sequence[RunResults], commands: Sequence[str], goal: Goal
) -> str:
    """The page that shows runs side by side, compared by one goal.

    Args:
        runs: at least one.
        commands: the commands that repeat them.
    """
    body = fill(
        "comparison.html",
        title=escape(title),
        tiles=tiles(winners(rankable(runs, goal), goal)),
        headline=escape(headline(runs, goal)),
        curves_part=asset("curves_part.html"),
        results=html_table(*_table(runs, goal)),
        differences=_differences(runs),
        commands="\n".join(map(escape, commands)),
    )
    return page(f"ssdfl: {title}", body, _data(runs, goal), COMPARISON_SCRIPTS, charts=True)


def _summaries(runs: Sequence[RunResults], goal: Goal) -> tuple[list[str], list[MethodSummary]]:
    """The names of runs and the summaries of their methods, one pair per run and method."""
    found = [(run.name, summary) for run in runs for summary in run.summaries(goal)]
    return [name for name, _ in found], [summary for _, summary in found]


def _table(runs: Sequence[RunResults], goal: Goal) -> Table:
    """One row per run and method."""
    names, summaries = _summaries(runs, goal)
    headers, rows = summary_table(summaries, goal)
    return Table(["run", *headers], [[name, *row] for name, row in zip(names, rows, strict=True)])


def _data(runs: Sequence[RunResults], goal: Goal) -> dict[str, Any]:
    """The data for the page's scripts."""
    all_rows: list[Row] = []
    series: list[dict[str, Any]] = []
    for run in runs:
        all_rows += run.rows
        series += series_data(run.rows, run.experiment.methods, run.name)
    return {
        **palette(),
        **metrics_data(all_rows, goal),
        "runs": [run.name for run in runs],
        "methods": list(dict.fromkeys(one["method"] for one in series)),
        "series": series,
    }


def run_names(folders: Sequence[RunFolder]) -> list[str]:
    """The folders' names, or their paths where two have the same name.

    Examples:
        >>> run_names([RunFolder(Path("runs/a")), RunFolder(Path("runs/b"))])
        ['a', 'b']
    """
    names = [folder.path.resolve().name for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder.path) for folder in folders]


def _differences(runs: Sequence[RunResults]) -> str:
    """The keys in which the experiments differ."""
    experiments = [flat(run.experiment.model_dump(mode="json")) for run in runs]
    rows = [_values(key, experiments) for key in sorted(set().union(*experiments))]
    different = list(filter(_differs, rows))
    if not different:
        return "<p>The experiments are the same, key by key.</p>"
    return html_table(["key", *(run.name for run in runs)], different)


def _differs(row: Sequence[str]) -> bool:
    """Whether the values after the key are not all the same."""
    return len(set(row[1:])) > 1


def _values(key: str, experiments: Sequence[Mapping[str, Any]]) -> list[str]:
    """A key and its value in each experiment."""
    return [key, *(_shown(experiment.get(key)) for experiment in experiments)]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    return "–" if value in (None, "") else str(value)
