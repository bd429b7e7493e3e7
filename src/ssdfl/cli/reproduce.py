"""``ssdfl reproduce``: the paper's tables and figures."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ssdfl.cli import pool
from ssdfl.errors import InputError, check_range

if TYPE_CHECKING:
    from ssdfl.records import Experiment
    from ssdfl.records.artefacts import Artefact

OUT = Path("runs") / "reproduce"


def reproduce(
    artefacts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARTEFACT…", help="Names or the paper's labels from --list, or all."
        ),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the artefacts, and stop.")] = False,
    profile: Annotated[
        str,
        typer.Option(
            help="smoke (seconds, shape only), small (a small model), medium, "
            "larger (larger steps), drawn (labels drawn at random), "
            "averaged (the averaged model's accuracy), "
            "plain (the CNN without normalisation), paper (full size)."
        ),
    ] = "small",
    seeds: Annotated[
        int | None, typer.Option(metavar="N", help="Seeds 0 … N−1 instead of the profile's.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Only this panel, point or series, such as Comp; can be repeated."
        ),
    ] = None,
    reading: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What to report as accuracy instead of the profile's choice: score (the mean "
            "over devices) or average_model_score (the averaged model's).",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume/--fresh", help="Reuse finished runs (the default), or repeat them."),
    ] = True,
    finished: Annotated[
        bool,
        typer.Option("--finished", help="Run nothing; show what is finished so far."),
    ] = False,
    dry_run: pool.DryRun = False,
    workers: pool.Workers = 0,
    cpus: pool.Cpus = 1,
    gpus: pool.Gpus = 0.0,
    backend: pool.BackendName = "processes",
    address: pool.Address = "",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for tables and figures; by default runs/reproduce/PROFILE, followed by "
            "the reading if it is given."
        ),
    ] = None,
    cache: pool.Cache = pool.CACHE,
    data: pool.Data = None,
) -> None:
    """Reproduce the paper's tables and figures: run what is missing, then compare.

    Examples:

    - `ssdfl reproduce --list`

    - `ssdfl reproduce fmnist-taur --profile smoke` takes seconds and shows the shape.

    - `ssdfl reproduce fmnist-taur fmnist-taua --dry-run`

    - `ssdfl reproduce fmnist-architecture --only Comp --only SSD-FL` runs a part.

    - `ssdfl reproduce fmnist-links --profile medium --reading average_model_score` reads the same
      runs by the averaged model's accuracy.

    - `ssdfl reproduce all --profile paper --workers 16`

    - `ssdfl reproduce all --profile paper --backend ray --address auto`

    - `ssdfl reproduce fmnist-taua --profile medium --finished` shows what an interrupted or running
      command has finished so far. A method has the seeds up to the first unfinished one.

    After an interruption, the same command continues.
    """
    from ssdfl.experiments.pool import Resources

    if listing:
        _list()
        return
    resources = Resources(workers, cpus, gpus, address)
    named = _choose(artefacts or [], profile, seeds, reading)
    chosen = [one.part(only or ()) for one in named]
    if finished:
        _refuse_repeating(resume)
        chosen = _at_hand(chosen, cache)
    if dry_run:
        groups = [([artefact.name], artefact.runs()) for artefact in chosen]
        pool.estimate(["artefact"], groups, cache, resources, data)
        _say_uncounted(chosen)
        return
    if not resume:
        _forget(chosen, cache)
    runs = _runs(chosen)
    pool.refuse(pool.run_all(runs, cache, data, resources, backend), len(runs))
    options = ["--profile", profile, *_repeated(seeds, only or (), reading)]
    options += ["--finished"] if finished else []
    usual = OUT / "-".join(filter(None, (profile, reading)))
    _write(chosen, cache, out or usual, options, data)


def _refuse_repeating(resume: bool) -> None:
    if not resume:
        raise InputError(
            "--finished", "with --fresh", "one of them", "--fresh repeats what is finished."
        )


def _at_hand(chosen: list[Artefact], cache: Path) -> list[Artefact]:
    """What is finished of each artefact, leaving out those of which nothing is."""
    from ssdfl.records.cache import finished_rows

    found = [artefact.finished(lambda one: bool(finished_rows(one, cache))) for artefact in chosen]
    for artefact, part in zip(chosen, found, strict=True):
        if part is None:
            typer.echo(f"{artefact.name}: no run is finished; left out.")
    held = [part for part in found if part is not None]
    if not held:
        names = ", ".join(artefact.name for artefact in chosen)
        raise InputError(
            "--finished", names, f"a finished run in {cache}", "Run it without --finished first."
        )
    return held


def _say_uncounted(chosen: list[Artefact]) -> None:
    """A bound has no runs; what it takes is spent when it is written."""
    bounds = [artefact.name for artefact in chosen if artefact.kind == "bound"]
    if bounds:
        names = ", ".join(bounds)
        typer.echo(f"Not counted: measuring constants and forming clusters for {names}.")


def _repeated(seeds: int | None, only: Iterable[str], reading: str | None) -> list[str]:
    """The command-line options that select these seeds, parts and reading again."""
    options = [] if seeds is None else ["--seeds", str(seeds)]
    for name in only:
        options += ["--only", name]
    options += ["--reading", reading] if reading else []
    return options


def _choose(
    names: list[str], profile: str, seeds: int | None, reading: str | None
) -> list[Artefact]:
    from ssdfl.records.artefacts import artefact_names, load_artefact, paper_folder

    if not names:
        raise InputError(
            "artefact", "none", "at least one name, or all", "See: ssdfl reproduce --list."
        )
    if seeds is not None:
        check_range("--seeds", seeds, 1, remedy="Give the number of seeds.")
    known = artefact_names(paper_folder())
    wanted = known if names == ["all"] else _without_labels(names, known)
    return [load_artefact(name, profile, seeds=seeds, reading=reading) for name in wanted]


def _without_labels(names: list[str], known: Iterable[str]) -> list[str]:
    """The names of artefacts, with the paper's labels replaced by names."""
    from ssdfl.records.artefacts import load_artefact

    if not any(":" in name for name in names):
        return names
    by_label = {load_artefact(name).label: name for name in known}
    return [by_label.get(name, name) for name in names]


def _list() -> None:
    from ssdfl.records.artefacts import artefact_names, load_artefact, paper_folder

    table = Table("artefact", "what", "the paper's label", box=SIMPLE_HEAD)
    for name in artefact_names(paper_folder()):
        artefact = load_artefact(name)
        table.add_row(name, artefact.title, artefact.label)
    Console(width=None if Console().is_terminal else 150).print(
        table, highlight=False, markup=False
    )


def _runs(chosen: list[Artefact]) -> list[Experiment]:
    from ssdfl.records.cache import distinct

    return distinct(one for artefact in chosen for one in artefact.runs())


def _forget(chosen: list[Artefact], cache: Path) -> None:
    from ssdfl.records.cache import run_folder

    for one in _runs(chosen):
        shutil.rmtree(run_folder(one, cache).path, ignore_errors=True)


def _write(
    chosen: list[Artefact], cache: Path, out: Path, options: list[str], data: Path | None
) -> None:
    from ssdfl.experiments.paper import artefact_rows
    from ssdfl.report.paper_pages import write_artefact

    for artefact in chosen:
        command = shlex.join(["ssdfl", "reproduce", artefact.name, *options])
        written = write_artefact(artefact, artefact_rows(artefact, cache, data), out, command)
        typer.echo(f"{artefact.name}: {', '.join(str(path) for path in written)}")
