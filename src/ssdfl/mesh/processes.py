"""A mesh on one host: start its devices, watch them, collect what they wrote."""

from __future__ import annotations

import json
import math
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ssdfl.arrays import BoolArray, FloatArray, statistic
from ssdfl.engine.checkpoint import load_parameters
from ssdfl.errors import InputError
from ssdfl.files import atomic_path
from ssdfl.graph import load_network
from ssdfl.locks import is_held
from ssdfl.mesh.folder import LOCK, STATUS, device_folders, read_device
from ssdfl.mesh.membership import CHANGES, Membership
from ssdfl.preparation import liars_of
from ssdfl.records import Record, Score
from ssdfl.records.config import load_experiment
from ssdfl.records.engines import engine_traits
from ssdfl.records.folder import CHECKPOINT, Row, RunFolder
from ssdfl.records.record import OTHER_SCORES

DeviceRow = dict[str, float]
"""What one device wrote of one cycle."""

POLL_S = 0.2
STOP_S = 20.0


class MeshProcesses:
    """The devices of a mesh that are on this host, each a process of its own.

    Args:
        data: the folder with data sets, for those that are dealt by number.
        metrics_port: where the first device serves metrics; the others do on the next ports.
    """

    def __init__(
        self, mesh: Path, data: Path | None = None, metrics_port: int | None = None
    ) -> None:
        self._mesh, self.folders = mesh, device_folders(mesh)
        self._data, self._metrics_port = data, metrics_port
        self._processes: dict[Path, subprocess.Popen[bytes]] = {}
        self._chains: dict[Path, Membership] = {}

    def start(self) -> None:
        """Start all devices."""
        for folder in self.folders:
            self.start_device(folder)

    def start_device(self, folder: Path) -> None:
        """Start one device, at the beginning or where its checkpoint is."""
        command = [sys.executable, "-m", "ssdfl", "device", str(folder)]
        command += ["--data", str(self._data)] if self._data else []
        if self._metrics_port is not None:
            command += ["--metrics", str(self._metrics_port + self.folders.index(folder))]
        with (folder / "output.txt").open("ab") as output:
            self._processes[folder] = subprocess.Popen(command, stdout=output, stderr=output)

    def process(self, folder: Path) -> subprocess.Popen[bytes]:
        """The process of a device."""
        return self._processes[folder]

    def running(self) -> list[Path]:
        """Folders of the devices that have not ended."""
        return [folder for folder, process in self._processes.items() if process.poll() is None]

    def failed(self) -> dict[Path, int]:
        """Folders and exit codes of devices that ended with an error.

        Those that were started elsewhere, or have left the mesh since, do not count.
        """
        codes = {folder: process.poll() for folder, process in self._processes.items()}
        members = self._members()
        return {
            folder: code
            for folder, code in codes.items()
            if code and folder in members and not _lives_on(folder)
        }

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
        """What each device last wrote about itself, members first.

        It has ``failed``, the exit code, if the device ended with an error; ``left`` if it is no
        longer in the mesh; ``joining`` if it is to join and has not begun.
        """
        failed = {folder: {"failed": code} for folder, code in self.failed().items()}
        members, others = self._members(), self._known_devices()
        gone = [folder for folder in others if folder not in members and _has_begun(folder)]
        return [
            *(_status_of_member(folder) | failed.get(folder, {}) for folder in members),
            *(device_status(folder) | {"left": True} for folder in gone),
        ]

    def _known_devices(self) -> list[Path]:
        """The folders of devices that were there at the start, or are to join."""
        return list(dict.fromkeys((*self.folders, *device_folders(self._mesh))))

    def _members(self) -> list[Path]:
        """The folders of devices that are in the mesh now."""
        folders = self._known_devices()
        cycle = max(int(device_status(folder).get("cycle", 0)) for folder in folders)
        names = self._names_after(cycle)
        if names is None:
            return [folder for folder in folders if folder in self.folders or _has_begun(folder)]
        return [folder for folder in folders if folder.name in names]

    def _names_after(self, cycle: int) -> tuple[str, ...] | None:
        """The members after a cycle, if they have changed by then.

        A change made on another host is in the devices' folders only.
        """
        places = (self._mesh, *self.folders)
        chains = [self._chain(place) for place in places if (place / CHANGES).is_dir()]
        for chain in chains:
            chain.read_folder()
        longest = max(chains, key=lambda chain: chain.version, default=None)
        return None if longest is None else longest.names_after(cycle)

    def _chain(self, place: Path) -> Membership:
        """The changes of membership in a folder."""
        if place not in self._chains:
            first = self.folders[0]
            text = (first / "network.json").read_text(encoding="utf-8")
            authority = (first / "authority.pem").read_bytes()
            self._chains[place] = Membership(place, authority, text)
        return self._chains[place]


def _has_begun(folder: Path) -> bool:
    return (folder / STATUS).exists()


def _status_of_member(folder: Path) -> dict[str, Any]:
    """What a member last wrote about itself, or that it is yet to join."""
    joining = bool(read_device(folder).joins) and not _has_begun(folder)
    return device_status(folder) | ({"joining": True} if joining else {})


def _lives_on(folder: Path) -> bool:
    """Whether a device whose process here has ended runs in another, or has finished in one."""
    return is_held(folder / LOCK) or bool(device_status(folder).get("done"))


def device_status(folder: Path) -> dict[str, Any]:
    """What a device last wrote about itself; only its name if that cannot be read."""
    try:
        status: dict[str, Any] = json.loads((folder / STATUS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"device": folder.name}
    return status


def watch_statuses(processes: MeshProcesses) -> Iterator[list[dict[str, Any]]]:
    """Devices' statuses, again and again until all have ended.

    Raises:
        InputError: a device ended with an error; it says what the device said.
    """
    failed: dict[Path, int] = {}
    while processes.running():
        time.sleep(POLL_S)
        failed |= processes.failed()
        yield processes.statuses()
    still = processes.failed()
    in_order = {folder: code for folder, code in (failed | still).items() if folder in still}
    for folder, code in in_order.items():
        last_line = _last_output(folder)
        raise InputError(folder.name, f"exit code {code}", "a finished device", last_line)


def _last_output(folder: Path) -> str:
    """The last line that a device printed."""
    output = (folder / "output.txt").read_text(encoding="utf-8", errors="replace")
    lines = output.strip().splitlines()
    return lines[-1] if lines else ""


def collect(mesh: Path, out: Path) -> RunFolder:
    """Collect what a mesh's devices wrote into a run's folder: records for reports, and models.

    A record averages the devices that wrote one for its cycle. It lacks what no device knows alone:
    the mean model's score, and consensus distances except the last, which comes from checkpoints.

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
    if not _was_collected(run):
        run.check_free()
    run.write_experiment(experiment, config.seed)
    of_device = RunFolder(folders[0])
    run.write_task(of_device.goal(experiment).scores, of_device.notes())
    for name in ("network.json", "plan.json"):
        run.write_fact(config.seed, name, (folders[0] / name).read_text(encoding="utf-8"))
    run.write_rows(config.seed, config.method, rows)
    run.write_all_rows()
    _gather_models(folders, run.devices_folder(config.seed, config.method))
    return run


def _was_collected(run: RunFolder) -> bool:
    """Whether a folder holds an earlier collection, which may be renewed if facts are the same."""
    return (
        run.experiment_file.exists()
        and engine_traits(run.experiment().engine.name).process_per_device
    )


def _gather_models(folders: list[Path], place: Path) -> None:
    """Copy devices' checkpoints to where `ssdfl.load_model` looks for them."""
    for folder in folders:
        if (folder / CHECKPOINT).exists():
            with atomic_path(place / folder.name / CHECKPOINT) as temporary:
                shutil.copyfile(folder / CHECKPOINT, temporary)


def collected_rows(folders: list[Path]) -> list[Row]:
    """One record a cycle, of what devices wrote."""
    of_devices = [_metrics(folder) for folder in folders]
    last = max((cycle for rows in of_devices for cycle in rows), default=0)
    bytes_each, score = _message_bytes(folders), RunFolder(folders[0]).goal().score
    lies = _who_lies(folders)
    first = sum(not read_device(folder).joins for folder in folders)
    at_last = zip(folders, of_devices, lies, strict=True)
    honest = [folder for folder, rows, lying in at_last if last in rows and not lying]
    records = []
    for cycle in range(1, last + 1):
        rows = [own.get(cycle) for own in of_devices]
        if any(rows):
            distance = _consensus_distance(honest) if cycle == last else math.nan
            record = _record(cycle, rows, lies, bytes_each, distance, score)
            # Reports show the mesh's first network, which devices that joined later are not in.
            records.append(asdict(replace(record, device_score=record.device_score[:first])))
    return records


def _who_lies(folders: list[Path]) -> BoolArray:
    """Which of these devices lie."""
    configs = [read_device(folder) for folder in folders]
    experiment = load_experiment(folders[0] / "experiment.toml")
    network = load_network(str(folders[0] / "network.json"))
    liars = liars_of(experiment.faults, network, configs[0].seed)
    return np.isin([config.index for config in configs], liars)


def _record(
    cycle: int,
    of_devices: list[DeviceRow | None],
    lies: BoolArray,
    bytes_each: int,
    consensus_distance: float,
    score: Score,
) -> Record:
    """The record of a cycle, of the devices that wrote one; None for those that did not.

    How well it went is said of honest devices; what it cost, of all.
    """
    scores, received = _column(of_devices, "score"), int(np.nansum(_column(of_devices, "received")))
    honest = [row for row, lying in zip(of_devices, lies, strict=True) if not lying]
    tested = _known(honest, "score")
    return Record(
        cycle=cycle,
        score=statistic(np.mean, tested),
        score_std=statistic(np.std, tested),
        score_worst=statistic(score.worst, tested),
        average_model_score=math.nan,
        loss=statistic(np.mean, _known(honest, "loss")),
        consensus_distance=consensus_distance,
        effective_gradient=statistic(_root_mean_square, _known(honest, "effective_gradient")),
        transmissions=received,
        sent_bytes=received * bytes_each,
        time_s=float(np.nanmax(_column(of_devices, "time_s"))),
        real_s=float(np.nanmax(_column(of_devices, "real_s"))),
        device_score=() if np.isnan(scores).all() else tuple(scores.tolist()),
        liar_score=statistic(np.mean, scores[lies & ~np.isnan(scores)]),
        **_other_scores(honest),
    )


def _other_scores(rows: Sequence[DeviceRow | None]) -> dict[str, Any]:
    """The means of the task's other scores; NaN where it has none."""
    return {name: statistic(np.mean, _known(rows, name)) for name in OTHER_SCORES}


def _column(rows: Sequence[DeviceRow | None], name: str) -> FloatArray:
    """(n,) what devices wrote under a name; NaN for those that wrote nothing."""
    return np.array([(row or {}).get(name, math.nan) for row in rows])


def _known(rows: Sequence[DeviceRow | None], name: str) -> FloatArray:
    """The same without what is missing."""
    values = _column(rows, name)
    return values[~np.isnan(values)]


def _root_mean_square(values: FloatArray) -> float:
    return float(np.sqrt(np.square(values).mean()))


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
    return np.concatenate([load_parameters(folder / CHECKPOINT) for folder in folders])


def _consensus_distance(folders: list[Path]) -> float:
    try:
        X = parameters(folders)
    except InputError:
        return math.nan
    return float(np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()))


def _message_bytes(folders: list[Path]) -> int:
    known = (device_status(folder).get("message_bytes") for folder in folders)
    return int(next(filter(None, known), 0))
