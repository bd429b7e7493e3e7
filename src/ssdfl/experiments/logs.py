"""Records for TensorBoard and MLflow."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from ssdfl.errors import InputError, require
from ssdfl.records.config import Experiment
from ssdfl.records.folder import RunFolder, flat, folder_name
from ssdfl.records.record import METRICS, metrics_of
from ssdfl.records.tables import Row, is_measured

if TYPE_CHECKING:
    from ssdfl.experiments.advance import Advance

Result = TypeVar("Result")
Outcome = Literal["FINISHED", "KILLED", "FAILED"]
"""How a run ended: MLflow's words."""

ALWAYS_MEASURED = "transmissions"
"""A metric that every record has: its last step is the last cycle that a log knows."""
STEP = "cycle"
"""The metric that the others are logged against."""


class Log(Protocol):
    """Where records go in addition to the run's folder."""

    def last(self, seed: int, method: str) -> int:
        """The last cycle that was written before this run was resumed; 0 if none was."""

    def write(self, seed: int, method: str, row: Row) -> None:
        """Add one cycle's record."""

    def close(self, outcome: Outcome) -> None:
        """Nothing more comes."""


class TensorBoardLog:
    """Event files in the run's folder, in ``tensorboard/METHOD/seed-S``."""

    def __init__(self, experiment: Experiment, out: Path, resumed: bool) -> None:
        self._make = require("tensorboard.summary", "tensorboard").Writer
        self._root, self._resumed, self._folder = out / "tensorboard", resumed, RunFolder(out)
        self._experiment = experiment
        self._writers: dict[Path, Any] = {}

    def last(self, seed: int, method: str) -> int:
        """The last cycle in the event files."""
        place = self._place(seed, method)
        if not self._resumed or not place.exists():
            return 0
        reading = require("tensorboard.backend.event_processing.event_accumulator", "tensorboard")
        events = reading.EventAccumulator(str(place), size_guidance={"tensors": 1})
        events.Reload()
        if ALWAYS_MEASURED not in events.Tags()["tensors"]:
            return 0
        return max(int(event.step) for event in events.Tensors(ALWAYS_MEASURED))

    def write(self, seed: int, method: str, row: Row) -> None:
        """Add one cycle's record."""
        place = self._place(seed, method)
        if place not in self._writers:
            self._writers[place] = self._make(str(place))
        writer = self._writers[place]
        metrics = metrics_of(self._folder.goal(self._experiment))
        for name, value in scalars(row).items():
            writer.add_scalar(name, value, step=row[STEP], description=metrics[name].label)
        writer.flush()

    def close(self, outcome: Outcome) -> None:
        """Nothing more comes."""
        for writer in self._writers.values():
            writer.close()

    def _place(self, seed: int, method: str) -> Path:
        return self._root / folder_name(method) / f"seed-{seed}"


class MLflowLog:
    """An MLflow run for every method and seed, where ``MLFLOW_TRACKING_URI`` says or MLflow's default is.

    A resumed run continues in the MLflow runs that have its folder, methods and seeds as tags.
    """

    def __init__(self, experiment: Experiment, out: Path, resumed: bool) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # a run reports to nobody that it runs
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
        """Nothing more comes."""
        for run in self._open.values():
            self._try(partial(self._client.set_terminated, run, outcome))

    def _connect(self) -> None:
        """Find MLflow's experiment of our experiment's name, or make it."""
        if self._group:
            return
        name = self._experiment.name
        try:
            self._client = self._mlflow.MlflowClient()
            known = self._client.get_experiment_by_name(name)
            self._group = str(known.experiment_id if known else self._client.create_experiment(name))
        except Exception as error:  # of whatever lies between us and the tracking server
            place = self._mlflow.get_tracking_uri()
            remedy = f"Set MLFLOW_TRACKING_URI. MLflow says: {error}"
            raise InputError("MLflow tracking", place, "a place to write to", remedy) from error

    def _try(self, work: Callable[[], Result]) -> Result | None:
        """Call MLflow; after a failure do nothing more, since the folder has the records."""
        if self._lost:
            return None
        try:
            return work()
        except Exception as error:  # of whatever lies between us and the tracking server
            self._lost = True
            later = "--resume --log mlflow adds them later"
            _warn(f"MLflow gets no more records of this run; {later}. It says: {error}")
            return None

    def _find(self, seed: int, method: str) -> int:
        quote = "'" if '"' in self._folder else '"'
        tags = {"folder": self._folder, "method": method, "seed": str(seed)}
        condition = " and ".join(f"tags.{name} = {quote}{value}{quote}" for name, value in tags.items())
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
        """The run of a method and seed: the earlier one, or one with every key of the experiment."""
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


LOGS: Mapping[str, Callable[[Experiment, Path, bool], Log]] = {
    "tensorboard": TensorBoardLog,
    "mlflow": MLflowLog,
}


class _OnlyNew:
    """Adds to a log the cycles that it lacks."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._last: dict[tuple[int, str], int] = {}

    def last(self, seed: int, method: str) -> int:
        if (seed, method) not in self._last:
            self._last[seed, method] = self.log.last(seed, method)
        return self._last[seed, method]

    def write(self, seed: int, method: str, row: Row) -> None:
        if row[STEP] > self.last(seed, method):
            self.log.write(seed, method, row)
            self._last[seed, method] = row[STEP]


@contextmanager
def logging_to(
    names: Sequence[str], experiment: Experiment, folder: RunFolder
) -> Iterator[Callable[[Advance], None]]:
    """A function that adds every cycle's record to the named logs; they are closed with how the run ended.

    Nothing is written before the first record. Logs that lack cycles of an earlier run get those too.

    Raises:
        InputError: there is no such log, or its extra is not installed.
    """
    logs = _open_logs(names, experiment, folder)

    def watch(advance: Advance) -> None:
        seed, method = advance.seed, advance.method
        lacking = [log for log in logs if log.last(seed, method) < advance.cycle]
        if not lacking:
            return
        for row in _rows_of(advance, folder):
            for log in lacking:
                log.write(seed, method, row)

    with ExitStack() as stack:
        for log in logs:
            stack.push(partial(_close, log.log))
        yield watch


def _open_logs(names: Sequence[str], experiment: Experiment, folder: RunFolder) -> list[_OnlyNew]:
    for name in names:
        if name not in LOGS:
            raise InputError("--log", name, f"one of {', '.join(LOGS)}", "Choose one of them.")
    resumed = folder.experiment_file.exists()
    return [_OnlyNew(LOGS[name](experiment, folder.path, resumed)) for name in dict.fromkeys(names)]


def _rows_of(advance: Advance, folder: RunFolder) -> list[Row]:
    """The record of a cycle done now; of one done earlier, all that the folder has."""
    if advance.record is not None:
        return [asdict(advance.record)]
    return folder.read_rows(advance.seed, advance.method)


def _close(log: Log, kind: type[BaseException] | None, *_: object) -> None:
    """Tell a log how the run ended; one that fails must not hide the others nor the run's own error."""
    try:
        log.close(_outcome(kind))
    except Exception as error:  # of a disk or whatever else is behind a log
        _warn(f"A log could not be closed: {error}")


def _outcome(kind: type[BaseException] | None) -> Outcome:
    if kind is None:
        return "FINISHED"
    if issubclass(kind, KeyboardInterrupt | SystemExit):
        return "KILLED"
    return "FAILED"


def _warn(text: str) -> None:
    sys.stderr.write(f"ssdfl: {' '.join(text.split())}\n")


def scalars(row: Row) -> dict[str, float]:
    """A record's metrics but the cycle; those not measured in this cycle are left out.

    Examples:
        >>> scalars({"cycle": 1, "loss": 0.5, "score": float("nan")})
        {'loss': 0.5}
    """
    return {name: float(row[name]) for name in METRICS if name != STEP and is_measured(row, name)}
