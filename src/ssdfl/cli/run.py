"""``ssdfl run``: run an experiment with progress, then show the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ssdfl.cli import ranks
from ssdfl.cli.live import LiveRun, serving
from ssdfl.cli.options import experiment_file, find_modules_in
from ssdfl.cli.progress import say, showing_progress
from ssdfl.cli.results import present
from ssdfl.errors import InputError, check_range
from ssdfl.mappings import without_none

if TYPE_CHECKING:
    from ssdfl.experiments import Advance
    from ssdfl.records import Experiment, RunFolder

    Watcher = Callable[[Advance], None]
    """Called after every cycle."""

RUNS = Path("runs")
INTERRUPTED = 130


def run(
    file: Annotated[
        Path | None,
        typer.Argument(help="Experiment (TOML). Without it, ./ssdfl.toml, else the default one."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="A.B=C",
            help="Set one value, such as training.learning_rate=0.1. Repeatable.",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Methods: ssdfl, sdfl, pdfl, matcha, … (ssdfl methods lists them), or your own "
            "module:function; with a rule: ssdfl+atc.",
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="Run seeds 0 … N−1.")] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="local (fast), distributed (many cores, machines), reference "
            "or mesh (real devices)."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Ranks (processes) on this machine, with --engine distributed; 0 is one per core.",
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Where tensors live: cpu, cuda, cuda:1.")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="Take the clusters from this plan.json.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; by default a new one in runs/.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in the folder where it stopped.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Folder with data sets, as SSDFL_DATA.")] = None,
    show: Annotated[
        bool,
        typer.Option("--show", help="Print the experiment with every key and value, and stop."),
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Serve the report on loopback during the run.")
    ] = False,
    port: Annotated[int, typer.Option(help="Port of --live; by default any free one.")] = 0,
    log: Annotated[
        list[str] | None,
        typer.Option(help="Also write records for tensorboard, mlflow or wandb. Repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Compare methods: run an experiment, print a table, and write figures and `report.html`.

    Examples:

    - `ssdfl run` compares seven methods on handwritten digits (about a minute).

    - `ssdfl run --set network.spec=er:n=30,p=0.1 --set schedule.tau_a=3 --seeds 3`

    - `ssdfl run my.toml --methods ssdfl,sdfl --out runs/mine --resume`

    - `ssdfl run my.toml --engine distributed --workers 4`, or under `torchrun` on several machines

    - `ssdfl run --show > my.toml` writes a file with every key and its value, to start your own
      from.

    Name your own method, model or data set `module:function`; put the module into the working
    folder, beside FILE, or on PYTHONPATH.
    """
    from ssdfl.records import load_experiment, to_toml

    file = experiment_file(file)
    overrides = _overrides(methods, seeds, plan, engine, device)
    experiment = load_experiment(file, settings or [], overrides)
    if show:
        typer.echo(to_toml(experiment), nl=False)
        return
    if file is not None:
        find_modules_in(file.parent)
    in_ranks = _runs_in_ranks(experiment, workers)
    _check_page_and_logs(experiment, in_ranks, live, port, log)
    folder, resume = _choose_folder(experiment.name, out, resume)
    request = _Request(experiment, folder, resume, data, as_json)
    if in_ranks:
        _run_in_ranks(request, workers or 0)
    else:
        _run_here(request, port if live else None, log or [])


@dataclass(frozen=True)
class _Request:
    """The run that the user asked for."""

    experiment: Experiment
    folder: RunFolder
    resume: bool
    data: Path | None
    as_json: bool


def _overrides(
    methods: str | None,
    seeds: int | None,
    plan: Path | None,
    engine: str | None,
    device: str | None,
) -> dict[str, Any]:
    """The experiment's keys that are set by options, and their values."""
    values: dict[str, Any] = {"engine.name": engine, "engine.device": device}
    if methods is not None:
        from ssdfl.methods import split_methods

        values["methods"] = split_methods(methods)
    if seeds is not None:
        check_range("--seeds", seeds, 1, remedy="Give the number of seeds.")
        values["seeds"] = list(range(seeds))
    if plan is not None:
        values["clusters.plan"] = str(plan.resolve())
    return without_none(values)


def _runs_in_ranks(experiment: Experiment, workers: int | None) -> bool:
    """Whether several processes run the experiment together.

    Raises:
        InputError: torchrun or the user starts several, but the engine runs in one process.
    """
    from ssdfl.records.engines import engine_traits, engines_that

    name = experiment.engine.name
    in_ranks = engine_traits(name).ranks
    able = " or ".join(engines_that(lambda traits: traits.ranks))
    if not in_ranks and ranks.one_of_several():
        raise InputError("--engine", name, f"{able}, in several ranks", f"Add --engine {able}.")
    if not in_ranks and workers is not None:
        raise InputError("--workers", workers, f"--engine {able}", "Other engines use all cores.")
    return in_ranks


def _check_page_and_logs(
    experiment: Experiment, in_ranks: bool, live: bool, port: int, log: list[str] | None
) -> None:
    """Refuse a port without a page, and options that engines in several ranks do not offer."""
    if port and not live:
        raise InputError("--port", port, "a run with --live", "Add --live.")
    for option, given in (("--live", live), ("--log", log)):
        if given and in_ranks:
            expected = f"an engine other than {experiment.engine.name}"
            raise InputError(
                option, given, expected, "Leave it out; report.html has everything afterwards."
            )


def _choose_folder(name: str, out: Path | None, resume: bool) -> tuple[RunFolder, bool]:
    """The run's folder, and whether to continue the run in it."""
    from ssdfl.records.folder import RunFolder, newest_folder, next_free_folder

    newest = newest_folder(name, RUNS)
    restarted = ranks.begun([out or newest]) if ranks.number() == 0 else None
    chosen = RunFolder(out or restarted or (newest if resume else next_free_folder(name, RUNS)))
    if resume and ranks.number() in (None, 0):  # other machines need not have the folder
        chosen.check_begun()
    return chosen, resume or restarted is not None


def _run_here(request: _Request, port: int | None, log: list[str]) -> None:
    """Run in this process, with a live page if a port is given (0 takes a free one)."""
    if request.resume:
        request = replace(request, experiment=request.folder.joined(request.experiment))
    if port is None:
        _run_and_log(request, log)
        return
    page = LiveRun(request.folder, request.experiment)
    with serving(page, port) as address:
        report = _run_and_log(request, log, f"Live: {address}", [page.cycle])
        page.end(f"The run has ended. This page stays as {report}.")


def _run_and_log(
    request: _Request, log: list[str], remark: str = "", watchers: Sequence[Watcher] = ()
) -> Path:
    """Run, write logs, and show the results; returns the report's path."""
    from ssdfl.experiments.logs import logging_to

    folder = request.folder
    with _resumable(folder), logging_to(log, request.experiment, folder) as write_logs:
        _execute(request, remark, [*watchers, write_logs])
    return _conclude(request)


def _run_in_ranks(request: _Request, workers: int) -> None:
    """Run as one rank, or start all ranks."""
    rank = ranks.number()
    if rank is None:
        _start_ranks(request, workers)
    else:
        _run_as_rank(request, rank)


def _start_ranks(request: _Request, workers: int) -> None:
    folder = request.folder
    if request.resume:
        folder.joined(request.experiment)
    else:
        folder.check_free()
    with _resumable(folder):
        code = ranks.start(folder.path, workers)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
    if code:
        raise typer.Exit(code)


def _run_as_rank(request: _Request, rank: int) -> None:
    """Run as one rank; only rank 0 prints anything."""
    if ranks.another_found_a_mistake():
        return
    if rank == 0:
        ranks.begin(request.folder.path)
    try:
        _execute(request, quiet=rank > 0)
    except RuntimeError as error:
        _end_without_others(rank, error)
        return
    if rank == 0:
        _conclude(request)


def _end_without_others(rank: int, error: RuntimeError) -> None:
    """End a rank whose peers are gone, without output if one of them has reported a mistake.

    Raises:
        RuntimeError: the given error, if it has another cause.
        typer.Exit: the peers are gone.
    """
    from ssdfl.engine.ranks import means_lost_ranks

    if not means_lost_ranks(error):
        raise error
    if ranks.another_found_a_mistake(patience_s=5.0):
        return
    say(
        Console(stderr=True),
        f"ssdfl: rank {rank} has lost the others: {str(error).splitlines()[0]}",
    )
    raise typer.Exit(1) from None


@contextmanager
def _resumable(folder: RunFolder) -> Iterator[None]:
    """Print how to continue a run that is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        again = f"--resume --out {folder.path}"
        text = f"Interrupted; finished work is kept. Continue with the same command and: {again}"
        say(Console(stderr=True), text)
        raise typer.Exit(INTERRUPTED) from None


def _execute(
    request: _Request,
    remark: str = "",
    watchers: Sequence[Watcher] = (),
    quiet: bool = False,
) -> None:
    """Run the experiment and show its progress."""
    console = Console(stderr=True, quiet=quiet)
    with showing_progress(console, request.experiment, request.folder, remark) as progress:
        from ssdfl.experiments import iterate_experiment
        from ssdfl.learning import precision_remark

        engine = request.experiment.engine
        progress.remarks.append(precision_remark(engine.precision, engine.device))
        advances = iterate_experiment(
            request.experiment,
            request.folder.path,
            resume=request.resume,
            data=request.data,
            progress=progress.download,
        )
        for advance in advances:
            progress.cycle(advance)
            for watch in watchers:
                watch(advance)


def _conclude(request: _Request) -> Path:
    """Show the results, with the bounds if the run recorded the quantities they bound."""
    from ssdfl.experiments.bounds import can_compare, compare_bounds

    if can_compare(request.experiment):
        request.folder.write_bounds(compare_bounds(request.folder, request.data))
    return present(request.folder, request.as_json)
