"""Read the records for the paper's tables and figures from the cache."""

from __future__ import annotations

from pathlib import Path

from ssdfl.errors import InputError
from ssdfl.learning import load_data
from ssdfl.methods import find_method
from ssdfl.preparation import prepare
from ssdfl.records.artefacts import Artefact, Case, CaseKey
from ssdfl.records.cache import finished_rows, run_folder, single_runs
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
    found = {}
    for case in artefact.cases:
        if artefact.kind == "bound":
            found[case.key] = _candidates(case.experiment, data)
            continue
        found[case.key] = [_rows(artefact, case, one, root) for one in single_runs(case.experiment)]
    return found


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


def _candidates(experiment: Experiment, data: Path | None) -> list[list[Row]]:
    dataset = load_data(experiment.data, data)
    plans = [prepare(experiment, seed, dataset).plan for seed in experiment.seeds]
    return [
        [
            {"clusters": len(one.clusters), "score": one.score, "decision": plan.decision}
            for one in plan.candidates
        ]
        for plan in plans
    ]
