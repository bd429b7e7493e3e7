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
"""What all combinations of a sweep have in common."""


@dataclass(frozen=True)
class Combination:
    """One choice of a value for each key of a sweep, and the experiment that it makes."""

    choices: Mapping[str, Any]
    experiment: Experiment

    def runs(self) -> list[Experiment]:
        """Its runs of one method and one seed."""
        return single_runs(self.experiment)

    def finished(self, root: Path) -> dict[str, dict[int, list[Row]]]:
        """For each method and seed the records, of the runs in a cache that are whole."""
        found: dict[str, dict[int, list[Row]]] = {method: {} for method in self.experiment.methods}
        for one in self.runs():
            if rows := finished_rows(one, root):
                found[one.methods[0]][one.seeds[0]] = rows
        return found


@dataclass(frozen=True)
class Sweep:
    """All combinations of a grid, in the order of its file.

    Attributes:
        command: what does it again.
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
    """The sweep that a file describes, with ``a.b=value`` settings laid over what is not swept.

    Raises:
        InputError: an unreadable file, no table ``[sweep]``, or a key or value that cannot be used.
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
    """Keys with dots, and their values; tables in the table are sections."""
    remedy = 'Write such as "training.learning_rate" = [0.02, 0.05].'
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
