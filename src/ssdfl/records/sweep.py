"""Sweeps: an experiment's file with a table ``[sweep]`` of keys and the values to try."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from ssdfl.errors import InputError
from ssdfl.records.cache import finished_rows, run_folder, single_runs
from ssdfl.records.config import Experiment, locate_files, make_experiment, read_values, set_value
from ssdfl.records.folder import Row, flat
from ssdfl.records.scores import READINGS, Goal

COMMON = {"name", "evaluate.target", "evaluate.target_accuracy", "task.metrics"}
"""The keys that are the same in all combinations of a sweep."""


@dataclass(frozen=True)
class Combination:
    """One choice of a value for each key of a sweep, and the resulting experiment."""

    choices: Mapping[str, Any]
    experiment: Experiment

    def runs(self) -> list[Experiment]:
        """Its runs, each of one method and one seed."""
        return single_runs(self.experiment)

    def finished(self, root: Path) -> dict[str, dict[int, list[Row]]]:
        """The records of its complete runs in a cache, by method and seed."""
        found: dict[str, dict[int, list[Row]]] = {method: {} for method in self.experiment.methods}
        for one in self.runs():
            if rows := finished_rows(one, root):
                found[one.methods[0]][one.seeds[0]] = rows
        return found


@dataclass(frozen=True)
class Sweep:
    """All combinations of a grid, in the order of its file.

    Attributes:
        command: the command that repeats it.
    """

    name: str
    keys: tuple[str, ...]
    combinations: tuple[Combination, ...]
    command: str

    def goal(self, root: Path) -> Goal:
        """The goal of all combinations, as the first run in a cache describes it."""
        folders = [run_folder(one, root) for one in self.runs()]
        known = next((folder for folder in folders if folder.task_file.exists()), folders[0])
        readings = {one.experiment.evaluate.reading for one in self.combinations}
        goal = known.goal(self.combinations[0].experiment)
        return replace(goal, reading=max(readings, key=READINGS.index))

    def runs(self) -> list[Experiment]:
        """The runs of all combinations, methods and seeds."""
        return [one for combination in self.combinations for one in combination.runs()]


def load_sweep(path: Path, settings: tuple[str, ...] = ()) -> Sweep:
    """The sweep that a file describes, with ``a.b=value`` settings for the keys not swept.

    Raises:
        InputError: the file is unreadable or has no table ``[sweep]``, or a key or value is not
            valid.
    """
    values = read_values(path, settings)
    grid = _grid(values.pop("sweep", None))
    for key in sorted(COMMON & grid.keys()):
        raise InputError(
            f"sweep.{key}", grid[key], "a key that changes runs", f"Set {key} once, for all."
        )
    combinations = []
    for chosen in product(*grid.values()):
        choices = dict(zip(grid, chosen, strict=True))
        combinations.append(Combination(choices, _experiment(values, choices, path.parent)))
    command = [
        "ssdfl",
        "sweep",
        str(path),
        *(word for setting in settings for word in ("--set", setting)),
    ]
    name = combinations[0].experiment.name
    return Sweep(name, tuple(grid), tuple(combinations), shlex.join(command))


def _grid(table: object) -> dict[str, list[Any]]:
    """Dotted keys and their values; nested tables are sections."""
    remedy = 'For example, write "training.learning_rate" = [0.02, 0.05].'
    if not isinstance(table, dict) or not table:
        raise InputError(
            "sweep", "none" if table is None else table, "a table of keys and lists", remedy
        )
    grid = flat(table)
    for key, value in grid.items():
        if not isinstance(value, list) or not value:
            raise InputError(f"sweep.{key}", value, "a list of values", remedy)
    return grid


def _experiment(values: dict[str, Any], choices: Mapping[str, Any], folder: Path) -> Experiment:
    values = deepcopy(values)
    for key, value in choices.items():
        set_value(values, key, value)
    for place in (folder, Path()):
        locate_files(values, place)
    return make_experiment(values)
