"""A mesh of forked devices, and what can be done to it: for `churn.py`."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import random
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ssdfl.errors import InputError
from ssdfl.graph import load_network, make_network
from ssdfl.mesh.changing import Mesh as Members
from ssdfl.mesh.changing import add_devices, remove_devices
from ssdfl.mesh.folder import init_mesh
from ssdfl.mesh.hosts import Host
from ssdfl.records import load_experiment

SETTINGS = (
    "data.name=digits",
    "data.labels_per_device=5",
    "model.name=mlp",
    "cycles=2000",
    "evaluate.every=5",
)
RECOVERY_S = 8.0
"""After a fault, until its device counts among those without one."""
STAYS_S = 30.0
"""A newcomer, until the change that removes it is signed."""
TRACE = "trace.txt"
PRELOADED = [
    "ssdfl.mesh.device",
    "ssdfl.mesh.changing",
    "grpc.aio",
    "torch.func",
    "sklearn.datasets",
    "networkx",
    "rich.progress",
]
"""Imported once for all processes: on a host of its own, a device's start costs no other's time."""


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
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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


def run_forked(folder: Path, clock_s: float, pace_s: float) -> None:
    """In a forked process: the device of a folder, whose clock may be wrong."""
    output = os.open(folder / "output.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for place in (1, 2):
        os.dup2(output, place)
    _set_clock(clock_s)
    _trace(os.open(folder / TRACE, os.O_WRONLY | os.O_APPEND | os.O_CREAT), pace_s)
    from ssdfl.mesh.device import run_device

    try:
        sys.exit(0 if run_device(folder) else 130)
    except InputError as error:
        print(error, flush=True)
        sys.exit(error.exit_code)


def _set_clock(clock_s: float) -> None:
    """Let Python's clock be wrong; gRPC's own stays right, as its core would notice."""
    import grpc._channel

    right = time.time
    grpc._channel.time = SimpleNamespace(**{**vars(time), "time": right})
    time.time = lambda: right() + clock_s


def _trace(file: int, pace_s: float) -> None:
    """Write down when steps and editions of the mesh begin; let training take longer."""
    from ssdfl.mesh import device, device_engine

    engine_module: Any = device_engine
    train, advance = engine_module.plain_move, engine_module.DeviceEngine.advance
    enter = device.RunningDevice._enter

    def note(kind: str, number: int) -> None:
        with suppress(OSError):
            os.write(file, f"{time.monotonic():.4f} {kind} {number}\n".encode())

    def paced(*arguments: Any) -> Any:
        time.sleep(pace_s)
        return train(*arguments)

    def noted(engine: Any, state: Any, step: Any, t: int) -> Any:
        advanced = advance(engine, state, step, t)
        note("step", t)
        return advanced

    def entered(self: Any, edition: Any) -> Any:
        note("edition", edition.version)
        return enter(self, edition)

    engine_module.plain_move, engine_module.DeviceEngine.advance = paced, noted
    running: Any = device.RunningDevice
    running._enter = entered


@dataclass
class Fault:
    """One that was begun; `name` has it, or is an end of a link that has."""

    kind: str
    name: str
    other: str
    begin_s: float
    end_s: float


@dataclass
class Mesh:
    """Devices as processes, and the cables between them.

    Attributes:
        cables: by the two ends' names, the one that dials first.
        pace_s: what computing a training step takes at least.
        faults: those so far.
        lost: what must not happen.
    """

    folders: list[Path]
    cables: dict[tuple[str, str], Cable]
    pace_s: float
    processes: dict[str, Any] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """With the devices' folders."""
        return self.folders[0].parent

    def start(self, name: str, clock_s: float = 0.0) -> None:
        """Start a device."""
        self.forked(name, run_forked, self.folder / name, clock_s, self.pace_s)

    def forked(self, name: str, target: Callable[..., None], *arguments: object) -> None:
        """Start a process; its name says what it is."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        process = context.Process(target=target, args=arguments, daemon=True)
        process.start()
        self.processes[name] = process

    def end(self, name: str) -> None:
        """End a device as a power cut does."""
        self.processes[name].kill()
        self.processes[name].join()

    def is_faulty(self, name: str, now: float) -> bool:
        """Whether a device has a fault of its own, or had one a moment ago."""
        own = [one for one in self.faults if one.name == name and one.kind not in OF_OTHERS]
        return any(one.begin_s <= now < one.end_s + RECOVERY_S for one in own)

    def close(self) -> None:
        """End all devices."""
        for name in self.processes:
            with suppress(ProcessLookupError):
                os.kill(self.processes[name].pid, signal.SIGCONT)
            self.end(name)


def free_address() -> str:
    """One that no other program of this machine is likely to take: not 127.0.0.1."""
    with socket.create_server((f"127.{os.getpid() % 250 + 1}.1.1", 0)) as listener:
        return "{}:{}".format(*listener.getsockname())


def made_mesh(folder: Path, devices: int, pace_s: float, adaptive: bool) -> Mesh:
    """A mesh whose links run through cables."""
    spec = f"ws:n={devices},k=4,p=0.2,seed=1" if devices > 5 else f"ring:n={devices}"
    experiment = load_experiment(
        None, [*SETTINGS, f"network.spec={spec}", f"clusters.number={min(4, devices // 2)}"]
    )
    names = load_network(spec).names
    hosts = [Host(name, free_address()) for name in names]
    folders = init_mesh(
        experiment, folder, method="ssdfl", seed=0, hosts=hosts, patience_s=20, adaptive=adaptive
    )
    cables = {}
    for one in folders:
        path = one / "device.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        for name, address in config["neighbours"].items():
            cables[one.name, name] = Cable(address)
            config["neighbours"][name] = cables[one.name, name].address
        path.write_text(json.dumps(config), encoding="utf-8")
    return Mesh(folders, cables, pace_s)


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


def newcomer(mesh: Mesh, name: str, other: str) -> Callable[[], None]:
    """A device joins, with links to two others, and is removed for good some time later."""
    new = f"new{len(mesh.processes)}"
    mesh.forked(new, _add_and_run, mesh.folder, new, name, other, mesh.pace_s)
    return partial(mesh.forked, f"removal of {new}", _remove, mesh.folder, new)


def _add_and_run(folder: Path, new: str, name: str, other: str, pace_s: float) -> None:
    """As `ssdfl mesh add` and `ssdfl device`; in a process that cables do not wait for."""
    links = make_network(3, [(0, 1), (0, 2)], names=[new, name, other])
    add_devices(Members.of_folder(folder), links, hosts=[Host(new, free_address())])
    run_forked(folder / new, 0.0, pace_s)


def _remove(folder: Path, name: str) -> None:
    remove_devices(Members.of_folder(folder), [name])


FAULTS = {
    one.__name__: one for one in (kill, freeze, cut, one_way, full_disk, wrong_clock, newcomer)
}
OF_OTHERS = {"cut", "one_way", "newcomer"}
"""Faults that are not of the device that is named first."""


class Churn:
    """Begins a fault every few seconds, each kind in turn, and ends each in time."""

    def __init__(self, mesh: Mesh, every_s: float, seed: int, kinds: list[str]) -> None:
        self.mesh, self._every_s, self._random = mesh, every_s, random.Random(seed)
        self._kinds = self._in_turn(kinds)
        self._next_s = math.inf
        self._ends: list[tuple[float, Callable[[], None]]] = []

    def _in_turn(self, kinds: list[str]) -> Iterator[str]:
        """All kinds, shuffled, again and again."""
        while True:
            yield from self._random.sample(kinds, len(kinds))

    def act(self, resting: bool) -> None:
        """Begin and end what is due; while resting, only end."""
        now = time.monotonic()
        self._next_s = min(self._next_s, now + self._every_s)
        for due in [one for one in self._ends if one[0] <= now or resting]:
            self._ends.remove(due)
            with suppress(ProcessLookupError):  # a device that has ended is found at the end
                due[1]()
        if now >= self._next_s and not resting:
            self._next_s += self._every_s
            self._begin(now)

    def _begin(self, now: float) -> None:
        kind = next(self._kinds)
        links = [ends for ends in sorted(self.mesh.cables) if not self._is_faulty(ends, now)]
        name, other = self._random.choice(links)
        duration_s = self._random.uniform(1.0, self._every_s) + STAYS_S * (kind == "newcomer")
        self._ends.append((now + duration_s, FAULTS[kind](self.mesh, name, other)))
        self.mesh.faults.append(Fault(kind, name, other, now, now + duration_s))
        clock = time.strftime("%H:%M:%S")
        print(f"{clock} {kind} of {name} ({other}) for {duration_s:.1f} s", flush=True)

    def _is_faulty(self, ends: tuple[str, str], now: float) -> bool:
        return any(self.mesh.is_faulty(name, now) for name in ends)
