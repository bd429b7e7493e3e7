"""``ssdfl run``: run an experiment with progress, then show what came out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ssdfl.cli import ranks
from ssdfl.cli.live import LiveRun, serving
from ssdfl.cli.progress import follow, say
from ssdfl.errors import InputError

if TYPE_CHECKING:
    from ssdfl.experiments import Advance
    from ssdfl.records import Experiment, RunFolder

RUNS = Path("runs")
INTERRUPTED = 130


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
    engine: Annotated[
        str | None,
        typer.Option(
            help="local (fast), distributed (many cores, machines), reference or mesh (real devices)."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="With --engine distributed: ranks on this machine; 0 is one per core."
        ),
    ] = None,
    device: Annotated[str | None, typer.Option(help="Where tensors live: cpu, cuda, cuda:1.")] = None,
    plan: Annotated[Path | None, typer.Option(help="Take the clusters from this plan.json.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; by default a new one in runs/.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where the run in the folder stopped.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Folder with data sets, as SSDFL_DATA.")] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the experiment with every key and value, and stop.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Serve the report on loopback while the run goes on.")
    ] = False,
    port: Annotated[int, typer.Option(help="For --live; by default a free one.")] = 0,
    log: Annotated[
        list[str] | None,
        typer.Option(help="Also write records for tensorboard or mlflow. Repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Compare methods: run an experiment, print a table, and write figures and `report.html`.

    Examples:

    - `ssdfl run` compares six methods on handwritten digits (under a minute).

    - `ssdfl run --set network.spec=er:n=30,p=0.1 --set schedule.tau_a=3 --seeds 3`

    - `ssdfl run my.toml --methods ssdfl,sdfl --out runs/mine --resume`

    - `ssdfl run my.toml --engine distributed --workers 4`, or under `torchrun` on several machines

    - `ssdfl run --show > my.toml` writes a file with every key and its value: the place to start your own.

    A method, model or data set of your own is named `module:function`; the module lies in the working
    folder, beside FILE, or on PYTHONPATH.
    """
    from ssdfl.experiments.logs import logging_to
    from ssdfl.records import load_experiment, to_toml
    from ssdfl.records.folder import RunFolder, newest_folder, next_free_folder

    extra = [f"methods={json.dumps([m.strip() for m in methods.split(',')])}"] if methods is not None else []
    if seeds is not None:
        if seeds < 1:
            raise InputError("--seeds", seeds, "at least 1", "Give the number of seeds.")
        extra.append(f"seeds={list(range(seeds))}")
    extra += [f"clusters.plan={json.dumps(str(plan.resolve()))}"] if plan is not None else []
    extra += [f"engine.name={engine}"] if engine is not None else []
    extra += [f"engine.device={json.dumps(device)}"] if device is not None else []
    experiment = load_experiment(file, [*(settings or []), *extra])
    if show:
        typer.echo(to_toml(experiment), nl=False)
        return
    if file is not None:
        sys.path.append(str(file.parent.resolve()))
    if port and not live:
        raise InputError("--port", port, "a run with --live", "Add --live.")
    ranks.check_engine(experiment.engine.name)
    newest = newest_folder(experiment.name, RUNS)
    again = ranks.begun([out or newest]) if ranks.number() == 0 else None
    folder = RunFolder(out or again or (newest if resume else next_free_folder(experiment.name, RUNS)))
    resume = resume or again is not None
    if experiment.engine.name == "distributed":
        for option, given in (("--live", live), ("--log", log)):
            if given:
                remedy = "Leave it out; report.html has everything afterwards."
                raise InputError(option, given, "another engine than distributed", remedy)
        _in_ranks(experiment, folder, resume, data, as_json, workers or 0)
        return
    if workers is not None:
        raise InputError("--workers", workers, "--engine distributed", "Other engines use all cores.")
    experiment = folder.joined(experiment) if resume else experiment
    page = LiveRun(folder, experiment) if live else None
    with serving(page, port) if page else nullcontext() as address:
        watchers = [page.cycle] if page else []
        remark = f"Live: {address}" if address else ""
        with _resumable(folder), logging_to(log or [], experiment, folder) as watch:
            _execute(experiment, folder, resume, data, remark, [*watchers, watch])
        _compare_bounds(experiment, folder, data)
        report = _present(folder, as_json)
        if page:
            page.end(f"The run has ended. This page stays as {report}.")


@contextmanager
def _resumable(folder: RunFolder) -> Iterator[None]:
    """Say how to go on with a run that is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        again = f"--resume --out {folder.path}"
        text = f"Interrupted; what is done is kept. Go on with the same command and: {again}"
        say(Console(stderr=True), text)
        raise typer.Exit(INTERRUPTED) from None


def _in_ranks(
    experiment: Experiment, folder: RunFolder, resume: bool, data: Path | None, as_json: bool, workers: int
) -> None:
    """Be a rank, or start them; rank 0 alone shows something."""
    rank = ranks.number()
    if rank is None:
        if resume:
            folder.joined(experiment)
        else:
            folder.check_free()
        with _resumable(folder):
            code = ranks.start(folder.path, workers)
            if code == INTERRUPTED:
                raise KeyboardInterrupt
        if code:
            raise typer.Exit(code)
        return
    if ranks.another_is_mistaken():
        return
    if rank == 0:
        ranks.begin(folder.path)
    try:
        _execute(experiment, folder, resume, data, quiet=rank > 0)
    except RuntimeError as error:
        from ssdfl.engine.ranks import means_lost_ranks

        if not means_lost_ranks(error):
            raise
        if ranks.another_is_mistaken(patience_s=5.0):
            return
        say(Console(stderr=True), f"ssdfl: rank {rank} has lost the others: {str(error).splitlines()[0]}")
        raise typer.Exit(1) from None
    if rank == 0:
        _compare_bounds(experiment, folder, data)
        _present(folder, as_json)


def _execute(
    experiment: Experiment,
    folder: RunFolder,
    resume: bool,
    data: Path | None,
    remark: str = "",
    watchers: Sequence[Callable[[Advance], None]] = (),
    quiet: bool = False,
) -> None:
    with follow(Console(stderr=True, quiet=quiet), experiment, remark) as follower:
        from ssdfl.experiments import iterate_experiment

        for advance in iterate_experiment(
            experiment, folder.path, resume=resume, data=data, progress=follower.download
        ):
            follower.cycle(advance)
            for watch in watchers:
                watch(advance)


def _compare_bounds(experiment: Experiment, folder: RunFolder, data: Path | None) -> None:
    """Keep what the bounds say of a run that recorded what they speak of, for its report."""
    from ssdfl.experiments.bounds import can_compare, compare_bounds

    if can_compare(experiment):
        folder.write_bounds(compare_bounds(folder, data))


def _present(folder: RunFolder, as_json: bool) -> Path:
    from ssdfl.report import RunResults, headline, summarise, summary_table, write_report

    experiment, report, summaries = folder.experiment(), write_report(folder), summarise(folder)
    remarks = {plan.remark for seed in experiment.seeds if (plan := folder.plan(seed)) and plan.remark}
    for remark in sorted(remarks) if "ssdfl" in experiment.methods else ():
        say(Console(stderr=True), f"ssdfl: {remark}")
    if as_json:
        result = {
            "experiment": experiment.model_dump(mode="json"),
            "folder": str(folder.path),
            "report": str(report),
            "methods": [summary.flat() for summary in summaries],
        }
        typer.echo(json.dumps(result, indent=1))
        return report
    console = Console()
    target = experiment.evaluate.target_accuracy
    title = f"{experiment.name}: {experiment.cycles} cycles, seeds {', '.join(map(str, experiment.seeds))}"
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    headers, rows = summary_table(summaries, target)
    table.add_column("method", overflow="fold")
    for place, text in enumerate(headers[1:], start=1):
        table.add_column(text, justify="right", min_width=max(len(row[place]) for row in rows))
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    say(console, headline([RunResults(experiment, folder.all_rows())], target))
    say(console, f"Report:  {report}")
    say(console, f"Figures: {folder.path / 'figures'}")
    say(console, f"Records: {folder.path / 'metrics.parquet'}")
    return report
