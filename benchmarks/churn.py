"""Devices of a mesh under constant faults: what survivors keep of their steps and their accuracy.

    python benchmarks/churn.py                                      # 24 devices, 30 minutes twice
    python benchmarks/churn.py --devices 4 --minutes 1 --every 10   # a quick look

A mesh of forked processes trains twice for the same time: undisturbed, and with a fault every few
seconds. A fault is a kill, a freeze, a cut of a link both ways or one way, a full disk, or a start
with a wrong clock, and ends after some seconds. Links run through cables in this process, which
hold back what is cut. A full disk is a limit of 0 bytes for files. The output has the steps a
second of devices without a fault of their own, as a share of the undisturbed ones; both accuracies;
and devices that stood still at the end or were not running. Compare the shares on an otherwise idle
machine: the devices share its cores.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import random
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ssdfl.errors import InputError
from ssdfl.mesh.folder import init_mesh
from ssdfl.records import load_experiment

SETTINGS = (
    "data.name=digits",
    "data.labels_per_device=5",
    "model.name=mlp",
    "clusters.number=4",
    "cycles=1000000",
    "evaluate.every=5",
)
RECOVERY_S = 8.0
"""After a fault, until its device counts among those without one."""
REST_S = 20.0
"""Without faults at the end, when all have to get on."""
POLL_S = 0.5


class Cable:
    """A TCP link from one device to another; each direction can be held back."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.flows = {"there": threading.Event(), "back": threading.Event()}
        for flow in self.flows.values():
            flow.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            near, _ = self._listener.accept()
            threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        host, port = self.target.rsplit(":", 1)
        try:
            far = socket.create_connection((host, int(port)), timeout=2)
        except OSError:
            near.close()
            return
        far.settimeout(None)
        threading.Thread(target=self._pump, args=(far, near, "back"), daemon=True).start()
        self._pump(near, far, "there")

    def _pump(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self.flows[way].wait()
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def run_forked(folder: Path, clock_s: float) -> None:
    """In a forked process: the device of a folder, whose clock may be wrong."""
    output = os.open(folder / "output.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for place in (1, 2):
        os.dup2(output, place)
    _set_clock(clock_s)
    from ssdfl.mesh.device import run_device

    try:
        sys.exit(0 if run_device(folder) else 130)
    except InputError as error:
        sys.exit(error.exit_code)


def _set_clock(clock_s: float) -> None:
    """Make Python's clock wrong; gRPC's own stays right, since its core would notice."""
    import grpc._channel

    right = time.time
    grpc._channel.time = SimpleNamespace(**{**vars(time), "time": right})
    time.time = lambda: right() + clock_s


@dataclass
class Mesh:
    """Devices as processes, and the cables between them.

    Attributes:
        cables: by the two ends' names, the one that dials first.
        faulty_until: until when each device has a fault of its own.
        lost: what must not happen.
    """

    folders: list[Path]
    cables: dict[tuple[str, str], Cable]
    processes: dict[str, Any] = field(default_factory=dict)
    faulty_until: dict[str, float] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)

    def start(self, name: str, clock_s: float = 0.0) -> None:
        """Start a device, unless it runs."""
        folder = next(one for one in self.folders if one.name == name)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["torch", "grpc", "ssdfl.mesh.device"])
        process = context.Process(target=run_forked, args=(folder, clock_s), daemon=True)
        process.start()
        self.processes[name] = process

    def end(self, name: str) -> None:
        """End a device as a power cut does."""
        self.processes[name].kill()
        self.processes[name].join()

    def steps(self) -> dict[str, int]:
        """The step of each device, as it last wrote it down."""
        return {folder.name: int(_status(folder).get("step", 0)) for folder in self.folders}

    def close(self) -> None:
        """End all devices."""
        for name in self.processes:
            with suppress(ProcessLookupError):
                os.kill(self.processes[name].pid, signal.SIGCONT)
            self.end(name)


def _status(folder: Path) -> dict[str, Any]:
    try:
        status: dict[str, Any] = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return status


def made_mesh(folder: Path, devices: int) -> Mesh:
    """A mesh whose links run through cables."""
    spec = f"ws:n={devices},k=4,p=0.2,seed=1" if devices > 5 else f"ring:n={devices}"
    experiment = load_experiment(
        None, [*SETTINGS, f"network.spec={spec}", f"clusters.number={min(4, devices // 2)}"]
    )
    folders = init_mesh(experiment, folder, method="ssdfl", seed=0, patience_s=20)
    cables = {}
    for one in folders:
        path = one / "device.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        for name, address in config["neighbours"].items():
            cables[one.name, name] = Cable(address)
            config["neighbours"][name] = cables[one.name, name].address
        path.write_text(json.dumps(config), encoding="utf-8")
    return Mesh(folders, cables)


def kill(mesh: Mesh, name: str, other: str) -> Callable[[], None]:
    """End a device without notice; it is started again."""
    mesh.end(name)
    return partial(mesh.start, name)


def freeze(mesh: Mesh, name: str, other: str) -> Callable[[], None]:
    """Stop a process for a while."""
    pid = mesh.processes[name].pid
    os.kill(pid, signal.SIGSTOP)
    return partial(os.kill, pid, signal.SIGCONT)


def _hold(flows: list[threading.Event]) -> Callable[[], None]:
    for flow in flows:
        flow.clear()
    return partial(_release, flows)


def _release(flows: list[threading.Event]) -> None:
    for flow in flows:
        flow.set()


def one_way(mesh: Mesh, name: str, other: str) -> Callable[[], None]:
    """Nothing gets from a device to a neighbour, neither questions nor answers."""
    return _hold([mesh.cables[name, other].flows["there"], mesh.cables[other, name].flows["back"]])


def cut(mesh: Mesh, name: str, other: str) -> Callable[[], None]:
    """Nothing gets either way."""
    both = mesh.cables[name, other], mesh.cables[other, name]
    return _hold([flow for cable in both for flow in cable.flows.values()])


def full_disk(mesh: Mesh, name: str, other: str) -> Callable[[], None]:
    """A device can write nothing."""
    pid = mesh.processes[name].pid
    usual = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, usual[1]))
    return partial(_unlimited, pid, usual)


def _unlimited(pid: int, usual: tuple[int, int]) -> None:
    resource.prlimit(pid, resource.RLIMIT_FSIZE, usual)


def wrong_clock(mesh: Mesh, name: str, other: str) -> Callable[[], None]:
    """A device is started with its clock an hour behind."""
    mesh.end(name)
    mesh.start(name, clock_s=-3600.0)
    return lambda: None


FAULTS = {one.__name__: one for one in (kill, freeze, cut, one_way, full_disk, wrong_clock)}
OF_LINKS = {"cut", "one_way"}


class Churn:
    """Begins a fault every few seconds, and ends each in time."""

    def __init__(self, mesh: Mesh, every_s: float, seed: int, kinds: list[str]) -> None:
        self.mesh, self._every_s, self._random = mesh, every_s, random.Random(seed)
        self._kinds = kinds
        self._next_s = time.monotonic() + every_s
        self._ends: list[tuple[float, Callable[[], None]]] = []
        self.counts = dict.fromkeys(FAULTS, 0)

    def act(self, resting: bool) -> None:
        """Begin and end what is due; while resting, only end."""
        now = time.monotonic()
        for due in [one for one in self._ends if one[0] <= now or resting]:
            self._ends.remove(due)
            due[1]()
        if now >= self._next_s and not resting:
            self._next_s += self._every_s
            self._begin(now)

    def _begin(self, now: float) -> None:
        kind = self._random.choice(self._kinds)
        name, other = self._random.choice(sorted(self.mesh.cables))
        if self.mesh.faulty_until.get(name, 0.0) > now:
            return
        duration_s = self._random.uniform(1.0, self._every_s)
        self._ends.append((now + duration_s, FAULTS[kind](self.mesh, name, other)))
        self.counts[kind] += 1
        print(
            f"{time.strftime('%H:%M:%S')} {kind} of {name} ({other}) for {duration_s:.1f} s",
            flush=True,
        )
        if kind not in OF_LINKS:
            self.mesh.faulty_until[name] = now + duration_s + RECOVERY_S


@dataclass
class Result:
    """Of one run: steps a second of devices without a fault of their own, and accuracies."""

    rates: dict[str, float]
    accuracy: float


def watch(mesh: Mesh, minutes: float, churn: Churn | None) -> Result:
    """Let a mesh train for some minutes."""
    for folder in mesh.folders:
        mesh.start(folder.name)
    while min(mesh.steps().values()) < 1:
        time.sleep(POLL_S)
    end_s = time.monotonic() + 60 * minutes
    gained, seconds = dict.fromkeys(mesh.steps(), 0), dict.fromkeys(mesh.steps(), 0.0)
    before, before_s, at_rest = mesh.steps(), time.monotonic(), mesh.steps()
    while (now := time.monotonic()) < end_s:
        resting = now > end_s - REST_S
        if churn is not None:
            churn.act(resting)
        at_rest = at_rest if resting else mesh.steps()
        time.sleep(POLL_S)
        after, now = mesh.steps(), time.monotonic()
        for name in after:
            if mesh.faulty_until.get(name, 0.0) < before_s:
                gained[name] += after[name] - before[name]
                seconds[name] += now - before_s
        before, before_s = after, now
    mesh.lost += [
        f"{name} stood still at {step}" for name, step in at_rest.items() if before[name] <= step
    ]
    ended = {
        name: process.exitcode
        for name, process in mesh.processes.items()
        if process.exitcode is not None
    }
    mesh.lost += [f"{name} ended with {code}" for name, code in ended.items()]
    rates = {name: gained[name] / seconds[name] for name in gained if seconds[name] > 10}
    return Result(rates, float(np.nanmean([_accuracy(folder) for folder in mesh.folders])))


def _accuracy(folder: Path) -> float:
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    scores = [json.loads(line)["score"] for line in lines if line.endswith("}")]
    return float(next((score for score in reversed(scores) if score == score), math.nan))


def main() -> None:
    """Train twice and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--devices", type=int, default=24)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--every", type=float, default=10.0, help="seconds from fault to fault")
    parser.add_argument("--faults", nargs="*", choices=sorted(FAULTS), default=sorted(FAULTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--keep", type=Path, help="a new folder for the devices' files, which stay there"
    )
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    results = []
    for disturbed in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            parent = options.keep or Path(folder)
            mesh = made_mesh(parent / ("disturbed" if disturbed else "calm"), options.devices)
            churn = Churn(mesh, options.every, options.seed, options.faults) if disturbed else None
            try:
                results.append(watch(mesh, options.minutes, churn))
            finally:
                mesh.close()
    calm, rough = results
    shares = [rough.rates[name] / calm.rates[name] for name in rough.rates]
    assert churn is not None
    print("faults: " + ", ".join(f"{count} {kind}" for kind, count in churn.counts.items()))
    print(
        f"steps of devices without a fault: {np.mean(shares):.1%} of the undisturbed, "
        f"least {min(shares):.1%}"
    )
    print(f"accuracy: {rough.accuracy:.1%}, undisturbed {calm.accuracy:.1%}")
    print("lost: " + ("; ".join(mesh.lost) or "nothing"))
    sys.exit(1 if mesh.lost else 0)


if __name__ == "__main__":
    main()
