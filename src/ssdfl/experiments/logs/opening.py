"""Open logs by name, and add the cycles that each lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ssdfl.errors import InputError
from ssdfl.experiments.logs.base import STEP, Log, Outcome, warn
from ssdfl.experiments.logs.mlflow import MLflowLog
from ssdfl.experiments.logs.tensorboard import TensorBoardLog
from ssdfl.experiments.logs.wandb import WandbLog
from ssdfl.records.config import Experiment
from ssdfl.records.folder import RunFolder
from ssdfl.records.tables import Row

if TYPE_CHECKING:
    from ssdfl.experiments.advance import Advance

LOGS: Mapping[str, Callable[[Experiment, Path, bool], Log]] = {
    "tensorboard": TensorBoardLog,
    "mlflow": MLflowLog,
    "wandb": WandbLog,
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
    """A context manager whose function adds every record to the named logs.

    Nothing is written before the first record. Logs that lack cycles of an earlier run get those
    too. On exit, each log is closed with how the run ended.

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
    """The record of a cycle done now, or all of the folder's if the cycle was done earlier."""
    if advance.record is not None:
        return [asdict(advance.record)]
    return folder.read_rows(advance.seed, advance.method)


def _close(log: Log, kind: type[BaseException] | None, *_: object) -> None:
    """Close a log; an error here hides neither the other logs nor the run's own error."""
    try:
        log.close(_outcome(kind))
    except Exception as error:  # from the disk or anything else behind a log
        warn(f"A log could not be closed: {error}")


def _outcome(kind: type[BaseException] | None) -> Outcome:
    if kind is None:
        return "FINISHED"
    if issubclass(kind, KeyboardInterrupt | SystemExit):
        return "KILLED"
    return "FAILED"
