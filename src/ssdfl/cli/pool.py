"""Options, an estimate and a progress view for commands that execute many runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from ssdfl.cli.progress import say
from ssdfl.errors import InputError

if TYPE_CHECKING:
    from ssdfl.experiments.pool import Resources
    from ssdfl.records import Experiment

Workers = Annotated[
    int, typer.Option(help="Runs at a time; 0 is one per core, or as many as the cluster allows.")
]
Cpus = Annotated[int, typer.Option(help="Cores of one run.")]
Gpus = Annotated[
    float, typer.Option(help="GPUs of one run, with --backend ray and engine.device = cuda.")
]
BackendName = Annotated[
    str, typer.Option("--backend", help="What executes the runs: processes or ray.")
]
Address = Annotated[
    str, typer.Option(help="Address of a Ray cluster, such as auto; by default this machine.")
]
Cache = Annotated[Path, typer.Option(help="Folder for the runs; identical runs are shared.")]
Data = Annotated[Path | None, typer.Option(help="Folder with data sets, as SSDFL_DATA.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the runs and how long they will take, and stop.")
]
CACHE = Path("runs") / "cache"


def estimate(
    titles: Sequence[str],
    groups: Sequence[tuple[Sequence[object], list[Experiment]]],
    cache: Path,
    resources: Resources,
    data: Path | None,
) -> None:
    """Print how many runs of each group are done and missing, and how long the missing ones take.

    Args:
        titles: headers of the columns that name a group.
        groups: each group's names and runs; a run that several share is counted once.
    """
    from ssdfl.experiments.estimate import Estimator
    from ssdfl.records.cache import finished_rows, run_key

    estimator, seen, total_s = Estimator(data), set[str](), 0.0
    table = Table(*titles, "runs", "there", "to do", "core-hours", box=SIMPLE_HEAD)
    for names, runs in groups:
        missing = {run_key(one): one for one in runs if not finished_rows(one, cache)}
        seconds = sum(estimator.seconds(one) for key, one in missing.items() if key not in seen)
        seen |= missing.keys()
        total_s += seconds
        counts = (len(runs), len(runs) - len(missing), len(missing), f"{seconds / 3600:.3f}")
        table.add_row(*(Text(str(cell)) for cell in (*names, *counts)))
    number = resources.at_a_time_here
    console = Console()
    console.print(table, highlight=False)
    hours = total_s / 3600 / number
    say(console, f"About {hours:.2f} hours with {number} at a time; shared runs are counted once.")


def run_all(
    runs: list[Experiment], cache: Path, data: Path | None, resources: Resources, backend: str
) -> list[str]:
    """Execute missing runs and show their progress; returns the failures as text."""
    from ssdfl.experiments.pool import run_pool

    console = Console(stderr=True)
    _say_precision(console, runs)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    failed = []
    try:
        with Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as bars:
            task = bars.add_task("runs", total=len(runs))
            finished = run_pool(runs, cache, data=data, resources=resources, backend=backend)
            for number, done in enumerate(finished, start=1):
                bars.advance(task)
                one = done.experiment
                what = f"{one.methods[0]}, seed {one.seeds[0]} on {one.network.spec}"
                if done.error:
                    failed.append(f"{what}: {done.error}")
                if not console.is_terminal and done.seconds:
                    outcome = "failed" if done.error else f"{done.seconds:.0f} s"
                    say(console, f"{number}/{len(runs)} {what}: {outcome}")
    except KeyboardInterrupt:
        say(console, "Interrupted; finished work is kept. Run the same command to continue.")
        raise typer.Exit(130) from None
    return failed


def _say_precision(console: Console, runs: Sequence[Experiment]) -> None:
    """Print one note if the precision of some runs brings no gain on this machine."""
    from ssdfl.learning import precision_remark

    engines = {(one.engine.precision, one.engine.device) for one in runs}
    for remark in sorted({precision_remark(*engine) for engine in engines} - {""}):
        say(console, remark)


def refuse(failed: list[str], runs: int) -> None:
    """Raise an error if runs failed; it says how many, and why the first did.

    Raises:
        InputError: at least one run failed.
    """
    if failed:
        raise InputError(
            "runs", f"{len(failed)} of {runs} failed", "finished ones", f"The first: {failed[0]}"
        )
