"""``ssdfl run``: run an experiment with progress, then show what came out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from ssdfl.errors import InputError

if TYPE_CHECKING:
    from ssdfl.experiments import Advance, Experiment, RunFolder

RUNS = Path("runs")


def run(
    file: Annotated[
        Path | None, typer.Argument(help="Experiment (TOML). Without it, the default one.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="A.B=C", help="Set one value, such as training.learning_rate=0.1. Repeatable."
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B", help="Methods: ssdfl, sdfl, pdfl, stc, cstc, central, or your own module:function."
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="Run seeds 0 … N−1.")] = None,
    engine: Annotated[str | None, typer.Option(help="local (fast) or reference (plain loops).")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; by default a new one in runs/.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where the run in the folder stopped.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Folder with data sets, as SSDFL_DATA.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Compare methods: run an experiment, print a table, and write figures and `report.html`.

    Examples:

    - `ssdfl run` compares six methods on handwritten digits (under a minute).

    - `ssdfl run --set network.spec=er:n=30,p=0.1 --set schedule.tau_a=3 --seeds 3`

    - `ssdfl run my.toml --methods ssdfl,sdfl --out runs/mine --resume`

    `ssdfl run --set name=empty --set cycles=1 --out runs/x` writes `runs/x/experiment.toml` with every key
    and its value: the place to start your own.
    """
    from ssdfl.experiments import load_experiment
    from ssdfl.experiments.store import RunFolder, newest_folder, next_free_folder

    extra = [f"methods={json.dumps([m.strip() for m in methods.split(',')])}"] if methods else []
    if seeds is not None:
        if seeds < 1:
            raise InputError("--seeds", seeds, "at least 1", "Give the number of seeds.")
        extra.append(f"seeds={list(range(seeds))}")
    extra += [f"engine.name={engine}"] if engine else []
    experiment = load_experiment(file, [*(settings or []), *extra])
    place = out or (newest_folder if resume else next_free_folder)(experiment.name, RUNS)
    _execute(experiment, place, resume, data)
    _present(RunFolder(place), experiment, as_json)


def _execute(experiment: Experiment, out: Path, resume: bool, data: Path | None) -> None:
    console = Console(stderr=True)
    console.print(
        f"[bold]{experiment.name}[/]: {experiment.data.name}, {experiment.network.spec}, "
        f"{len(experiment.methods)} methods × {len(experiment.seeds)} seeds × {experiment.cycles} cycles"
    )
    try:
        with _progress(console, experiment) as follow:
            from ssdfl.experiments import iterate_experiment

            for advance in iterate_experiment(
                experiment, out, resume=resume, data=data, progress=follow.download
            ):
                follow.cycle(advance)
    except KeyboardInterrupt:
        console.print(
            f"Interrupted; what is done is kept. Go on with the same command and: --resume --out {out}"
        )
        raise typer.Exit(130) from None


class _Follower:
    """Shows a run's progress: bars on a terminal, one line per finished method elsewhere."""

    def __init__(self, console: Console, bars: Progress, experiment: Experiment) -> None:
        self.console, self.bars, self.cycles = console, bars, experiment.cycles
        total = experiment.cycles * len(experiment.methods) * len(experiment.seeds)
        self.task = bars.add_task("starting", total=total, note="")

    def download(self, name: str, received: int, total: int) -> None:
        self.bars.update(self.task, note=f"downloading {name}: {received / 1e6:.1f} of {total / 1e6:.1f} MB")

    def cycle(self, advance: Advance) -> None:
        record = advance.record
        note = f"{100 * record.accuracy:.1f} %" if record and record.accuracy == record.accuracy else ""
        label = f"seed {advance.seed} {advance.method}"
        self.bars.update(self.task, advance=1, description=label, note=note)
        if record and record.cycle == self.cycles and not self.console.is_terminal:
            self.console.print(
                f"{label}: {note} after {record.cycle} cycles, {record.time_s:.2f} simulated s"
            )


@contextmanager
def _progress(console: Console, experiment: Experiment) -> Iterator[_Follower]:
    columns = (
        TextColumn("{task.description:>16}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        yield _Follower(console, bars, experiment)


def _present(folder: RunFolder, experiment: Experiment, as_json: bool) -> None:
    from ssdfl.report import cells, headers, headline, summarise, write_report

    report = write_report(folder)
    summaries = summarise(folder)
    target = experiment.evaluate.target_accuracy
    if as_json:
        result: dict[str, Any] = {
            "experiment": experiment.model_dump(mode="json"),
            "folder": str(folder.path),
            "report": str(report),
            "methods": [asdict(summary) for summary in summaries],
        }
        typer.echo(json.dumps(result, indent=1))
        return
    console = Console()
    title = f"{experiment.name}: {experiment.cycles} cycles, {len(experiment.seeds)} seeds"
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False)
    for place, text in enumerate(headers(target)):
        table.add_column(text, justify="right" if place else "left")
    for summary in summaries:
        table.add_row(*cells(summary))
    console.print(table)
    console.print(headline(summaries, target), highlight=False)
    console.print(
        f"Report:  {report}\nFigures: {folder.path / 'figures'}\nRecords: {folder.path / 'metrics.parquet'}",
        highlight=False,
    )
