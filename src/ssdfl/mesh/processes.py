"""A mesh on one host: start its devices, watch them, collect what they wrote."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ssdfl.arrays import statistic
from ssdfl.engine.checkpoint import load_parameters
from ssdfl.errors import InputError
from ssdfl.mesh.folder import device_folders, read_device
from ssdfl.records import Record
from ssdfl.records.config import load_experiment
from ssdfl.records.folder import Row, RunFolder

DeviceRow = dict[str, float]
"""What one device wrote of one cycle."""

POLL_S = 0.2
STOP_S = 20.0


class MeshProcesses:
    """The devices of a mesh that are on this host, each a process of its own."""

    def __init__(self, mesh: Path, data: Path | None = None) -> None:
        self.folders = device_folders(mesh)
        self._data = data
        self._processes: dict[Path, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start all devices."""
        for folder in self.folders:
            self.start_device(folder)

    def start_device(self, folder: Path) -> None:
        """Start one device, at the beginning or where its checkpoint is."""
        command = [sys.executable, "-m", "ssdfl", "device", str(folder)]
        command += ["--data", str(self._data)] if self._data else []
        with (folder / "output.txt").open("ab") as output:
            self._processes[folder] = subprocess.Popen(command, stdout=output, stderr=output)

    def process(self, folder: Path) -> subprocess.Popen[bytes]:
        """The process of a device."""
        return self._processes[folder]

    def running(self) -> list[Path]:
        """Folders of the devices that have not ended."""
        return [folder for folder, process in self._processes.items() if process.poll() is None]

    def failed(self) -> dict[Path, int]:
        """Folders and exit codes of the devices that ended with an error."""
        codes = {folder: process.poll() for folder, process in self._processes.items()}
        return {folder: code for folder, code in codes.items() if code}

    def stop(self) -> None:
        """Ask all devices to stop, and kill those that do not."""
        for folder in self.running():
            self._processes[folder].send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_S
        while self.running() and time.monotonic() < deadline:
            time.sleep(POLL_S)
        for folder in self.running():
            self._processes[folder].kill()

    def statuses(self) -> list[dict[str, Any]]:
        """What each device last wrote about itself, and its exit code if it ended with an error."""
        failed = {folder: {"failed": code} for folder, code in self.failed().items()}
        return [_status(folder) | failed.get(folder, {}) for folder in self.folders]


def _status(folder: Path) -> dict[str, Any]:
    """What a device last wrote about itself; only its name if that cannot be read."""
    try:
        status: dict[str, Any] = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"device": folder.name}
    return status


def watch_statuses(processes: MeshProcesses) -> Iterator[list[dict[str, Any]]]:
    """Devices' statuses, again and again until all have ended.

    Raises:
        InputError: a device ended with an error; it says what the device said.
    """
    failed_first: dict[Path, int] = {}
    while processes.running():
        time.sleep(POLL_S)
        failed_first = failed_first or processes.failed()
        yield processes.statuses()
    for folder, code in (failed_first or processes.failed()).items():
        last_line = _last_output(folder)
        raise InputError(folder.name, f"exit code {code}", "a finished device", last_line)


def _last_output(folder: Path) -> str:
    """The last line that a device printed."""
    output = (folder / "output.txt").read_text(encoding="utf-8", errors="replace")
    lines = output.strip().splitlines()
    return lines[-1] if lines else ""


def collect(mesh: Path, out: Path) -> RunFolder:
    """Collect what the devices of a mesh wrote into a run's folder, so that reports work.

    A record averages the devices that wrote one for its cycle. It lacks what no device knows alone: the mean
    model's accuracy, and consensus distances except the last, which comes from the checkpoints.

    Raises:
        InputError: no device has finished a cycle.
    """
    folders = device_folders(mesh)
    config = read_device(folders[0])
    experiment = load_experiment(folders[0] / "experiment.toml")
    rows = collected_rows(folders)
    if not rows:
        raise InputError("mesh", str(mesh), "at least one finished cycle", "Let it run longer.")
    run = RunFolder(out)
    run.check_free()
    run.write_experiment(experiment, config.seed)
    for name in ("network.json", "plan.json"):
        run.write_fact(config.seed, name, (folders[0] / name).read_text(encoding="utf-8"))
    run.write_rows(config.seed, config.method, rows)
    run.write_all_rows()
    return run


def collected_rows(folders: list[Path]) -> list[Row]:
    """One record a cycle, of what devices wrote."""
    of_devices = [_metrics(folder) for folder in folders]
    last = max((cycle for rows in of_devices for cycle in rows), default=0)
    bytes_each = _message_bytes(folders)
    records = []
    for cycle in range(1, last + 1):
        rows = [rows.get(cycle) for rows in of_devices]
        if any(rows):
            distance = _consensus_distance(folders) if cycle == last else math.nan
            records.append(asdict(_record(cycle, rows, bytes_each, distance)))
    return records


def _record(
    cycle: int, of_devices: list[DeviceRow | None], bytes_each: int, consensus_distance: float
) -> Record:
    """The record of a cycle, of the devices that wrote one; None for those that did not."""
    rows = [row for row in of_devices if row is not None]
    accuracies = [math.nan if row is None else row["accuracy"] for row in of_devices]
    tested = np.array([accuracy for accuracy in accuracies if not math.isnan(accuracy)])
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    sent = int(columns["sent"].sum())
    return Record(
        cycle=cycle,
        accuracy=statistic(np.mean, tested),
        accuracy_std=statistic(np.std, tested),
        accuracy_worst=statistic(np.min, tested),
        average_model_accuracy=math.nan,
        loss=float(columns["loss"].mean()),
        consensus_distance=consensus_distance,
        effective_gradient=float(np.sqrt(np.square(columns["effective_gradient"]).mean())),
        transmissions=sent,
        sent_bytes=sent * bytes_each,
        time_s=float(columns["time_s"].max()),
        real_s=float(columns["real_s"].max()),
        device_accuracy=tuple(accuracies) if len(tested) else (),
    )


def _metrics(folder: Path) -> dict[int, DeviceRow]:
    """A device's records by cycle; of a cycle that it did twice, the later."""
    found: dict[int, DeviceRow] = {}
    try:
        lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    except OSError:
        return found
    for line in lines:
        try:
            row = json.loads(line)
            found[int(row["cycle"])] = row
        except (ValueError, KeyError, TypeError):
            continue  # a line cut short when the device was killed
    return found


def parameters(folders: list[Path]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """(N, d) everyone's parameters, as their checkpoints have them.

    Raises:
        InputError: a checkpoint is missing or damaged.
    """
    return np.concatenate([load_parameters(folder / "checkpoint.safetensors") for folder in folders])


def _consensus_distance(folders: list[Path]) -> float:
    try:
        X = parameters(folders)
    except InputError:
        return math.nan
    return float(np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()))


def _message_bytes(folders: list[Path]) -> int:
    for folder in folders:
        try:
            return int(json.loads((folder / "status.json").read_text(encoding="utf-8"))["message_bytes"])
        except (OSError, ValueError, KeyError):
            continue
    return 0
