"""What commands that do many runs share: their options, and one view of how far all runs are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ssdfl.cli.progress import say
from ssdfl.errors import InputError

if TYPE_CHECKING:
    from ssdfl.experiments import Experiment
    from ssdfl.experiments.pool import Resources

Workers = Annotated[int, typer.Option(help="Runs at a time; 0 is one per core, or all that a cluster can.")]
Cpus = Annotated[int, typer.Option(help="Cores of one run.")]
Gpus = Annotated[float, typer.Option(help="GPUs of one run, with --backend ray and engine.device = cuda.")]
BackendName = Annotated[str, typer.Option("--backend", help="What does the runs: processes or ray.")]
Address = Annotated[str, typer.Option(help="A Ray cluster's, such as auto; none is this machine.")]
Cache = Annotated[Path, typer.Option(help="Folder for the runs, which those who ask for the same share.")]
Data = Annotated[Path | None, typer.Option(help="Folder with data sets, as SSDFL_DATA.")]


def run_all(
    runs: list[Experiment], cache: Path, data: Path | None, resources: Resources, backend: str
) -> None:
    """Do what is missing of runs and show how far they are.

    Raises:
        InputError: some failed; it names the first.
    """
    from ssdfl.experiments.pool import run_pool

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    failed = []
    try:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
            task = bars.add_task("runs", total=len(runs))
            finished = run_pool(runs, cache, data=data, resources=resources, backend=backend)
            for number, done in enumerate(finished, start=1):
                bars.advance(task)
                one = done.experiment
                what = f"{one.methods[0]}, seed {one.seeds[0]} on {one.network.spec}"
                if done.error:
                    failed.append(f"{what}: {done.error}")
                if not console.is_terminal and done.seconds:
                    say(console, f"{number}/{len(runs)} {what}: {done.seconds:.0f} s")
    except KeyboardInterrupt:
        say(console, "Interrupted; what is done is kept. The same command goes on.")
        raise typer.Exit(130) from None
    if failed:
        raise InputError(
            "runs", f"{len(failed)} of {len(runs)} failed", "finished ones", f"The first: {failed[0]}"
        )
