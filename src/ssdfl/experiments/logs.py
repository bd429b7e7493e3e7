"""Records for the tools that are open anyway: TensorBoard and MLflow."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from ssdfl.errors import InputError, require
from ssdfl.experiments.config import Experiment
from ssdfl.experiments.store import Row, flat, measured

SCALARS = (
    "accuracy",
    "accuracy_std",
    "accuracy_worst",
    "average_model_accuracy",
    "loss",
    "consensus_distance",
    "effective_gradient",
    "transmissions",
    "sent_bytes",
    "time_s",
    "training_gap",
)


class Log(Protocol):
    """Where records go besides the run's folder."""

    def write(self, seed: int, method: str, row: Row) -> None:
        """Add one cycle's record."""

    def close(self) -> None:
        """Nothing more comes."""


class TensorBoardLog:
    """Event files in the run's folder, in ``tensorboard/METHOD/seed-S``."""

    def __init__(self, experiment: Experiment, out: Path) -> None:
        self._make = require("tensorboard.summary", "tensorboard").Writer
        self._root = out / "tensorboard"
        self._writers: dict[tuple[str, int], Any] = {}

    def write(self, seed: int, method: str, row: Row) -> None:
        """Add one cycle's record."""
        if (method, seed) not in self._writers:
            place = self._root / method.replace(":", ".") / f"seed-{seed}"
            self._writers[method, seed] = self._make(str(place))
        writer = self._writers[method, seed]
        for name, value in scalars(row).items():
            writer.add_scalar(name, value, step=row["cycle"])
        writer.flush()

    def close(self) -> None:
        """Nothing more comes."""
        for writer in self._writers.values():
            writer.close()


class MLflowLog:
    """An MLflow run for every method and seed, where ``MLFLOW_TRACKING_URI`` says or MLflow's default is."""

    def __init__(self, experiment: Experiment, out: Path) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # a run tells nobody that it runs
        self._mlflow = require("mlflow", "mlflow")
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        self._experiment, self._out = experiment, out
        self._client: Any = None
        self._runs: dict[tuple[str, int], str] = {}

    def write(self, seed: int, method: str, row: Row) -> None:
        """Add one cycle's record."""
        if (method, seed) not in self._runs:
            self._runs[method, seed] = self._start(seed, method)
        for name, value in scalars(row).items():
            self._client.log_metric(self._runs[method, seed], name, value, step=row["cycle"])

    def close(self) -> None:
        """Nothing more comes."""
        for run in self._runs.values():
            self._client.set_terminated(run)

    def _start(self, seed: int, method: str) -> str:
        """The run of a method and seed, with every key of the experiment as a parameter."""
        group = self._group()
        tags = {"method": method, "seed": str(seed), "folder": str(self._out)}
        run = self._client.create_run(group, run_name=f"{method} seed {seed}", tags=tags)
        for key, value in flat(self._experiment.model_dump(mode="json")).items():
            if key not in ("methods", "seeds"):
                self._client.log_param(run.info.run_id, key, value)
        return str(run.info.run_id)

    def _group(self) -> str:
        """MLflow's experiment of our experiment's name."""
        name = self._experiment.name
        try:
            self._client = self._client or self._mlflow.MlflowClient()
            known = self._client.get_experiment_by_name(name)
            return str(known.experiment_id if known else self._client.create_experiment(name))
        except Exception as error:  # of whatever lies between us and the tracking server
            place = self._mlflow.get_tracking_uri()
            remedy = f"Set MLFLOW_TRACKING_URI. MLflow says: {error}"
            raise InputError("MLflow tracking", place, "a place to write to", remedy) from error


LOGS: Mapping[str, Callable[[Experiment, Path], Log]] = {"tensorboard": TensorBoardLog, "mlflow": MLflowLog}


@contextmanager
def logging_to(
    names: Sequence[str], experiment: Experiment, out: Path
) -> Iterator[Callable[[int, str, Row], None]]:
    """A function that adds a seed's and method's record to logs by name, which are closed in the end.

    Nothing is written before the first record.

    Raises:
        InputError: there is no such log, or its extra is not installed.
    """
    for name in names:
        if name not in LOGS:
            raise InputError("--log", name, f"one of {', '.join(LOGS)}", "Choose one of them.")
    logs = [LOGS[name](experiment, out) for name in dict.fromkeys(names)]

    def write(seed: int, method: str, row: Row) -> None:
        for log in logs:
            log.write(seed, method, row)

    try:
        yield write
    finally:
        for log in logs:
            log.close()


def scalars(row: Row) -> dict[str, float]:
    """A record's numbers; what was not measured in its cycle is left out.

    Examples:
        >>> scalars({"cycle": 1, "loss": 0.5, "accuracy": float("nan")})
        {'loss': 0.5}
    """
    return {name: float(row[name]) for name in SCALARS if name in row and measured(row, name)}
