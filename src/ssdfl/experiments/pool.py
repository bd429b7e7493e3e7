"""Execute many runs in parallel, each of one method and seed, and cache the results.

The same run is never executed twice: tables and figures share runs, and an interrupted pool
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
    """A finished run: its folder, its time here (0 if it was cached), or the reason it failed."""

    experiment: Experiment
    folder: RunFolder
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class Resources:
    """The resources that a pool may use.

    Attributes:
        at_a_time: the number of parallel runs; 0 is as many as there are cores for.
        cpus: cores of one run.
        gpus: GPUs of one run, if the backend assigns them; ``engine.device`` has to be cuda.
        address: the head of a cluster, for backends that use one; if empty, this machine.
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
        """The number of runs that this machine executes in parallel."""
        return self.at_a_time or max(1, cores() // self.cpus)


DEFAULT = Resources()

Backend = Callable[[Sequence[Experiment], Path, Path | None, Resources], Iterator[Finished]]
"""A backend executes runs in folders under a root, and yields each as it ends."""


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
        experiments: runs of one method and one seed each, as `single_runs` makes them.
        backend: ``processes`` on this machine, or ``ray``.

    A run that fails, for example because it diverges, is yielded with its error and does not stop
    the others. A run whose process is killed is retried from its checkpoint.
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
    """Execute each run in a process on this machine.

    When processes are killed repeatedly and no run finishes, the first run continues alone. If it
    is killed again, it has failed, and the others continue.
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
    experiments = dict(experiments)  # the caller removes finished runs from its own
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
    """The start method of processes: fork a server that has imported everything, if available.

    This avoids importing torch, which takes seconds, in every process. The server starts no
    threads, so forking it is safe.
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
    """Start or continue one run in a worker process; returns its time, and its error if any."""
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
    ) as error:  # a full disk, or any error in a user's own function: the other runs continue
        return time.monotonic() - start, f"{type(error).__name__}: {error}"
    _remove_states(folder)
    return time.monotonic() - start, ""


def _remove_states(folder: Path) -> None:
    """Remove the files that only resuming needs, since a cache holds many finished runs."""
    for checkpoint in folder.rglob(CHECKPOINT):
        checkpoint.unlink(missing_ok=True)
        remove_parts(checkpoint.parent, ())
    for devices in folder.rglob(DEVICES_FOLDER):
        shutil.rmtree(devices, ignore_errors=True)
