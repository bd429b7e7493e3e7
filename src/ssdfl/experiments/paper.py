"""Read the records for the paper's tables and figures from the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ssdfl.clusters import Device, form_clusters
from ssdfl.errors import InputError
from ssdfl.graph import Network
from ssdfl.learning import DeviceConstants, Task, load_data
from ssdfl.methods import find_method
from ssdfl.preparation import draw, shared_devices
from ssdfl.preparation.planning import measure_devices, settings_of
from ssdfl.records.artefacts import Artefact, Case, CaseKey
from ssdfl.records.cache import finished_rows, run_folder, run_key, single_runs
from ssdfl.records.config import Experiment
from ssdfl.records.folder import Row


def artefact_rows(
    artefact: Artefact, root: Path, data: Path | None = None
) -> dict[CaseKey, list[list[Row]]]:
    """The records of every case, as one list per seed, from the runs in a cache.

    Each record has ``clusters``, their number, and ``decision``, how they were chosen. Both are
    None for a method that needs no plan. The bound needs no runs: its rows are formation's
    candidates, with ``clusters`` and ``score`` of each.

    Raises:
        InputError: a run is missing; the error names it.
    """
    if artefact.kind == "bound":
        measured = _measured_tasks(data)
        return {
            case.key: [_candidates(one, measured(one)) for one in single_runs(case.experiment)]
            for case in artefact.cases
        }
    return {
        case.key: [_rows(artefact, case, one, root) for one in single_runs(case.experiment)]
        for case in artefact.cases
    }


def _rows(artefact: Artefact, case: Case, one: Experiment, root: Path) -> list[Row]:
    rows = finished_rows(one, root)
    if not rows:
        what = f"{case.series}, {case.panel} {case.point}".strip()
        raise InputError("run", what, "a finished run", f"Run: ssdfl reproduce {artefact.name}.")
    method, seed = one.methods[0], one.seeds[0]
    plan = run_folder(one, root).plan(seed) if find_method(method).needs_plan else None
    decision = plan.decision if plan else None
    number = plan.num_clusters if plan else None
    return [{**row, "clusters": number, "decision": decision} for row in rows]


@dataclass(frozen=True, eq=False)
class _MeasuredTask:
    """What formation is given that depends neither on the schedule nor on its own settings."""

    network: Network
    task: Task
    devices: Sequence[Device]
    constants: Mapping[int, DeviceConstants]


def _measured_tasks(data: Path | None) -> Callable[[Experiment], _MeasuredTask]:
    """Draw and measure the task of an experiment of one seed, once for all that share it."""
    known: dict[str, _MeasuredTask] = {}

    def measured(experiment: Experiment) -> _MeasuredTask:
        plain = Experiment()
        key = run_key(
            experiment.model_copy(update={"schedule": plain.schedule, "clusters": plain.clusters})
        )
        if key not in known:
            known[key] = _measure(experiment, data)
        return known[key]

    return measured


def _measure(experiment: Experiment, data: Path | None) -> _MeasuredTask:
    (seed,) = experiment.seeds
    network, task, optimizers = draw(experiment, seed, load_data(experiment.data, data))
    devices = shared_devices(experiment, task, optimizers, seed)
    return _MeasuredTask(network, task, devices, measure_devices(experiment, task, seed))


def _candidates(experiment: Experiment, given: _MeasuredTask) -> list[Row]:
    settings = settings_of(experiment, given.task, given.constants)
    plan = form_clusters(given.network, given.devices, settings)
    return [
        {"clusters": len(one.clusters), "score": one.score, "decision": plan.decision}
        for one in plan.candidates
    ]
