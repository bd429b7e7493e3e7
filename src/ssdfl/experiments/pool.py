"""Many runs side by side: one method and seed each, cached by what determines the result.

The same run is never done twice: tables and figures share runs, and a pool that was stopped
resumes.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ssdfl.engine.checkpoint_parts import remove_parts
from ssdfl.engine.threads import use_cores
from ssdfl.errors import InputError, check_range
from ssdfl.experiments.run import run_experiment
from ssdfl.learning import Dataset, load_data
from ssdfl.machine import cores
from ssdfl.records.cache import distinct, finished_rows, run_folder, whole_rows
from ssdfl.records.config import Experiment, make_experiment
from ssdfl.records.folder import CHECKPOINT, DEVICES_FOLDER, RunFolder
from ssdfl.records.sections import DataSection

RETRIES = 2
KILLED = f"its process was killed {RETRIES + 1} times. Is there enough memory?"


@dataclass(frozen=True)
class Finished:
    """A finished run: its folder, its time here (0 if it was cached), or why it failed."""

    experiment: Experiment
    folder: RunFolder
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class Resources:
    """What a pool may use.

    Attributes:
        at_a_time: runs side by side; 0 is as many as there are cores for.
        cpus: cores of one run.
        gpus: of one run, where a backend deals them out; its ``engine.device`` has to be cuda.
        address: of a cluster's head, for backends that know clusters; none is this machine.
    """

    at_a_time: int = 0
    cpus: int = 1
    gpus: float = 0.0
    address: str = ""

    def __post_init__(self) -> None:
        check_range("--workers", self.at_a_time, 0, remedy="0 is one per core.")
        check_range("--cpus", self.cpus, 1)
        check_range("--gpus", self.gpus, 0)

    @property
    def at_a_time_here(self) -> int:
        """How many runs this machine executes side by side."""
        return self.at_a_time or max(1, cores() // self.cpus)


DEFAULT = Resources()

Backend = Callable[[Sequence[Experiment], Path, Path | None, Resources], Iterator[Finished]]
"""Executes runs in folders under a root, with data sets from a folder; yields each as it ends."""


def run_pool(
    experiments: Iterable[Experiment],
    root: Path,
    *,
    data: Path | None = None,
    resources: Resources = DEFAULT,
    backend: str = "processes",
) -> Iterator[Finished]:
    """Execute the runs that are not cached, and yield each as it ends.

    Args:
        experiments: of one method and one seed each, as `single_runs` makes them.
        backend: ``processes`` of this machine, or ``ray``.

    A run that fails, say because it diverges, is yielded with its error and does not stop the
    others. One whose process is killed is tried again, from its checkpoint.
    """
    if backend not in BACKENDS:
        raise InputError(
            "--backend", backend, f"one of {', '.join(BACKENDS)}", "Choose one of them."
        )
    todo = []
    for one in distinct(experiments):
        if finished_rows(one, root):
            yield Finished(one, run_folder(one, root), 0.0)
        else:
            todo.append(one)
    if todo:
        yield from BACKENDS[backend](todo, root, data, resources)


def in_processes(
    experiments: Sequence[Experiment], root: Path, data: Path | None, resources: Resources
) -> Iterator[Finished]:
    """Each run in a process of this machine.

    When processes are killed repeatedly and no run finishes, the first run continues alone; if it
    is killed, too, it has failed, and the others continue.
    """
    if resources.address or resources.gpus:
        raise InputError(
            "--backend", "processes", "ray, to use --address or --gpus", "Add --backend ray."
        )
    todo = {run_folder(one, root).path: one for one in experiments}
    deaths = 0
    while todo:
        chosen = todo if deaths < RETRIES else _first(todo)
        try:
            for done in _in_processes(chosen, data, resources):
                todo.pop(done.folder.path)
                deaths = 0
                yield done
        except BrokenProcessPool:
            deaths += 1
        if deaths > RETRIES:
            deaths = 0
            ((path, one),) = chosen.items()
            todo.pop(path)
            yield Finished(one, RunFolder(path), 0.0, KILLED)


def _first(experiments: Mapping[Path, Experiment]) -> dict[Path, Experiment]:
    path = next(iter(experiments))
    return {path: experiments[path]}


def _on_ray(
    experiments: Sequence[Experiment], root: Path, data: Path | None, resources: Resources
) -> Iterator[Finished]:
    from ssdfl.experiments.on_ray import on_ray

    return on_ray(experiments, root, data, resources)


BACKENDS: dict[str, Backend] = {"processes": in_processes, "ray": _on_ray}


def _in_processes(
    experiments: Mapping[Path, Experiment], data: Path | None, resources: Resources
) -> Iterator[Finished]:
    experiments = dict(experiments)  # the caller strikes out what is finished
    context = _starting_method()
    number = min(resources.at_a_time_here, len(experiments))
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        number, mp_context=context, initializer=_begin, initargs=(resources.cpus,)
    )
    try:
        running: dict[Future[tuple[float, str]], Path] = {
            pool.submit(run_one, one.model_dump(), path, data): path
            for path, one in experiments.items()
        }
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                path = running.pop(future)
                seconds, error = future.result()
                yield Finished(experiments[path], RunFolder(path), seconds, error)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()


def _starting_method() -> multiprocessing.context.BaseContext:
    """How processes begin: forked from one that has imported everything, where the system can.

    Torch takes seconds to import. The server itself starts no threads, so forking it is safe.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _begin(cpus: int) -> None:
    """Prepare a process of the pool: limit its threads, ignore Ctrl-C, end with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_cores(cpus)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@cache
def _dataset(config: DataSection, data: Path | None) -> Dataset:
    """A data set, read once by each process."""
    return load_data(config, data)


def run_one(values: dict[str, object], folder: Path, data: Path | None) -> tuple[float, str]:
    """Start or finish one run in a worker process; returns its time, and its error if any."""
    start = time.monotonic()
    try:
        experiment = make_experiment(values)
        if not whole_rows(experiment, RunFolder(folder)):
            dataset = _dataset(experiment.data, data)
            run_experiment(experiment, folder, resume=True, data=dataset)
    except InputError as error:
        return time.monotonic() - start, str(error)
    except (
        Exception
    ) as error:  # a full disk, or whatever a user's own function raises: the other runs continue
        return time.monotonic() - start, f"{type(error).__name__}: {error}"
    _remove_states(folder)
    return time.monotonic() - start, ""


def _remove_states(folder: Path) -> None:
    """Remove what only resuming needs; a cache holds many finished runs."""
    for checkpoint in folder.rglob(CHECKPOINT):
        checkpoint.unlink(missing_ok=True)
        remove_parts(checkpoint.parent, ())
    for devices in folder.rglob(DEVICES_FOLDER):
        shutil.rmtree(devices, ignore_errors=True)
