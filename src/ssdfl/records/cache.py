"""Runs of one method and one seed, stored under a key of everything that determines their result.

A run that was done before is found in the cache, so tables and figures share runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import ssdfl
from ssdfl.methods import find_method
from ssdfl.records.config import FILES, Experiment, looks_like_path
from ssdfl.records.folder import Row, RunFolder
from ssdfl.records.sections import ClustersSection, EvaluateSection, ShareSection

OWN_DATA = ("train", "test", "encoding")
"""Keys that count only if they are set, so that runs made before these keys existed are found."""


def single_runs(experiment: Experiment) -> list[Experiment]:
    """An experiment's runs of one method and one seed.

    Titles and targets change no result, so they are set to the same values in all runs.

    Raises:
        InputError: there is no such method.
    """
    evaluate = experiment.evaluate.model_copy(update={"target": EvaluateSection().target})
    anonymous = experiment.model_copy(update={"name": "run", "evaluate": evaluate})
    return [
        _single_run(anonymous, method, seed)
        for seed in experiment.seeds
        for method in experiment.methods
    ]


def _single_run(experiment: Experiment, method: str, seed: int) -> Experiment:
    """One run. If clusters do not matter, it has a single one, so that more runs are shared."""
    clusters_matter = find_method(method).needs_plan or experiment.evaluate.gaps
    clusters = experiment.clusters if clusters_matter else ClustersSection(number=1)
    return experiment.model_copy(
        update={"methods": (method,), "seeds": (seed,), "clusters": clusters}
    )


def run_key(experiment: Experiment) -> str:
    """A key of all that determines a run: the version, and the experiment without title and target.

    A file with a network, a plan, parameters or data counts by its content, not its path. A folder
    with data counts by names, sizes and times. Other data sets and your own functions count by
    their names only.
    """
    values = experiment.model_dump(mode="json", exclude={"name": True, "evaluate": {"target"}})
    for key in OWN_DATA:
        if not values["data"].get(key):
            values["data"].pop(key, None)
    if experiment.share == ShareSection():
        del values["share"]
    for section, key in FILES:
        content = _content(Path(values[section].get(key, "")))
        if content is not None:
            values[section][key] = content
    text = json.dumps([ssdfl.__version__, values], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _content(path: Path) -> str | list[str] | None:
    """The part of the key for a file or folder; None if it does not exist."""
    if path.is_file():
        return f"{hashlib.sha256(path.read_bytes()).hexdigest()}{path.suffix}"
    if path.is_dir() and looks_like_path(str(path)):
        return [str(path), *_listing(path)]
    return None


def _listing(folder: Path) -> list[str]:
    """The files in a folder, with their sizes and modification times."""
    facts = [(path, path.stat()) for path in sorted(folder.rglob("*")) if path.is_file()]
    return [f"{path.relative_to(folder)} {stat.st_size} {stat.st_mtime_ns}" for path, stat in facts]


def distinct(experiments: Iterable[Experiment]) -> list[Experiment]:
    """The runs of one method and seed, without duplicates."""
    return list({run_key(one): one for one in experiments}.values())


def run_folder(experiment: Experiment, root: Path) -> RunFolder:
    """The folder of a run, which need not exist yet."""
    return RunFolder(root / run_key(experiment))


def finished_rows(experiment: Experiment, root: Path) -> list[Row]:
    """The records of a run of one method and seed in a cache; empty unless it is complete."""
    return whole_rows(experiment, run_folder(experiment, root))


def whole_rows(experiment: Experiment, folder: RunFolder) -> list[Row]:
    """The records of a run of one method and seed; empty if some are missing."""
    rows = folder.read_rows(experiment.seeds[0], experiment.methods[0])
    return rows if len(rows) >= experiment.cycles else []
