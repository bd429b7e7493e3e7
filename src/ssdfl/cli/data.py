"""``ssdfl data``: list and download data sets, and show what each device holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ssdfl.cli.options import check_picture, experiment_file
from ssdfl.cli.progress import BLOCKS, say
from ssdfl.errors import InputError

if TYPE_CHECKING:
    from ssdfl.learning.datasets import DatasetInfo

app = typer.Typer(
    no_args_is_help=True, help="List, fetch or summarise data sets, or see what each device holds."
)

Folder = Annotated[
    Path | None, typer.Option("--data", help="Folder with data sets, as SSDFL_DATA.")
]
BAR = 24
"""The length of the longest bar, in blocks."""
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_datasets(data: Folder = None, as_json: Json = False) -> None:
    """List the data sets and where each was found.

    The places are searched in this order: `--data` or `SSDFL_DATA`, the user's cache, the system's
    data sets. `ssdfl run` downloads a data set that is in none of them.
    """
    from ssdfl.learning import DATASETS

    rows = [
        {"name": name, "about": info.about, "found": _place(info, data)}
        for name, info in DATASETS.items()
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    table = Table("name", "about", "found in")
    for row in rows:
        table.add_row(
            row["name"], row["about"], row["found"] or f"not here: ssdfl data fetch {row['name']}"
        )
    Console().print(table, highlight=False)


def _place(info: DatasetInfo, folder: Path | None) -> str | None:
    """The place of a data set, or None if it is not on disk."""
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
    """Download a data set and check it against its publisher's checksum.

    Files that are already complete are not downloaded again.
    """
    from ssdfl.learning import DATASETS, fetch

    sources = {key: info.source for key, info in DATASETS.items() if info.source is not None}
    if name not in sources:
        raise InputError(
            "data set", name, f"one of {', '.join(sources)}", "digits needs no download."
        )
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks = {file.name: bars.add_task(file.name, start=False) for file in sources[name].files}

        def show(file: str, received: int, total: int) -> None:
            bars.start_task(tasks[file])
            bars.update(tasks[file], completed=received, total=total or None)

        place = fetch(sources[name], to, show)
    typer.echo(
        json.dumps({"name": name, "folder": str(place)}) if as_json else f"{name} is in {place}"
    )


@app.command("summarise")
def summarise(
    parts: Annotated[
        list[Path],
        typer.Argument(help="Devices' data files or folders, or summaries of them (.json)."),
    ],
    out: Annotated[Path, typer.Option(help="The JSON file to write, for data.encoding.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="Set one value. Repeatable.")
    ] = None,
) -> None:
    """Write the encoding that all devices share: means, deviations, categories and classes.

    Summaries can be merged: let every device write its own, then merge them. No row of data leaves
    its device.

    - `ssdfl data summarise train.csv --set data.target=price --out ann.json`

    - `ssdfl data summarise ann.json bob.json --out encoding.json`
    """
    from ssdfl.files import write_text
    from ssdfl.learning import merged, reading_of
    from ssdfl.learning.readers import read_summary_of
    from ssdfl.records import load_experiment

    reading = reading_of(load_experiment(None, settings or []).data)
    summary = merged([read_summary_of(part, reading) for part in parts])
    write_text(out, summary.to_json())
    rows = max(column.rows for column in (*summary.inputs, *summary.targets))
    typer.echo(
        f"{out}: {len(summary.inputs)} inputs and {len(summary.targets)} targets of {rows:,} rows."
    )


@app.command("describe")
def describe(
    file: Annotated[
        Path | None,
        typer.Argument(help="Experiment (TOML). Without it, ./ssdfl.toml, else the default one."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="Set one value. Repeatable.")
    ] = None,
    data: Folder = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Also draw it into this .png or .pdf file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what each device holds in an experiment's first seed, and how the data were prepared."""
    from ssdfl.learning import label_counts, load_data
    from ssdfl.preparation import draw
    from ssdfl.records import load_experiment

    check_picture("--out", out)
    experiment = load_experiment(experiment_file(file), settings or [])
    dataset = load_data(experiment.data, data)
    network, task, _ = draw(experiment, experiment.seeds[0], dataset)
    rows = [
        {"device": name, "samples": len(shard), "labels": label_counts(task, shard)}
        for name, shard in zip(network.names, task.shards, strict=True)
    ]
    if out is not None:
        _draw_rows(rows, f"{experiment.data.name} on {network.title}", out)
    if as_json:
        typer.echo(json.dumps({"notes": list(dataset.notes), "devices": rows}, indent=1))
    else:
        _print_rows(rows, dataset.notes, len(task.test_targets))


def _draw_rows(rows: list[dict[str, Any]], title: str, out: Path) -> None:
    import numpy as np

    from ssdfl.report import plot_holdings, save

    labels = np.array([row["labels"] for row in rows]) if rows[0]["labels"] else None
    sizes = np.array([row["samples"] for row in rows])
    save(plot_holdings([row["device"] for row in rows], sizes, labels, title), out)


def _print_rows(rows: list[dict[str, Any]], notes: Sequence[str], tested: int) -> None:
    console = Console()
    console.print(_table(rows), highlight=False)
    total = sum(row["samples"] for row in rows)
    for line in (f"{total:,} samples to train on, {tested:,} to test with.", *notes):
        say(console, line)


def _table(rows: list[dict[str, Any]]) -> Table:
    """One row per device: a bar and, if there are classes, a block for each label."""
    headers = (
        ["device", "samples", "", "labels"] if rows[0]["labels"] else ["device", "samples", ""]
    )
    most = max(row["samples"] for row in rows)
    table = Table(*headers)
    for row in rows:
        bar = "█" * max(1, round(BAR * row["samples"] / most))
        cells = (row["device"], f"{row['samples']:,}", bar, _blocks(row["labels"]))
        table.add_row(*cells[: len(headers)])
    return table


def _blocks(counts: Sequence[int]) -> str:
    """One block per label, whose height shows the number of samples; a dot stands for none."""
    most = max(counts, default=0)
    return "".join(BLOCKS[round(7 * count / most)] if count else "·" for count in counts)
