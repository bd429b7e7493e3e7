"""Print the results of a finished run: a table on the terminal, or JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ssdfl.cli.progress import say

if TYPE_CHECKING:
    from ssdfl.records import Experiment, Goal, RunFolder
    from ssdfl.report import MethodSummary

_LEAST_WIDTH = 6


def present(folder: RunFolder, as_json: bool) -> Path:
    """Write a run's report and print its results; returns the report's path."""
    from ssdfl.report import summarise, write_report

    experiment = folder.experiment()
    report = write_report(folder)
    summaries = summarise(folder)
    for remark in _remarks(folder, experiment):
        say(Console(stderr=True), f"ssdfl: {remark}")
    if as_json:
        _print_json(folder, experiment, report, summaries)
    else:
        _print_table(folder, experiment, report, summaries)
    return report


def _remarks(folder: RunFolder, experiment: Experiment) -> list[str]:
    """Remarks on the plans, if a method used them."""
    from ssdfl.methods import find_method

    if not any(find_method(method).needs_plan for method in experiment.methods):
        return []
    plans = filter(None, map(folder.plan, experiment.seeds))
    return sorted({plan.remark for plan in plans} - {""})


def _print_json(
    folder: RunFolder, experiment: Experiment, report: Path, summaries: list[MethodSummary]
) -> None:
    result = {
        "experiment": experiment.model_dump(mode="json"),
        "folder": str(folder.path),
        "report": str(report),
        "methods": [summary.flat() for summary in summaries],
    }
    typer.echo(json.dumps(result, indent=1))


def _print_table(
    folder: RunFolder, experiment: Experiment, report: Path, summaries: list[MethodSummary]
) -> None:
    from ssdfl.report import RunResults, headline

    console = Console()
    goal = folder.goal(experiment)
    console.print(_table(experiment, summaries, goal))
    say(console, headline([RunResults(experiment, folder.all_rows())], goal))
    say(console, f"Report:  {report}")
    say(console, f"Figures: {folder.path / 'figures'}")
    say(console, f"Records: {folder.path / 'metrics.parquet'}")


def _table(experiment: Experiment, summaries: list[MethodSummary], goal: Goal) -> Table:
    from ssdfl.report import summary_table

    seeds = ", ".join(map(str, experiment.seeds))
    title = f"{experiment.name}: {experiment.cycles} cycles, seeds {seeds}"
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    headers, rows = summary_table(summaries, goal)
    table.add_column("method", overflow="fold")
    for place, text in enumerate(headers[1:], start=1):
        # A fixed width: a narrow terminal breaks the names of methods, never numbers.
        words = [*(row[place] for row in rows), *text.split()]
        table.add_column(text, justify="right", width=max(_LEAST_WIDTH, *map(len, words)))
    for row in rows:
        table.add_row(*map(Text, row))
    return table
