"""Records for MLflow."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ssdfl.errors import InputError, require
from ssdfl.experiments.logs.base import ALWAYS_MEASURED, STEP, Outcome, scalars, warn
from ssdfl.records.config import Experiment
from ssdfl.records.folder import flat
from ssdfl.records.tables import Row

Result = TypeVar("Result")


class MLflowLog:
    """An MLflow run for every method and seed, at ``MLFLOW_TRACKING_URI`` or the default.

    A resumed run continues in the MLflow runs that have its folder, methods and seeds as tags.
    """

    def __init__(self, experiment: Experiment, out: Path, resumed: bool) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # no telemetry
        self._mlflow = require("mlflow", "mlflow")
        self._entities = require("mlflow.entities", "mlflow")
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        self._experiment, self._folder, self._resumed = experiment, str(out.resolve()), resumed
        self._client: Any = None
        self._group = ""
        self._earlier: dict[tuple[str, int], str] = {}
        self._open: dict[tuple[str, int], str] = {}
        self._lost = False

    def last(self, seed: int, method: str) -> int:
        """The last cycle in the MLflow run of a method and seed."""
        if not self._resumed:
            return 0
        self._connect()
        return self._try(partial(self._find, seed, method)) or 0

    def write(self, seed: int, method: str, row: Row) -> None:
        """Add one cycle's record."""
        self._connect()
        self._try(partial(self._add, seed, method, row))

    def close(self, outcome: Outcome) -> None:
        """End the MLflow runs."""
        for run in self._open.values():
            self._try(partial(self._client.set_terminated, run, outcome))

    def _connect(self) -> None:
        """Find or create the MLflow experiment with our experiment's name."""
        if self._group:
            return
        name = self._experiment.name
        try:
            self._client = self._mlflow.MlflowClient()
            known = self._client.get_experiment_by_name(name)
            self._group = str(
                known.experiment_id if known else self._client.create_experiment(name)
            )
        except Exception as error:  # of whatever lies between us and the tracking server
            place = self._mlflow.get_tracking_uri()
            remedy = f"Set MLFLOW_TRACKING_URI. MLflow says: {error}"
            raise InputError("MLflow tracking", place, "a place to write to", remedy) from error

    def _try(self, work: Callable[[], Result]) -> Result | None:
        """Call MLflow; after a failure, stop logging, since the folder has the records."""
        if self._lost:
            return None
        try:
            return work()
        except Exception as error:  # of whatever lies between us and the tracking server
            self._lost = True
            later = "--resume --log mlflow adds them later"
            warn(f"MLflow gets no more records of this run; {later}. It says: {error}")
            return None

    def _find(self, seed: int, method: str) -> int:
        quote = "'" if '"' in self._folder else '"'
        tags = {"folder": self._folder, "method": method, "seed": str(seed)}
        condition = " and ".join(
            f"tags.{name} = {quote}{value}{quote}" for name, value in tags.items()
        )
        runs = self._client.search_runs([self._group], condition, max_results=1)
        if not runs:
            return 0
        self._earlier[method, seed] = run = str(runs[0].info.run_id)
        history = self._client.get_metric_history(run, ALWAYS_MEASURED)
        return max((metric.step for metric in history), default=0)

    def _add(self, seed: int, method: str, row: Row) -> None:
        if (method, seed) not in self._open:
            self._open[method, seed] = self._start(seed, method)
        run, now_ms = self._open[method, seed], int(1000 * time.time())
        values = scalars(row).items()
        metrics = [self._entities.Metric(name, value, now_ms, row[STEP]) for name, value in values]
        self._client.log_batch(run, metrics=metrics)
        if row[STEP] == self._experiment.cycles:
            self._client.set_terminated(run, "FINISHED")
            del self._open[method, seed]

    def _start(self, seed: int, method: str) -> str:
        """The MLflow run of a method and seed: the earlier one, or a new one with all keys."""
        if run := self._earlier.get((method, seed)):
            self._client.update_run(run, status="RUNNING")
            return run
        tags = {"method": method, "seed": str(seed), "folder": self._folder}
        made = self._client.create_run(self._group, run_name=f"{method} seed {seed}", tags=tags)
        values = flat(self._experiment.model_dump(mode="json"))
        parameters = [
            self._entities.Param(key, str(value))
            for key, value in values.items()
            if key not in ("methods", "seeds")
        ]
        self._client.log_batch(made.info.run_id, params=parameters)
        return str(made.info.run_id)
