"""Run an experiment into a folder, and go on after anything that stopped it."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from scipy.sparse import csr_array

from ssdfl.clusters import parse_plan
from ssdfl.engine import Job, State, load_state, run, save_state
from ssdfl.engine.ranks import agreed, joined, rank, told
from ssdfl.errors import InputError
from ssdfl.files import remove_temporaries
from ssdfl.graph import NetworkLike, check_mixing, from_json, load_network, to_json
from ssdfl.learning import Dataset, load_dataset
from ssdfl.learning.sources import Progress
from ssdfl.methods import METHODS, Step, find_method
from ssdfl.preparation import Prepared, make_job, prepare, prepare_planned
from ssdfl.records import Record
from ssdfl.records.config import Experiment, make_experiment, to_toml, write_experiment
from ssdfl.records.folder import Row, RunFolder
from ssdfl.records.versions import current_versions

Result = TypeVar("Result")

SAVE_INTERVAL_S = 2.0
SAVING_SHARE = 0.1


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
    if experiment.engine.name != "distributed":
        yield from _iterate(experiment, RunFolder(out), _ALONE, network, resume, data, progress)
        return
    with joined(experiment.engine.device):
        part = _Part(rank() == 0, told, agreed)
        yield from _iterate(experiment, RunFolder(out), part, network, resume, data, progress)


@dataclass(frozen=True)
class _Part:
    """A process's part in a run: whether it leads, that is writes files, and how it hears from the leader."""

    leads: bool
    told: Callable[[Callable[[], str]], str]
    agreed: Callable[[bool], bool]

    def led(self, work: Callable[[], Result]) -> Result | None:
        """What the leader's work comes to, None elsewhere; its mistakes end all."""
        found: list[Result] = []

        def do() -> str:
            found.append(work())
            return ""

        self.told(do)
        return found[0] if found else None


_ALONE = _Part(True, lambda find: find(), bool)


def _iterate(
    experiment: Experiment,
    folder: RunFolder,
    part: _Part,
    network: NetworkLike | None,
    resume: bool,
    data: Path | str | Dataset | None,
    progress: Progress | None,
) -> Iterator[Advance]:
    experiment = make_experiment(
        tomllib.loads(part.told(lambda: to_toml(_admitted(experiment, folder, network, resume))))
    )
    for method in experiment.methods:
        find_method(method)
    place = None if data is None or isinstance(data, Dataset) else Path(data)
    dataset = data if isinstance(data, Dataset) else load_dataset(experiment.data.name, place, progress)
    instances = [_prepared(experiment, seed, dataset, folder, part) for seed in experiment.seeds]
    jobs = [
        (instance, {method: make_job(experiment, instance, method) for method in experiment.methods})
        for instance in instances
    ]
    for _, of_methods in jobs:
        for method, job in of_methods.items():
            if method not in METHODS:
                _check_schedule(method, job)
            if experiment.engine.name == "mesh":
                from ssdfl.mesh.folder import check_reach

                check_reach(method, job)
    if part.leads:
        write_experiment(experiment, folder.experiment_file)
        folder.note_versions(current_versions())
    for instance, of_methods in jobs:
        part.led(partial(_describe, folder, instance))
        for method, job in of_methods.items():
            if experiment.engine.name == "mesh":
                yield from _run_mesh(experiment, folder, job, method, place)
            else:
                yield from _run_method(experiment, folder, job, method, part)
    if part.leads:
        folder.write_all_rows()


def _admitted(
    experiment: Experiment, folder: RunFolder, network: NetworkLike | None, resume: bool
) -> Experiment:
    """The experiment to run into a folder, if it may."""
    if not resume:
        folder.check_free()
    if network is not None:
        experiment = folder.on_network(experiment, load_network(network))
    return folder.joined(experiment) if resume else experiment


def _prepared(
    experiment: Experiment, seed: int, dataset: Dataset, folder: RunFolder, part: _Part
) -> Prepared:
    """What a seed determines; network and plan are the leader's: machines may round differently."""
    made: list[Prepared] = []

    def form() -> str:
        one = prepare(experiment, seed, dataset, formed=folder.plan(seed))
        made.append(one)
        return json.dumps([one.network.title, to_json(one.network), json.dumps(one.plan.to_json())])

    facts = part.told(form)
    if made:
        return made[0]
    title, network, plan = json.loads(facts)
    return prepare_planned(experiment, seed, dataset, from_json(network, title), parse_plan(plan))


def _check_schedule(method: str, job: Job) -> None:
    """Refuse a method whose first cycle does not mix validly: a user's own may not."""
    for t in range(job.steps_per_cycle):
        step = job.schedule(t)
        if not isinstance(step, Step) or not isinstance(step.W, csr_array):
            remedy = "Return setting.cycle(…), or Step(train, csr_array(W))."
            raise InputError("method", method, "steps with a sparse mixing matrix", remedy)
        check_mixing(step.W)


def _describe(folder: RunFolder, instance: Prepared) -> None:
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
    folder.write_fact(instance.seed, "devices.json", json.dumps(devices, indent=1) + "\n")
    # Last, as who finds a plan takes it that the rest is there.
    folder.write_fact(instance.seed, "plan.json", json.dumps(instance.plan.to_json(), indent=1) + "\n")


def _run_mesh(
    experiment: Experiment, folder: RunFolder, job: Job, method: str, data: Path | None
) -> Iterator[Advance]:
    """A method as processes on loopback, one per device; their folders stay beside its metrics.

    Its records come together, before it is told that the last cycle is done.
    """
    from ssdfl.mesh.folder import device_folders, init_mesh, move_to_free_ports
    from ssdfl.mesh.processes import MeshProcesses, collected_rows, watch_statuses

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
            for statuses in watch_statuses(processes):
                cycle = min(status.get("step", 0) for status in statuses) // job.steps_per_cycle
                while done < min(cycle, job.cycles - 1):
                    done += 1
                    yield Advance(job.seed, method, done, None)
        finally:
            processes.stop()
        rows = collected_rows(device_folders(mesh))
        folder.write_rows(job.seed, method, rows)
    for row in rows[done:]:
        yield Advance(job.seed, method, row["cycle"], None)


def _run_method(
    experiment: Experiment, folder: RunFolder, job: Job, method: str, part: _Part
) -> Iterator[Advance]:
    checkpoint = folder.method_folder(job.seed, method) / "checkpoint.safetensors"
    start, rows = part.led(lambda: _reached(folder, job, method, checkpoint)) or (None, [])
    for row in rows:
        yield Advance(job.seed, method, row["cycle"], None)
    saved, took_s = time.monotonic(), 0.0
    cycles = run(job, experiment.engine.name, start, in_place=True)
    del start
    for record, state in cycles:
        rows.append(asdict(record))
        interval_s = max(SAVE_INTERVAL_S, took_s / SAVING_SHARE)
        if part.agreed(time.monotonic() - saved > interval_s or record.cycle == experiment.cycles):
            begun = time.monotonic()
            whole = state.whole(job)
            if part.leads:
                folder.write_rows(job.seed, method, rows)
                save_state(whole, job, checkpoint)
            saved = time.monotonic()
            took_s = saved - begun
        yield Advance(job.seed, method, record.cycle, record)


def _reached(folder: RunFolder, job: Job, method: str, checkpoint: Path) -> tuple[State | None, list[Row]]:
    """Where an earlier run of a method stopped, and its records; None to begin, also if records are lost."""
    remove_temporaries(checkpoint.parent)
    start = load_state(checkpoint, job) if checkpoint.exists() else None
    reached = start.step // job.steps_per_cycle if start else 0
    rows = [row for row in folder.read_rows(job.seed, method) if row["cycle"] <= reached]
    return (start, rows) if len(rows) == reached else (None, [])
