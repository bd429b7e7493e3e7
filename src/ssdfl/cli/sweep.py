"""``ssdfl sweep``: run every combination of given values of an experiment's keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ssdfl.cli import pool
from ssdfl.cli.options import find_modules_in
from ssdfl.cli.progress import say

if TYPE_CHECKING:
    from ssdfl.records.sweep import Sweep

OUT = Path("runs") / "sweeps"


def sweep(
    file: Annotated[Path, typer.Argument(help="Experiment (TOML) with a table [sweep].")],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="A.B=C", help="Set one value for all combinations. Repeatable."
        ),
    ] = None,
    workers: pool.Workers = 0,
    cpus: pool.Cpus = 1,
    gpus: pool.Gpus = 0.0,
    backend: pool.BackendName = "processes",
    address: pool.Address = "",
    dry_run: pool.DryRun = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the comparison; by default runs/sweeps/NAME.")
    ] = None,
    cache: pool.Cache = pool.CACHE,
    data: pool.Data = None,
) -> None:
    """Run every combination of the values in `[sweep]` and compare them.

    The table lists keys and the values to try, such as `"training.learning_rate" = [0.02, 0.05]`.

    Examples:

    - `ssdfl sweep rates.toml --dry-run`

    - `ssdfl sweep rates.toml --workers 8`

    - `ssdfl sweep rates.toml --backend ray --address auto --cpus 2`

    After an interruption, the same command continues. Failed runs are left out of the comparison.
    """
    from ssdfl.experiments.pool import Resources
    from ssdfl.records.cache import distinct
    from ssdfl.records.sweep import load_sweep

    find_modules_in(file.parent)
    grid = load_sweep(file, tuple(settings or ()))
    resources = Resources(workers, cpus, gpus, address)
    if dry_run:
        groups = [(tuple(one.choices.values()), one.runs()) for one in grid.combinations]
        pool.estimate(grid.keys, groups, cache, resources, data)
        return
    runs = distinct(grid.runs())
    failed = pool.run_all(runs, cache, data, resources, backend)
    _present(grid, cache, out or OUT / grid.name)
    pool.refuse(failed, len(runs))


def _present(grid: Sweep, cache: Path, out: Path) -> None:
    from ssdfl.report.sweep import sweep_results, sweep_table, write_sweep

    results = sweep_results(grid, cache)
    if not results:
        return
    written = write_sweep(grid, results, out)
    headers, rows = sweep_table(grid, results)
    table = Table(title=f"{grid.name}: {len(grid.combinations)} combinations", box=SIMPLE_HEAD)
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console()
    console.print(table)
    for path in written:
        say(console, str(path))
