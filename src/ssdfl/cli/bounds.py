"""``ssdfl bounds``: the paper's bounds beside a run, or against the number of clusters."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ssdfl.cli.options import check_choice, check_picture
from ssdfl.cli.progress import say
from ssdfl.errors import InputError

if TYPE_CHECKING:
    from ssdfl.records.bounds import BoundRow, BoundSummary


def bounds(
    target: Annotated[
        str, typer.Argument(metavar="RUN_DIR|NETWORK", help="A run's folder, or a network.")
    ],
    tau_a: Annotated[str, typer.Option(help="For a network: several τ_a.")] = "1,3,5",
    learning_rate: Annotated[float, typer.Option(help="For a network: η.")] = 0.01,
    gradient_bound: Annotated[float, typer.Option(help="For a network: B.")] = 1.0,
    smoothness: Annotated[float, typer.Option(help="For a network: γ̂.")] = 1.0,
    mixing: Annotated[str, typer.Option(help="For a network: metropolis or lazy.")] = "lazy",
    picture: Annotated[
        Path | None,
        typer.Option(help="Picture to write; by default bounds.png in the run's folder or here."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder with data sets, as SSDFL_DATA.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Compare the paper's bounds with a run, or draw them against the number of clusters.

    - `ssdfl run --set evaluate.gaps=true --set training.local_steps=1 --methods ssdfl --out
      runs/b`, then `ssdfl bounds runs/b`: compares the quantities that Lemmas 1 and 2 and Theorem 1
      bound, measured in every cycle, with the published and the rigorous bound.

    - `ssdfl bounds er:n=10,p=0.4,seed=1`: draws Theorem 1's bound against S, as in the paper's
      figure of normalised gradients: for several τ_a, for three labels per device and one, for
      mixed optimizers and SGD.
    """
    check_picture("--picture", picture)
    if Path(target).is_dir():
        _of_run(Path(target), picture, data, as_json)
        return
    try:
        lengths = tuple(int(part) for part in tau_a.split(","))
    except ValueError:
        raise InputError(
            "--tau-a", tau_a, "whole numbers such as 1,3,5", "Separate them by commas."
        ) from None
    _of_network(
        target, lengths, (learning_rate, gradient_bound, smoothness), mixing, picture, as_json
    )


def _of_run(path: Path, picture: Path | None, data: Path | None, as_json: bool) -> None:
    from ssdfl.experiments.bounds import compare_bounds
    from ssdfl.records import RunFolder
    from ssdfl.records.bounds import summarise_bounds
    from ssdfl.report import plot_measured_bounds, save

    rows = list(compare_bounds(RunFolder(path), data))
    RunFolder(path).write_bounds(rows)
    summaries = summarise_bounds(rows)
    picture = picture or path / "bounds.png"
    first = rows[0].method if rows else ""
    shown = [row for row in rows if row.method == first]
    save(plot_measured_bounds(shown, f"{path.name}: {first}"), picture)
    if as_json:
        result = {
            "rows": _plain_rows(rows),
            "picture": str(picture),
            "summary": _plain_rows(summaries),
        }
        typer.echo(json.dumps(result, indent=1))
        return
    _show(_table(summaries), picture)


def _plain_rows(rows: Sequence[BoundRow | BoundSummary]) -> list[object]:
    return [_plain(asdict(row)) for row in rows]


def _plain(value: object) -> object:
    """A value for JSON, which has no infinity and no NaN: they become null."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _table(summaries: list[BoundSummary]) -> Table:
    from ssdfl.report.bounds import bound_table

    headers, rows = bound_table(summaries)
    table = Table(*headers, box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    return table


def _of_network(
    spec: str,
    lengths: tuple[int, ...],
    constants: tuple[float, float, float],
    mixing: str,
    picture: Path | None,
    as_json: bool,
) -> None:
    from ssdfl.clusters.by_clusters import bounds_by_clusters
    from ssdfl.graph import MIXINGS, load_network
    from ssdfl.report import plot_bounds_by_clusters, save
    from ssdfl.theory import Constants

    check_choice("--mixing", mixing, MIXINGS)
    η, B, γ = constants
    base = Constants(learning_rate=η, gradient_bound=B, smoothness=γ)
    network = load_network(spec)
    panels = bounds_by_clusters(network, base, lengths, MIXINGS[mixing])
    picture = picture or Path("bounds.png")
    save(plot_bounds_by_clusters(panels, f"{network.title}: Theorem 1 against S"), picture)
    if as_json:
        values = {name: _plain_curves(curves) for name, curves in panels.items()}
        typer.echo(json.dumps({"panels": values, "picture": str(picture)}, indent=1))
        return
    headers = [f"best S at τ_a = {length}" for length in lengths]
    table = Table("case", *headers, box=SIMPLE_HEAD, pad_edge=False)
    for name, curves in panels.items():
        table.add_row(name, *(_least(list(values)) for values in curves.values()))
    _show(table, picture)


def _plain_curves(curves: Mapping[int, Iterable[float]]) -> dict[str, list[object]]:
    """The bounds for every S of each τ_a, for JSON."""
    return {
        str(length): [_plain(float(value)) for value in bound] for length, bound in curves.items()
    }


def _show(table: Table, picture: Path) -> None:
    console = Console()
    console.print(table)
    say(console, f"Picture: {picture}")


def _least(values: list[float]) -> str:
    if not any(math.isfinite(value) for value in values):
        return "says nothing"
    return str(1 + values.index(min(values)))
