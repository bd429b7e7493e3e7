"""Run an experiment into a folder, and resume it after any interruption."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from ssdfl.clusters import parse_plan
from ssdfl.engine import Job, State, run, save_state
from ssdfl.engine.checkpoint import Checkpoint, read_common
from ssdfl.engine.checkpoint_parts import remove_parts
from ssdfl.errors import InputError
from ssdfl.experiments.advance import Advance
from ssdfl.experiments.schedule_check import check_schedule
from ssdfl.experiments.writer import ALONE, Process, joining_others
from ssdfl.files import indentation
from ssdfl.graph import NetworkLike, from_json, load_network, to_json
from ssdfl.learning import (
    DataLike,
    Dataset,
    as_dataset,
    find_rate,
    has_device_files,
    label_table,
    load_data,
    reading_of,
)
from ssdfl.learning.sources import Progress
from ssdfl.methods import METHODS, find_method
from ssdfl.preparation import Prepared, make_job, prepare, prepare_planned
from ssdfl.records.config import Experiment, make_experiment, to_toml, write_experiment
from ssdfl.records.engines import engine_traits
from ssdfl.records.folder import Row, RunFolder
from ssdfl.records.scores import OWN_TESTS
from ssdfl.records.sections import FaultsSection
from ssdfl.records.versions import current_versions

SAVE_INTERVAL_S = 2.0
SAVING_SHARE = 0.1

SeedJobs = tuple[Prepared, dict[str, Job]]
"""One seed of an experiment, and each method's job on it."""


def run_experiment(
    experiment: Experiment,
    out: Path | str,
    *,
    network: NetworkLike | None = None,
    resume: bool = False,
    data: Path | str | DataLike | None = None,
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
    data: Path | str | DataLike | None = None,
    progress: Progress | None = None,
) -> Iterator[Advance]:
    """Run all methods and seeds of an experiment into a folder, yielding after every cycle.

    Args:
        out: the run's folder.
        network: a network to use instead of the experiment's, such as a NetworkX graph.
        resume: continue the run in the folder. The result is bit for bit that of an uninterrupted
            run if the engine ``resumes_exactly``: a mesh does not, since its devices stop at
            different steps.
        data: the folder in which data sets are searched first, or the data set itself: a `Dataset`,
            a pandas frame, an Arrow table or a torch data set.
        progress: called with a download's progress.

    Raises:
        InputError: the experiment is not valid, or another run writes into the folder. Earlier
            results are kept.
    """
    folder = RunFolder(out)
    with joining_others(experiment.engine) as process, ExitStack() as stack:
        process.in_writer(lambda: stack.enter_context(folder.held()))
        admitted = process.text_of_writer(
            lambda: to_toml(_admit(experiment, folder, network, resume))
        )
        experiment = make_experiment(tomllib.loads(admitted))
        for method in experiment.methods:
            find_method(method)
        place = Path(data) if isinstance(data, str | Path) else None
        dataset = _dataset(experiment, data, progress)
        seeds = _make_jobs(experiment, folder, process, dataset)
        yield from _run_seeds(experiment, folder, process, seeds, dataset, place)


def _dataset(
    experiment: Experiment, data: Path | str | DataLike | None, progress: Progress | None
) -> Dataset:
    """The experiment's data set, or the one that was given."""
    if data is None or isinstance(data, str | Path):
        return load_data(experiment.data, None if data is None else Path(data), progress)
    return as_dataset(data, reading_of(experiment.data))


def _admit(
    experiment: Experiment, folder: RunFolder, network: NetworkLike | None, resume: bool
) -> Experiment:
    """The experiment to run into a folder, after checking that it may."""
    if not resume:
        folder.check_free()
    if network is not None:
        experiment = folder.on_network(experiment, load_network(network))
    if resume and folder.experiment_file.exists():
        _check_rate(folder.experiment(), experiment)
    return folder.joined(experiment) if resume else experiment


def _check_rate(before: Experiment, after: Experiment) -> None:
    """Refuse to add cycles if that would change the learning rate of finished ones."""
    rates = [find_rate(one.training.rate, one.cycles) for one in (before, after)]
    done = range(min(before.cycles, after.cycles))
    if any(rates[0](cycle) != rates[1](cycle) for cycle in done):
        expected = f"{before.cycles}: with training.rate = {after.training.rate} η depends on it"
        raise InputError("cycles", after.cycles, expected, "Or choose another --out.")


def _make_jobs(
    experiment: Experiment, folder: RunFolder, process: Process, dataset: Dataset
) -> list[SeedJobs]:
    """Make and check all jobs, so that mistakes are reported before anything is written."""
    instances = [
        _prepare_seed(experiment, seed, dataset, folder, process) for seed in experiment.seeds
    ]
    seeds: list[SeedJobs] = [
        (
            instance,
            {method: make_job(experiment, instance, method) for method in experiment.methods},
        )
        for instance in instances
    ]
    for instance, jobs in seeds:
        for method, job in jobs.items():
            _check_job(experiment, instance, method, job)
    return seeds


def _prepare_seed(
    experiment: Experiment, seed: int, dataset: Dataset, folder: RunFolder, process: Process
) -> Prepared:
    """Prepare a seed; network and plan come from the writer, as machines may round differently."""
    if process is ALONE:
        return prepare(experiment, seed, dataset, formed=folder.plans(seed))
    prepared: list[Prepared] = []

    def form() -> str:
        one = prepare(experiment, seed, dataset, formed=folder.plans(seed))
        prepared.append(one)
        plans = [json.dumps(plan.to_json()) for plan in one.plans]
        return json.dumps([one.network.title, to_json(one.network), plans])

    facts = process.text_of_writer(form)
    if prepared:
        return prepared[0]
    title, network, plans = json.loads(facts)
    on_network = from_json(network, title)
    return prepare_planned(
        experiment, seed, dataset, on_network, [parse_plan(plan) for plan in plans]
    )


def _check_job(experiment: Experiment, instance: Prepared, method: str, job: Job) -> None:
    """Refuse a user's own method that returns no schedule, and one that the engine cannot run."""
    if method not in METHODS:
        # Check it without faults, since these read the steps before the check could.
        unharmed = experiment.model_copy(update={"faults": FaultsSection()})
        schedule = make_job(unharmed, instance, method).schedule
        check_schedule(method, schedule, instance.network.num_devices, job.steps_per_cycle)
    if engine_traits(experiment.engine.name).process_per_device:
        from ssdfl.mesh.folder import check_reach

        check_reach(method, job)


def _run_seeds(
    experiment: Experiment,
    folder: RunFolder,
    process: Process,
    seeds: list[SeedJobs],
    dataset: Dataset,
    data: Path | None,
) -> Iterator[Advance]:
    if process.writes:
        write_experiment(experiment, folder.experiment_file)
        scores = [metric.score for metric in seeds[0][0].task.metrics]
        folder.write_task(scores, [*dataset.notes, *_own_tests(experiment)])
        folder.note_versions(current_versions())
    run_method = _method_runner(experiment, folder, process, data)
    for instance, jobs in seeds:
        liars = next(iter(jobs.values())).liars
        process.in_writer(partial(_describe, folder, instance, liars))
        for method, job in jobs.items():
            yield from run_method(job, method)
    if process.writes:
        folder.write_all_rows()


def _method_runner(
    experiment: Experiment, folder: RunFolder, process: Process, data: Path | None
) -> Callable[[Job, str], Iterator[Advance]]:
    """The function that runs one method of one seed: here, or in one process per device."""
    if engine_traits(experiment.engine.name).process_per_device:
        from ssdfl.experiments.on_mesh import run_on_mesh

        return lambda job, method: run_on_mesh(experiment, folder, job, method, data)
    return lambda job, method: _run_method(experiment.engine.name, folder, job, method, process)


def _own_tests(experiment: Experiment) -> list[str]:
    """The note on tests if each device has only its own data."""
    alone = engine_traits(experiment.engine.name).process_per_device
    return [OWN_TESTS] if alone and has_device_files(experiment.data) else []


def _describe(folder: RunFolder, instance: Prepared, liars: Collection[int]) -> None:
    """Write the facts that a seed's methods share, and mark the devices that lie."""
    task = instance.task
    sizes, labels_held = task.shards.sizes.tolist(), label_table(task).tolist()
    held = zip(instance.optimizers, sizes, labels_held, strict=True)
    devices = [
        {
            "device": i,
            "optimizer": str(optimizer),
            "samples": size,
            "labels": labels,
            **({"liar": True} if i in liars else {}),
        }
        for i, (optimizer, size, labels) in enumerate(held)
    ]
    folder.write_fact(instance.seed, "network.json", to_json(instance.network))
    folder.write_fact(
        instance.seed, "devices.json", json.dumps(devices, indent=indentation(len(devices))) + "\n"
    )
    for place, plan in reversed(list(enumerate(instance.plans))):
        # plan.json is written last: readers take it as the sign that the other files exist.
        name = plan.exchange.file_name if place else "plan.json"
        folder.write_plan(instance.seed, plan, name)


def _run_method(
    engine: str, folder: RunFolder, job: Job, method: str, process: Process
) -> Iterator[Advance]:
    """Run a method in this process or with other ranks, from where an earlier run stopped."""
    saver = _Saver(folder, job, method, process)
    start = saver.restore()
    for row in saver.rows:
        yield Advance(job.seed, method, row["cycle"], None)
    cycles = run(job, engine, start, in_place=True)
    del start  # frees memory: the engine continues with its own copy
    for record, state in cycles:
        saver.rows.append({**vars(record)})
        saver.save_if_due(record.cycle, state)
        yield Advance(job.seed, method, record.cycle, record)


class _Saver:
    """Saves a method's records and state every two seconds, or less often if saving takes long."""

    def __init__(self, folder: RunFolder, job: Job, method: str, process: Process) -> None:
        self.folder, self.job, self.method, self.process = folder, job, method, process
        self.checkpoint = folder.checkpoint(job.seed, method)
        self.rows: list[Row] = []
        self._saved_s, self._took_s = time.monotonic(), 0.0

    def restore(self) -> Checkpoint | None:
        """Put the records of an earlier run into ``rows``; returns its state, or None."""
        start, self.rows = self.process.in_writer(self._reached) or (
            Checkpoint(self.checkpoint),
            [],
        )
        self._saved_s = time.monotonic()
        return start if self.process.choice_of_writer(bool(self.rows)) else None

    def _reached(self) -> tuple[Checkpoint | None, list[Row]]:
        """The saved state and its records, or neither if some records are missing."""
        if not self.checkpoint.exists():
            return None, []
        common = read_common(self.checkpoint)
        remove_parts(self.checkpoint.parent, list(common.facts.parts))
        reached = common.facts.step // self.job.steps_per_cycle
        saved = self.folder.read_rows(self.job.seed, self.method)
        rows = [row for row in saved if row["cycle"] <= reached]
        whole = len(rows) == reached
        return (Checkpoint(self.checkpoint, common), rows) if whole else (None, [])

    def save_if_due(self, cycle: int, state: State) -> None:
        """Save after the last cycle, and whenever the last save was long enough ago."""
        interval_s = max(SAVE_INTERVAL_S, self._took_s / SAVING_SHARE)
        waited = time.monotonic() - self._saved_s > interval_s
        if not self.process.choice_of_writer(waited or cycle == self.job.cycles):
            return
        begun_s = time.monotonic()
        if self.process.writes:
            self.folder.write_rows(self.job.seed, self.method, self.rows)
        save_state(state, self.job, self.checkpoint)
        self._saved_s = time.monotonic()
        self._took_s = self._saved_s - begun_s
