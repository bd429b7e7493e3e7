"""A mesh of simulated devices, each running the real code, and a log of all that they mix."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import torch

from helpers import tiny_job
from mesh.simulated.lies import Liar
from mesh.simulated.network import SimulatedNetwork, SimulatedTransport
from mesh.simulated.scheduler import Host, Scheduler, SimulatedRuntime
from ssdfl.clusters import Device, Plan, spectral_bisection
from ssdfl.engine import Job, State
from ssdfl.engine.moves import PlainMove
from ssdfl.errors import NotYetError
from ssdfl.graph import load_network
from ssdfl.learning import DeviceConstants
from ssdfl.mesh.agreement import ABSENT, FACTS_DIGEST
from ssdfl.mesh.device import SAVE_S, RunningDevice
from ssdfl.mesh.device_engine import DeviceEngine, device_steps, initial_device_state
from ssdfl.mesh.editions import Edition
from ssdfl.mesh.evidence import Evidence
from ssdfl.mesh.first_plan import GATHER_S
from ssdfl.mesh.flood import Flood, answer_gossip
from ssdfl.mesh.mesh_pb2 import Facts
from ssdfl.mesh.node import Node
from ssdfl.mesh.signing import Signer
from ssdfl.mesh.transport import Credentials
from ssdfl.methods import ScheduleInputs, find_method

CYCLES, STEPS_PER_CYCLE = 6, 2
LOCAL_STEPS = 4
RESTART_S = 2.0


@cache
def toy_job(method: str, spec: str) -> Job:
    """A job of few steps, whose training is replaced; made once."""
    network = load_network(spec)
    inputs = ScheduleInputs(network, spectral_bisection(network, 2), tau_a=1, tau_r=1, seed=3)
    schedule = find_method(method).schedule(inputs)
    return tiny_job(
        method,
        spec,
        optimizers="sgd",
        cycles=CYCLES,
        steps_per_cycle=STEPS_PER_CYCLE,
        schedule=schedule,
    )


def toy_move(device: int, step: int, theta: torch.Tensor) -> torch.Tensor:
    """How far a device trains in a step: never the same."""
    return torch.full_like(theta, 0.01 * (1 + device) + 0.001 * step)


@dataclass
class Taken:
    """One step that a device has taken.

    Attributes:
        at_s: when it was done.
        life: which of its processes took it.
        own: its message.
        weights: of the devices that it should hear.
        heard: what it heard.
    """

    device: int
    step: int
    at_s: float
    life: int
    before: torch.Tensor
    after: torch.Tensor
    move: torch.Tensor
    own: torch.Tensor
    weights: dict[int, float]
    heard: dict[int, torch.Tensor]


@dataclass
class Disk:
    """What a device keeps when its process ends."""

    own_fact: Facts | None = None
    facts: Facts | None = None
    plan: Plan | None = None
    state: State | None = None


@dataclass
class Settings:
    """Of one device.

    Attributes:
        slowness: what its computing takes longer than usual.
        liar: changes its answers, if it is one.
        adaptive: whether it continues at once without silent neighbours.
    """

    patience_s: float = 5.0
    compute_s: float = 0.1
    slowness: float = 1.0
    liar: Liar | None = None
    adaptive: bool = False


@dataclass
class World:
    """All devices and their network.

    Attributes:
        liars: those that do not keep to the protocol; the others are honest.
        slowest_message_s: how long a message may take when nothing is wrong.
        to_the_end: whether it lasts until honest devices end, or until they have taken all steps.
        finished: who has done all steps, and when.
        published: the messages that devices have offered, by device and step.
    """

    job: Job
    seed: int
    settings: list[Settings]
    liars: frozenset[int] = frozenset()
    slowest_message_s: float = 0.01
    to_the_end: bool = True
    disks: list[Disk] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    finished: dict[int, float] = field(default_factory=dict)
    published: dict[tuple[int, int], set[bytes]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        count = self.job.network.num_devices
        self.names = tuple("abcdefghij"[:count])
        self.scheduler = Scheduler(self.seed)
        self.network = SimulatedNetwork(self.scheduler, self.seed)
        self.hosts: list[Host | None] = [None] * count
        self.devices: list[SimulatedDevice | None] = [None] * count
        self.lives = [0] * count
        self.disks = [Disk() for _ in range(count)]

    @property
    def honest(self) -> list[int]:
        """The devices that keep to the protocol."""
        return [i for i in range(len(self.names)) if i not in self.liars]

    def start(self, device: int) -> None:
        """Start a device's process."""
        host = self.hosts[device] = Host(self.names[device])
        self.lives[device] += 1
        running = self.devices[device] = SimulatedDevice(self, device, host)
        self.scheduler.start(running.live, host, f"{host.name}: run")

    def kill(self, device: int) -> None:
        """End a device's process as a power cut does."""
        host = self.hosts[device]
        if host is not None and not host.dead:
            self.scheduler.kill(host)

    def trained(self, device: int) -> None:
        """A device has taken all steps; now it waits for its neighbours."""
        if not self.to_the_end:
            self.ended(device)

    def ended(self, device: int) -> None:
        """A device's process has ended by itself."""
        self.finished[device] = self.scheduler.now
        if all(i in self.finished for i in self.honest):
            self.scheduler.finish()

    def give_up(self, device: int) -> None:
        """A device ends with the code that allows a restart, and is started again."""
        self.scheduler.after(RESTART_S, partial(self.restart, device))

    def restart(self, device: int) -> None:
        """Start a device's process anew."""
        self.kill(device)
        self.start(device)

    def close(self) -> None:
        """End all processes."""
        self.scheduler.close([host for host in self.hosts if host is not None])

    def step_of(self, device: int) -> int:
        """The step at which a device is."""
        running = self.devices[device]
        return 0 if running is None else running.node._step


@dataclass
class PlanInMemory:
    """What `FirstPlan` does, without a folder."""

    node: Node
    signer: Signer
    disk: Disk

    def known(self) -> Plan | None:
        """The plan that was formed before."""
        if self.disk.facts is not None:
            self.node.answers["gossip"] = partial(answer_gossip, self.disk.facts)
        return self.disk.plan

    def formed(self) -> Plan:
        """A plan from what all devices tell."""
        own = Device(np.array([1.0 + self.node.index, 2.0]), 0.1 * self.node.index)
        flood = Flood(
            self.node, own, self.signer, DeviceConstants(1.0, 1.0, 1.0), self.disk.own_fact
        )
        self.disk.own_fact = flood.facts()
        known = flood.gather(GATHER_S)
        self.disk.facts = flood.facts()
        formed_from = {FACTS_DIGEST: flood.book.digest, ABSENT: json.dumps(known.absent)}
        self.disk.plan = Plan((tuple(range(len(self.node.names))),), "toy", settings=formed_from)
        return self.disk.plan

    def forget(self) -> None:
        """Form it again."""
        self.node.plan_digest = ""
        self.disk.plan = self.disk.facts = None


class SteadyCourse:
    """The course of a mesh whose members do not change."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def watch(self) -> None:
        """There are no changes to look for."""

    def close(self) -> None:
        """Nothing was looked for."""

    def begin(self, plan: Plan) -> None:
        """The only edition is that of the first plan."""
        digest = plan.settings[FACTS_DIGEST]
        network = replace(self.node.network, names=self.node.names)
        self.node.fitting_digests.clear()
        self.node.fit(digest)
        self.edition = SimpleNamespace(
            version=0, plan=plan, network=network, digest=digest, has=lambda name: True
        )

    def at(self, step: int) -> Edition:
        """The only one."""
        return self.edition

    def following(self, edition: Edition, step: int) -> None:
        """None follows."""


class SimulatedDevice(RunningDevice):
    """The real code of a device, with its folder in memory and training replaced."""

    def __init__(self, world: World, index: int, host: Host) -> None:
        self.world, self.index, self.life = world, index, world.lives[index]
        self.settings, self.disk = world.settings[index], world.disks[index]
        job, names = world.job, world.names
        self.folder = self.journal = None
        self.config = SimpleNamespace(
            name=names[index], names=names, index=index, patience_s=self.settings.patience_s
        )
        self.config.joins = 0
        self.member = self._base = SimpleNamespace(
            has_own_data=False, job=lambda plan: job, network=job.network
        )
        self.signer = Signer(credentials_of(names[index]))
        linked = tuple(names[j] for j in job.network.neighbours(index))
        self.transport = SimulatedTransport(world.network, host, linked, self.settings.liar)
        self.node = Node(
            job.network,
            index,
            names,
            self.transport,
            self.settings.patience_s,
            evidence=Evidence(names[index], names, self.signer),
            runtime=SimulatedRuntime(world.scheduler, host),
            adaptive=self.settings.adaptive,
        )
        self.first_plan = PlanInMemory(self.node, self.signer, self.disk)
        self.course = SteadyCourse(self.node)

    def live(self) -> None:
        """Run until the end, as a process does."""
        try:
            if self.run():
                self.world.ended(self.index)
        except NotYetError:
            self.world.give_up(self.index)

    def _announce(self) -> None:
        if self.disk.state is not None:
            self.node.stay_out(self.disk.state.step, self.world.job.last_step)

    def _edition_at_entry(self) -> Edition:
        return self.course.at(0)

    def _state(self, job: Job, edition: Edition) -> State:
        return self.disk.state or initial_device_state(job, self.index)

    def _has_agreed(self) -> bool:
        return self.disk.state is not None

    def _train(self, job: Job, state: State, edition: Edition) -> State:
        runtime = self.node.runtime
        self.disk.state, saved_s = state, runtime.now()
        for after, _ in device_steps(job, self.node, state):
            state = after
            if runtime.now() - saved_s > SAVE_S:
                self.disk.state, saved_s = state, runtime.now()
        self.disk.state = state
        if state.step >= job.last_step:
            self.world.trained(self.index)
        return state


class ToyEngine(DeviceEngine):
    """The engine of a device, with training that only takes time, and a log."""

    def __init__(self, job: Job, node: Node) -> None:
        super().__init__(job, node)
        self.world = current_world()
        self.device = self.world.devices[node.index]

    def _move(self, state, memory, of_rule, at):
        if at.trains:
            settings = self.device.settings
            for _ in range(LOCAL_STEPS):
                self.node.runtime.sleep(settings.compute_s * settings.slowness / LOCAL_STEPS)
            self.moved = PlainMove(toy_move(self.node.index, at.t, state.X), at.rate, 1)
            return self.moved
        self.moved = None
        return super()._move(state, memory, of_rule, at)

    def _send(self, at, theta, move, kept, weights):
        message, kept, pulls = super()._send(at, theta, move, kept, weights)
        self.world.published[self.node.index, at.t].add(message.rows[0].numpy().tobytes())
        return message, kept, pulls

    def _heard(self, own_weight, weights, pulls, own):
        heard = super()._heard(own_weight, weights, pulls, own)
        rows = {j: pull.result() for j, pull in pulls.items()}
        self.last = (
            own.rows[0],
            dict(weights),
            {j: row for j, row in rows.items() if row is not None},
        )
        return heard

    def advance(self, state, step, t):
        """Take a step, and write down how it went."""
        advanced = super().advance(state, step, t)
        own, weights, heard = self.last
        move = torch.zeros_like(state.X) if self.moved is None else self.moved.value()
        now, life = self.world.scheduler.now, self.device.life
        before, after = state.X[0], advanced[0][0]
        taken = Taken(self.node.index, t, now, life, before, after, move[0], own, weights, heard)
        if not self.node.stopped:
            self.world.taken.append(taken)
        return advanced


class ToyLoop:
    """Takes steps without costs and records."""

    def __init__(self, job: Job, engine: ToyEngine) -> None:
        self.job, self.engine = job, engine

    def step(self, state: State) -> State:
        """Take the next step."""
        step = self.job.step(state.step)
        X, memory, _, sent, *_ = self.engine.advance(state, step, state.step)
        total = state.transmissions + sent
        return replace(
            state, step=state.step + 1, X=X, memory=memory, trained=step.train, transmissions=total
        )

    def record(self, state: State) -> None:
        """Nothing to record."""


def credentials_of(name: str) -> Credentials:
    """A key that only the device has, as far as liars here respect that."""
    return Credentials(f"key of {name}".encode(), name.encode(), b"authority")


def sign(key: bytes, text: bytes) -> bytes:
    """A quick stand-in for a signature."""
    return hashlib.sha256(key + text).digest()


def signed(key: bytes, text: bytes, signature: bytes) -> bool:
    """Whether it is the signature of a key."""
    return sign(key, text) == signature


def certified_key(certificate: bytes, authority: bytes) -> tuple[str, bytes] | None:
    """Whose certificate it is, and the key to check signatures with."""
    name = certificate.decode("utf-8", "replace")
    return (name, credentials_of(name).key) if len(name) == 1 else None


_WORLDS: list[World] = []


def current_world() -> World:
    """The world that is simulated now."""
    return _WORLDS[-1]


@contextmanager
def simulated(world: World) -> Iterator[World]:
    """Put the stand-ins in their places; end all processes afterwards."""
    stand_ins = {
        "ssdfl.mesh.device_engine.DeviceEngine": ToyEngine,
        "ssdfl.mesh.device_engine.Loop": ToyLoop,
        "ssdfl.mesh.signing.sign": sign,
        "ssdfl.mesh.signing.signed": signed,
        "ssdfl.mesh.signing.certified_key": certified_key,
    }
    with ExitStack() as stack:
        for place, stand_in in stand_ins.items():
            stack.enter_context(patch(place, stand_in))
        _WORLDS.append(world)
        try:
            yield world
        finally:
            world.close()
            _WORLDS.pop()
