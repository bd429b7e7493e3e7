"""Schedules of faults, drawn from a number: what breaks, when, and for how long."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from mesh.simulated.lies import LIES, Liar
from mesh.simulated.network import Link
from mesh.simulated.world import Settings, World, toy_job

SPECS = ("path:n=3", "path:n=4", "star:n=4", "ring:n=4", "ring:n=5")
WITH_LIARS = ("complete:n=4",)
"""Every honest device has two honest neighbours there, so that a liar is in the minority."""
METHODS = ("ssdfl", "sdfl", "ssdfl+atc")
LATEST_S, LONGEST_S = 4.0, 4.0


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        kind: one of `FAULTS`.
        device: the device, or the end of the link that sends.
        other: the end that receives, for faults of links.
    """

    kind: str
    device: int
    other: int
    start_s: float
    duration_s: float

    @property
    def end_s(self) -> float:
        """When it is over."""
        return self.start_s + self.duration_s


@dataclass(frozen=True)
class Plan:
    """All that a number determines, and whether devices go on at once without silent neighbours."""

    number: int
    method: str
    spec: str
    patience_s: float
    compute_s: tuple[float, ...]
    slowest_message_s: float
    starts_s: tuple[float, ...]
    faults: tuple[Fault, ...]
    lies: tuple[str, ...]
    adaptive: bool = False

    @property
    def quiet_s(self) -> float:
        """When all faults are over."""
        return max((fault.end_s for fault in self.faults), default=0.0)


def draw(number: int) -> Plan:
    """The schedule of a number."""
    source = random.Random(number)
    lying = source.random() < 0.25
    spec = source.choice(WITH_LIARS if lying else SPECS)
    method = source.choice(METHODS)
    network = toy_job(method, spec).network
    devices = range(network.num_devices)
    links = network.links.tolist()
    return Plan(
        number,
        method,
        spec,
        patience_s=source.choice((2.0, 5.0, 20.0)),
        compute_s=tuple(source.uniform(0.3, 1.2) for _ in devices),
        slowest_message_s=source.choice((0.01, 0.05, 0.3)),
        starts_s=tuple(source.uniform(0.0, 2.0) for _ in devices),
        faults=tuple(_draw_fault(source, links) for _ in range(source.choice((0, 1, 1, 2, 3, 4)))),
        lies=tuple(source.sample(sorted(LIES), 2)) if lying else (),
    )


def _draw_fault(source: random.Random, links: list[list[int]]) -> Fault:
    device, other = source.sample(source.choice(links), 2)
    start_s, duration_s = source.uniform(0.0, LATEST_S), source.uniform(0.2, LONGEST_S)
    return Fault(source.choice(sorted(FAULTS)), device, other, start_s, duration_s)


def make_world(plan: Plan) -> World:
    """The world of a schedule, with all that will happen in it."""
    job = toy_job(plan.method, plan.spec)
    settings = [
        Settings(plan.patience_s, compute_s, adaptive=plan.adaptive) for compute_s in plan.compute_s
    ]
    liars = frozenset({0} if plan.lies else ())
    world = World(job, plan.number, settings, liars, plan.slowest_message_s, plan.number % 8 == 0)
    for device in liars:
        settings[device].liar = Liar(plan.lies, plan.number, job.last_step)
    for a, b in job.network.links.tolist():
        for ends in ((a, b), (b, a)):
            world.network.links[_names(world, *ends)] = Link(most_s=plan.slowest_message_s)
    for device, start_s in enumerate(plan.starts_s):
        world.scheduler.after(start_s, partial(world.start, device))
    for fault in plan.faults:
        world.scheduler.after(fault.start_s, partial(FAULTS[fault.kind], world, fault))
    return world


def _names(world: World, *devices: int) -> tuple[str, str]:
    a, b = devices
    return world.names[a], world.names[b]


def _on_links(
    world: World, fault: Fault, ends: Iterator[tuple[int, int]], **changes: float
) -> None:
    """Change some directions of links for a while."""
    for pair in ends:
        key = _names(world, *pair)
        before = world.network.links[key]
        world.network.links[key] = replace(before, **changes)
        usual = Link(most_s=world.slowest_message_s)
        restored = {name: getattr(usual, name) for name in changes}
        world.scheduler.after(fault.duration_s, partial(_restore, world, key, restored))


def _restore(world: World, key: tuple[str, str], values: dict[str, float]) -> None:
    world.network.links[key] = replace(world.network.links[key], **values)


def _one_way(world: World, fault: Fault) -> None:
    _on_links(world, fault, iter([(fault.device, fault.other)]), is_cut=True)


def _both_ways(world: World, fault: Fault) -> None:
    _on_links(world, fault, _there_and_back(fault), is_cut=True)


def _alone(world: World, fault: Fault) -> None:
    """A device is cut off from all."""
    others = world.job.network.neighbours(fault.device).tolist()
    ends = [(fault.device, j) for j in others] + [(j, fault.device) for j in others]
    _on_links(world, fault, iter(ends), is_cut=True)


def _there_and_back(fault: Fault) -> Iterator[tuple[int, int]]:
    return iter([(fault.device, fault.other), (fault.other, fault.device)])


def _loss(world: World, fault: Fault) -> None:
    _on_links(world, fault, _there_and_back(fault), lost=0.3)


def _delay(world: World, fault: Fault) -> None:
    _on_links(world, fault, _there_and_back(fault), least_s=0.2, most_s=2.5)


def _duplicates(world: World, fault: Fault) -> None:
    _on_links(world, fault, _there_and_back(fault), twice=0.5)


def _crash(world: World, fault: Fault) -> None:
    """A process ends without notice, and starts again."""
    if world.finished.get(fault.device) is None and world.hosts[fault.device] is not None:
        world.kill(fault.device)
        world.scheduler.after(fault.duration_s, partial(_restart, world, fault.device))


def _restart(world: World, device: int) -> None:
    host = world.hosts[device]
    if host is None or host.dead:
        world.start(device)


def _freeze(world: World, fault: Fault) -> None:
    """A process is stopped for a while; its clock is not."""
    host = world.hosts[fault.device]
    if host is not None:
        host.frozen_until = max(host.frozen_until, world.scheduler.now + fault.duration_s)


def _slow(world: World, fault: Fault) -> None:
    """A device computes ten times as long."""
    settings = world.settings[fault.device]
    settings.slowness = 10.0
    world.scheduler.after(fault.duration_s, partial(_quicken, settings))


def _quicken(settings: Settings) -> None:
    settings.slowness = 1.0


FAULTS: dict[str, Callable[[World, Fault], None]] = {
    "one way": _one_way,
    "cut": _both_ways,
    "cut off": _alone,
    "loss": _loss,
    "delay": _delay,
    "duplicates": _duplicates,
    "crash": _crash,
    "freeze": _freeze,
    "slow": _slow,
}
