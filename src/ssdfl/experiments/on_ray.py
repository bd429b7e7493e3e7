"""Execute runs as Ray tasks, on this machine or on a running cluster."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ssdfl.engine.threads import use_cores
from ssdfl.errors import InputError, require
from ssdfl.experiments.pool import RETRIES, Finished, Resources, run_one
from ssdfl.files import atomic_path
from ssdfl.machine import cores
from ssdfl.records.cache import run_folder, whole_rows
from ssdfl.records.config import Experiment

Files = dict[str, bytes]


def on_ray(
    experiments: Sequence[Experiment], root: Path, data: Path | None, resources: Resources
) -> Iterator[Finished]:
    """Execute each run as a Ray task with cores and GPUs, retried if its process or machine dies.

    Tasks write under the same root as processes do. If machines share no file system, their small
    files come back with the result, but a run that is retried elsewhere starts from the beginning.

    Raises:
        InputError: Ray is not installed, no cluster answers, or a task dies repeatedly.
    """
    ray = require("ray", "ray")
    ours = not ray.is_initialized()
    if ours:
        _connect(ray, resources)
    try:
        yield from _in_tasks(ray, experiments, root, data, resources)
    finally:
        if ours:
            ray.shutdown()


def _in_tasks(
    ray: Any, experiments: Sequence[Experiment], root: Path, data: Path | None, resources: Resources
) -> Iterator[Finished]:
    """Keep the wanted number of tasks running; yields each as it ends."""
    options = {"num_cpus": resources.cpus, "num_gpus": resources.gpus, "max_retries": RETRIES}
    task = ray.remote(**options)(_task)
    place = data.resolve() if data else None
    most = resources.at_a_time or len(experiments)
    waiting = list(experiments)[::-1]
    running: dict[object, Experiment] = {}
    while waiting or running:
        while waiting and len(running) < most:
            one = waiting.pop()
            folder = run_folder(one, root).path.resolve()
            running[task.remote(one.model_dump(), folder, place, resources.cpus, sys.path)] = one
        for reference in ray.wait(list(running), num_returns=1)[0]:
            yield _finished(ray, reference, running.pop(reference), root)


def _finished(ray: Any, reference: object, one: Experiment, root: Path) -> Finished:
    """The outcome of a task; its files are copied here if they are missing."""
    try:
        seconds, error, files = ray.get(reference)
    except ray.exceptions.RayError as failure:
        seconds, error, files = 0.0, " ".join(str(failure).split()), {}
    home = run_folder(one, root)
    if not whole_rows(one, home):
        bring_home(files, home.path)
    return Finished(one, home, seconds, error)


def _connect(ray: Any, resources: Resources) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = resources.address or "local"
    options: dict[str, object] = {
        "address": address,
        "log_to_driver": False,
        "logging_level": "ERROR",
    }
    if not resources.address:
        number = resources.at_a_time * resources.cpus or max(cores(), resources.cpus)
        options |= {"num_cpus": number, "include_dashboard": False}
    try:
        ray.init(**options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        said = " ".join(str(error).split())
        expected = f"a Ray cluster that answers ({said})"
        raise InputError("--address", address, expected, "Start one: ray start --head.") from None


def _task(
    values: dict[str, object], folder: Path, data: Path | None, cpus: int, paths: list[str]
) -> tuple[float, str, Files]:
    """Execute a run in a Ray process; returns its time, its error, and its files."""
    sys.path.extend(path for path in paths if path not in sys.path)
    use_cores(cpus)
    seconds, error = run_one(values, folder, data)
    return seconds, error, {} if error else _read_all(folder)


def _read_all(folder: Path) -> Files:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def bring_home(files: Files, folder: Path) -> None:
    """Write a run's files into its folder, replacing those of an unfinished run."""
    if files:
        shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        with atomic_path(folder / name) as temporary:
            temporary.write_bytes(content)
