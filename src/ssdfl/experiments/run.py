"""Run an experiment into a folder, and go on after anything that stopped it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from scipy.sparse import csr_array

from ssdfl.engine import Job, Record, initial_state, load_state, run, save_state
from ssdfl.errors import InputError
from ssdfl.experiments.build import Instance, make_job, prepare
from ssdfl.experiments.config import Experiment, write_experiment
from ssdfl.experiments.store import RunFolder
from ssdfl.experiments.versions import current_versions
from ssdfl.graph import NetworkLike, check_mixing, load_network, to_json
from ssdfl.learning import Dataset, load_dataset
from ssdfl.learning.sources import Progress
from ssdfl.schedule import METHODS, Step, find_method

SAVE_INTERVAL_S = 2.0


@dataclass(frozen=True)
class Advance:
    """One more cycle of one method is done: its record, or None where an earlier run had done the cycle."""

    seed: int
    method: str
    cycle: int
    record: Record | None


def run_experiment(
    experiment: Experiment,
    out: Path | str,
    *,
    network: NetworkLike | None = None,
    resume: bool = False,
    data: Path | str | Dataset | None = None,
) -> RunFolder:
    """Run all methods and seeds of an experiment into a folder; see `iterate_experiment`."""
    for _ in iterate_experiment(experiment, out, network=network, resume=resume, data=data):
        pass
    return RunFolder(out)


def iterate_experiment(
    experiment: Experiment,
    out: Path | str,
    *,
    network: NetworkLike | None = None,
    resume: bool = False,
    data: Path | str | Dataset | None = None,
    progress: Progress | None = None,
) -> Iterator[Advance]:
    """Run all methods and seeds of an experiment into a folder, yielding after every cycle.

    Args:
        out: the run's folder.
        network: runs on this one, such as a NetworkX graph, instead of the one that the experiment names.
        resume: go on with what the folder holds; the result is bit for bit that of an unbroken run, but for
            the mesh, whose devices stop at different steps.
        data: the folder to look for data sets in first, or the data set itself.
        progress: is told of a download's progress.

    Raises:
        InputError: something in the experiment cannot be used; what was computed before is kept.
    """
    folder = RunFolder(out)
    if not resume:
        folder.check_free()
    if network is not None:
        experiment = folder.on_network(experiment, load_network(network))
    if resume:
        experiment = folder.joined(experiment)
    for method in experiment.methods:
        find_method(method)
    place = None if data is None or isinstance(data, Dataset) else Path(data)
    dataset = data if isinstance(data, Dataset) else load_dataset(experiment.data.name, place, progress)
    instances = [prepare(experiment, seed, dataset, formed=folder.plan(seed)) for seed in experiment.seeds]
    jobs = [
        (instance, {method: make_job(experiment, instance, method) for method in experiment.methods})
        for instance in instances
    ]
    for _, of_methods in jobs:
        for method, job in of_methods.items():
            if method not in METHODS:
                _check_schedule(method, job)
            if experiment.engine.name == "mesh":
                from ssdfl.experiments.mesh_folder import check_reach

                check_reach(method, job)
    write_experiment(experiment, folder.experiment_file)
    folder.note_versions(current_versions())
    for instance, of_methods in jobs:
        _describe(folder, instance)
        for method, job in of_methods.items():
            run_method = _run_mesh if experiment.engine.name == "mesh" else _run_method
            yield from run_method(experiment, folder, job, method, place)
    folder.write_all_rows()


def _check_schedule(method: str, job: Job) -> None:
    """Refuse a method whose first cycle does not mix validly: a user's own may not."""
    for t in range(job.steps_per_cycle):
        step = job.schedule(t)
        if not isinstance(step, Step) or not isinstance(step.W, csr_array):
            remedy = "Return setting.cycle(…), or Step(train, csr_array(W))."
            raise InputError("method", method, "steps with a sparse mixing matrix", remedy)
        check_mixing(step.W)


def _describe(folder: RunFolder, instance: Instance) -> None:
    labels = instance.task.labels[instance.task.shards]
    devices = [
        {
            "device": i,
            "optimizer": str(optimizer),
            "samples": instance.task.shard_size,
            "labels": labels[i].bincount(minlength=int(instance.task.labels.max()) + 1).tolist(),
        }
        for i, optimizer in enumerate(instance.optimizers)
    ]
    folder.write_fact(instance.seed, "network.json", to_json(instance.network))
    folder.write_fact(instance.seed, "plan.json", json.dumps(instance.plan.to_json(), indent=1) + "\n")
    folder.write_fact(instance.seed, "devices.json", json.dumps(devices, indent=1) + "\n")


def _run_mesh(
    experiment: Experiment, folder: RunFolder, job: Job, method: str, data: Path | None
) -> Iterator[Advance]:
    """A method as processes on loopback, one per device; their folders stay beside its metrics."""
    from ssdfl.experiments.mesh import MeshProcesses, collected_rows, follow
    from ssdfl.experiments.mesh_folder import device_folders, init_mesh, move_to_free_ports

    rows = folder.read_rows(job.seed, method)
    mesh = folder.method_folder(job.seed, method) / "mesh"
    done = 0
    if len(rows) < job.cycles:
        if any(mesh.glob("device-*")):
            move_to_free_ports(mesh)
        else:
            init_mesh(experiment, mesh, method=method, seed=job.seed)
        processes = MeshProcesses(mesh, data)
        processes.start()
        try:
            for statuses in follow(processes):
                cycle = min(status.get("step", 0) for status in statuses) // job.steps_per_cycle
                while done < cycle:
                    done += 1
                    yield Advance(job.seed, method, done, None)
        finally:
            processes.stop()
        rows = collected_rows(device_folders(mesh))
        folder.write_rows(job.seed, method, rows)
    for row in rows[done:]:
        yield Advance(job.seed, method, row["cycle"], None)


def _run_method(
    experiment: Experiment, folder: RunFolder, job: Job, method: str, data: Path | None
) -> Iterator[Advance]:
    checkpoint = folder.method_folder(job.seed, method) / "checkpoint.safetensors"
    start = load_state(checkpoint, job) if checkpoint.exists() else initial_state(job)
    rows = [row for row in folder.read_rows(job.seed, method) if row["cycle"] <= start.cycle]
    if len(rows) != start.cycle:  # records are lost: do the method again
        rows, start = [], initial_state(job)
    for row in rows:
        yield Advance(job.seed, method, row["cycle"], None)
    saved = time.monotonic()
    cycles = run(job, experiment.engine.name, start, in_place=True)
    del start
    for record, state in cycles:
        rows.append(asdict(record))
        if time.monotonic() - saved > SAVE_INTERVAL_S or state.cycle == experiment.cycles:
            folder.write_rows(job.seed, method, rows)
            save_state(state, job, checkpoint)
            saved = time.monotonic()
        yield Advance(job.seed, method, record.cycle, record)
