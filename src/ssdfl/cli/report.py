"""``ssdfl report``: the page of a run, or of several side by side."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN_DIR…", help="Folders that ssdfl run made.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="File for the comparison of several runs; by default comparison.html here."
        ),
    ] = None,
    latex: Annotated[
        bool,
        typer.Option(
            "--latex", help="Also write tables as LaTeX, Markdown and CSV, and figures as PDF."
        ),
    ] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Rewrite a run's `report.html`, or compare several runs on one page.

    - `ssdfl report runs/demo --open`

    - `ssdfl report runs/demo runs/demo-2 --out both.html`

    - `ssdfl report runs/demo --latex`: also `tables/results.tex` and `figures/*.pdf`

    An unfinished run is shown up to its last record. The page is one file and works offline.
    """
    from ssdfl.errors import InputError
    from ssdfl.records import RunFolder
    from ssdfl.report import write_comparison, write_report

    folders = [RunFolder(path) for path in runs]
    if len(folders) == 1:
        if out is not None:
            remedy = "The report of a single run is written to its folder."
            raise InputError("--out", str(out), "several runs to compare", remedy)
        page = write_report(folders[0], latex)
    else:
        page = out or Path("comparison.html")
        write_comparison(folders, page, latex)
    typer.echo(f"{page}")
    if open_page and not webbrowser.open(page.resolve().as_uri()):
        typer.echo("No browser could be opened; open the file yourself.", err=True)
