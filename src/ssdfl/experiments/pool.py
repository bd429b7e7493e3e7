"""Many runs side by side: each is one method and one seed, in a folder named by what determines its result.

Whoever asks for the same run again finds it there, so tables and figures share runs, and a pool that was
stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import ssdfl
from ssdfl.engine.workers import use_cores
from ssdfl.errors import InputError, check_range
from ssdfl.experiments.config import ClustersSection, Experiment, make_experiment
from ssdfl.experiments.run import run_experiment
from ssdfl.experiments.store import Row, RunFolder
from ssdfl.learning import Dataset, load_dataset

CACHE = Path("runs") / "cache"
PLANLESS = ("sdfl", "pdfl", "stc", "cstc", "central")
RETRIES = 2


@dataclass(frozen=True)
class Finished:
    """A run that has ended: where it is, how long it took here (0 if it was there), or why it failed."""

    experiment: Experiment
    folder: RunFolder
    seconds: float
    error: str = ""


def single_runs(experiment: Experiment) -> list[Experiment]:
    """An experiment's runs of one method and one seed.

    A method that knows no clusters is given one, so that none are formed and all such runs are shared; unless
    gaps inside the clusters are recorded.
    """
    runs = []
    for seed in experiment.seeds:
        for method in experiment.methods:
            update: dict[str, object] = {"methods": (method,), "seeds": (seed,), "name": method}
            if method in PLANLESS and not experiment.evaluate.gaps:
                update["clusters"] = ClustersSection(number=1)
            runs.append(experiment.model_copy(update=update))
    return runs


def run_key(experiment: Experiment) -> str:
    """What determines a run, as a name: the experiment but for its title and target, and the version."""
    values = experiment.model_dump(mode="json", exclude={"name": True, "evaluate": {"target_accuracy"}})
    text = json.dumps([ssdfl.__version__, values], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def run_folder(experiment: Experiment, root: Path) -> RunFolder:
    """Where a run is, or will be."""
    return RunFolder(root / run_key(experiment))


def finished_rows(experiment: Experiment, root: Path) -> list[Row]:
    """The records of a run of one method and seed; none unless it is there, whole."""
    rows = run_folder(experiment, root).read_rows(experiment.seeds[0], experiment.methods[0])
    return rows if len(rows) >= experiment.cycles else []


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Resources:
    """What a pool may use.

    Attributes:
        workers: runs at a time; 0 is as many as there are cores for.
        cpus: cores of one run.
        gpus: of one run, where a backend deals them out; its ``engine.device`` has to be cuda.
        address: of a cluster's head, for backends that know clusters; none is this machine.
    """

    workers: int = 0
    cpus: int = 1
    gpus: float = 0.0
    address: str = ""

    def __post_init__(self) -> None:
        check_range("--workers", self.workers, 0, remedy="0 is one per core.")
        check_range("--cpus", self.cpus, 1)
        check_range("--gpus", self.gpus, 0)


DEFAULT = Resources()

Backend = Callable[[Sequence[Experiment], Path, Path | None, Resources], Iterator[Finished]]
"""Does runs into folders under a root, with data sets from a folder; yields each as it ends."""


def run_pool(
    experiments: Iterable[Experiment],
    root: Path,
    *,
    data: Path | None = None,
    resources: Resources = DEFAULT,
    backend: str = "processes",
) -> Iterator[Finished]:
    """Do the runs that are not there yet, and yield each as it ends.

    Args:
        experiments: of one method and one seed each, as `single_runs` makes them.
        backend: ``processes`` of this machine, or ``ray``.

    A run that fails, say because it diverges, is yielded with its error and does not stop the others. One
    whose process is killed is tried again, from its checkpoint.
    """
    if backend not in BACKENDS:
        raise InputError("--backend", backend, f"one of {', '.join(BACKENDS)}", "Choose one of them.")
    todo = {run_key(one): one for one in experiments}
    for key, one in list(todo.items()):
        if finished_rows(one, root):
            yield Finished(todo.pop(key), run_folder(one, root), 0.0)
    if todo:
        yield from BACKENDS[backend](list(todo.values()), root, data, resources)


def in_processes(
    experiments: Sequence[Experiment], root: Path, data: Path | None, resources: Resources
) -> Iterator[Finished]:
    """Each run in a process of this machine."""
    if resources.address or resources.gpus:
        raise InputError("--backend", "processes", "ray, to use --address or --gpus", "Add --backend ray.")
    todo = {run_key(one): one for one in experiments}
    number = resources.workers or max(1, cores() // resources.cpus)
    for attempt in range(RETRIES + 1):
        try:
            for done in _in_processes(list(todo.values()), root, data, number, resources.cpus):
                del todo[run_key(done.experiment)]
                yield done
            return
        except BrokenProcessPool:
            if attempt == RETRIES:
                expected = f"processes that live; they were killed {RETRIES + 1} times"
                remedy = "Is there enough memory? Lower --workers."
                raise InputError("workers", number, expected, remedy) from None


def _on_ray(
    experiments: Sequence[Experiment], root: Path, data: Path | None, resources: Resources
) -> Iterator[Finished]:
    from ssdfl.experiments.on_ray import on_ray

    return on_ray(experiments, root, data, resources)


BACKENDS: dict[str, Backend] = {"processes": in_processes, "ray": _on_ray}


def _in_processes(
    experiments: Sequence[Experiment], root: Path, data: Path | None, workers: int, cpus: int
) -> Iterator[Finished]:
    context = multiprocessing.get_context("spawn")
    number = min(workers, len(experiments))
    pool = ProcessPoolExecutor(number, mp_context=context, initializer=_begin, initargs=(cpus,))
    try:
        running: dict[Future[tuple[float, str]], Experiment] = {
            pool.submit(run_one, one.model_dump(), root, data): one for one in experiments
        }
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                one = running.pop(future)
                seconds, error = future.result()
                yield Finished(one, run_folder(one, root), seconds, error)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()


def _begin(cpus: int) -> None:
    """A worker keeps to its cores, leaves Ctrl-C to the process that started it, and ends with that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_cores(cpus)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@cache
def _dataset(name: str, data: Path | None) -> Dataset:
    """A data set, read once by each process."""
    return load_dataset(name, data)


def run_one(values: dict[str, object], root: Path, data: Path | None) -> tuple[float, str]:
    """Do or finish one run, in a worker of a backend: how long it took, and its error if it failed."""
    experiment = make_experiment(values)
    start = time.monotonic()
    folder = run_folder(experiment, root)
    try:
        dataset = _dataset(experiment.data.name, data)
        run_experiment(experiment, folder.path, resume=True, data=dataset)
    except InputError as error:
        return time.monotonic() - start, str(error)
    for checkpoint in folder.path.rglob("checkpoint.safetensors"):
        checkpoint.unlink()
    for rest in folder.path.rglob("mesh"):
        shutil.rmtree(rest)
    return time.monotonic() - start, ""
