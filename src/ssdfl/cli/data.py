"""``ssdfl data``: which data sets there are, where they lie, and how to get them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ssdfl.errors import InputError

if TYPE_CHECKING:
    from ssdfl.learning.datasets import DatasetInfo

app = typer.Typer(no_args_is_help=True, help="List data sets, or fetch one.")

Folder = Annotated[Path | None, typer.Option("--data", help="Folder with data sets, as SSDFL_DATA.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_datasets(data: Folder = None, as_json: Json = False) -> None:
    """List the data sets and where each was found.

    Looked up in this order: `--data` or `SSDFL_DATA`, the user's cache, the system's data sets; `ssdfl run`
    downloads what is in none of them.
    """
    from ssdfl.learning import DATASETS

    rows = [
        {"name": name, "about": info.about, "found": _place(info, data)} for name, info in DATASETS.items()
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    table = Table("name", "about", "found in")
    for row in rows:
        table.add_row(row["name"], row["about"], row["found"] or f"not here: ssdfl data fetch {row['name']}")
    Console().print(table, highlight=False)


def _place(info: DatasetInfo, folder: Path | None) -> str | None:
    """Where a data set is; None if nowhere."""
    from ssdfl.learning import locate

    if info.source is None:
        return "built in"
    place = locate(info.source, folder)
    return None if place is None else str(place)


@app.command("fetch")
def fetch_dataset(
    name: Annotated[str, typer.Argument(help="fmnist or cifar10.")],
    to: Annotated[
        Path | None, typer.Option("--to", help="Folder to put it in; by default the user's cache.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Download a data set and check it against its publisher's checksum; whole files are kept."""
    from ssdfl.learning import DATASETS, fetch

    sources = {key: info.source for key, info in DATASETS.items() if info.source is not None}
    if name not in sources:
        raise InputError("data set", name, f"one of {', '.join(sources)}", "digits needs no download.")
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks = {file.name: bars.add_task(file.name, start=False) for file in sources[name].files}

        def show(file: str, received: int, total: int) -> None:
            bars.start_task(tasks[file])
            bars.update(tasks[file], completed=received, total=total or None)

        place = fetch(sources[name], to, show)
    typer.echo(json.dumps({"name": name, "folder": str(place)}) if as_json else f"{name} is in {place}")
