"""Records for TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ssdfl.errors import require
from ssdfl.experiments.logs.base import ALWAYS_MEASURED, STEP, Outcome, scalars
from ssdfl.records.config import Experiment
from ssdfl.records.folder import RunFolder, folder_name
from ssdfl.records.record import metrics_of
from ssdfl.records.tables import Row


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
        """Close the event files."""
        for writer in self._writers.values():
            writer.close()

    def _place(self, seed: int, method: str) -> Path:
        return self._root / folder_name(method) / f"seed-{seed}"
