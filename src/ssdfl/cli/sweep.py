"""``ssdfl sweep``: every combination of some values of an experiment's keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ssdfl.cli import pool
from ssdfl.cli.progress import say

if TYPE_CHECKING:
    from ssdfl.experiments.pool import Resources
    from ssdfl.experiments.sweep import Sweep

OUT = Path("runs") / "sweeps"
CACHE = Path("runs") / "cache"


def sweep(
    file: Annotated[Path, typer.Argument(help="Experiment (TOML) with a table [sweep].")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="Set one value for all combinations. Repeatable."),
    ] = None,
    workers: pool.Workers = 0,
    cpus: pool.Cpus = 1,
    gpus: pool.Gpus = 0.0,
    backend: pool.BackendName = "processes",
    address: pool.Address = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the runs and how long they will take, and stop.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the comparison; by default runs/sweeps/NAME.")
    ] = None,
    cache: pool.Cache = CACHE,
    data: pool.Data = None,
) -> None:
    """Run every combination of the values in `[sweep]`, with all methods and seeds, and compare them.

    The table names keys and what each shall take, such as `"training.learning_rate" = [0.02, 0.05]`.

    Examples:

    - `ssdfl sweep rates.toml --dry-run`

    - `ssdfl sweep rates.toml --workers 8`

    - `ssdfl sweep rates.toml --backend ray --address auto --cpus 2`

    Interrupted, the same command goes on where it stopped.
    """
    from ssdfl.experiments.pool import Resources
    from ssdfl.experiments.sweep import load_sweep

    grid = load_sweep(file, tuple(settings or ()))
    resources = Resources(workers, cpus, gpus, address)
    if dry_run:
        _estimate(grid, cache, resources, data)
        return
    pool.run_all(grid.runs(), cache, data, resources, backend)
    _present(grid, cache, out or OUT / grid.name)


def _estimate(grid: Sweep, cache: Path, resources: Resources, data: Path | None) -> None:
    from ssdfl.experiments.estimate import Estimator
    from ssdfl.experiments.pool import cores, is_finished, run_key

    estimator, seen, total_s = Estimator(data), set[str](), 0.0
    table = Table(*grid.keys, "runs", "to do", "core-hours", box=SIMPLE_HEAD)
    for combination in grid.combinations:
        missing = {run_key(one): one for one in combination.runs() if not is_finished(one, cache)}
        seconds = sum(estimator.seconds(one) for key, one in missing.items() if key not in seen)
        seen |= missing.keys()
        total_s += seconds
        counts = (len(combination.runs()), len(missing), f"{seconds / 3600:.3f}")
        table.add_row(*(Text(str(cell)) for cell in (*combination.choices.values(), *counts)))
    console = Console()
    console.print(table, highlight=False)
    number = resources.workers or cores()
    say(console, f"About {total_s / 3600 / number:.2f} hours with {number} at a time.")


def _present(grid: Sweep, cache: Path, out: Path) -> None:
    from ssdfl.report.sweep import compare, headers_of, texts_of, write_comparison

    lines = compare(grid, cache)
    written = write_comparison(grid, lines, out)
    table = Table(title=f"{grid.name}: {len(grid.combinations)} combinations", box=SIMPLE_HEAD)
    for header in headers_of(grid):
        table.add_column(header, overflow="fold")
    for line in lines:
        table.add_row(*map(Text, texts_of(grid, line)))
    console = Console()
    console.print(table)
    for path in written:
        say(console, str(path))
