"""The critical path of a cycle: the messages that the last device had to wait for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.graph.costs import CYCLES, Clock, Messages
from ssdfl.graph.mixing import MixingMatrix
from ssdfl.graph.network import Network

_SPEED_UP = 2.0
_ROUNDS = 32
_LEAST_TRIALS = 6
_TRIED_LINKS = 1_000_000
_NOTICEABLE = 1e-3


@dataclass(frozen=True, eq=False)
class Cycle:
    """A cycle to be timed: the links of each step, and the cost of computing.

    Attributes:
        A: mixing of all devices; only the positions of its weights matter.
        A_intra: mixing while devices train.
        compute_s: (N,) seconds of a training step.
        sends_early: messages leave before devices compute.
    """

    A: MixingMatrix
    A_intra: MixingMatrix
    tau_a: int
    tau_r: int
    compute_s: FloatArray
    sends_early: bool = True

    def time_s(self, network: Network, message_bytes: int) -> float:
        """Seconds of the cycle by the simulated clock."""
        clock = Clock(network, message_bytes, sends_early=self.sends_early)
        return clock.cycle_cost(self.A, self.A_intra, self.tau_a, self.tau_r, self.compute_s).time_s


Kind = Literal["link", "uplink", "downlink"]


@dataclass(frozen=True, order=True)
class Part:
    """A part that can be upgraded: a link by its number, or the uplink or downlink of a device."""

    kind: Kind
    number: int


@dataclass(frozen=True)
class Upgrade:
    """Parts of a network to make twice as fast, and the effect on a cycle.

    Attributes:
        parts: the parts; several if none of them helps alone.
        cycle_s: seconds of a cycle now.
        upgraded_s: seconds of a cycle with these parts twice as fast, by the simulated clock.
    """

    parts: tuple[Part, ...]
    cycle_s: float
    upgraded_s: float

    @property
    def saved_s(self) -> float:
        """The seconds saved per cycle."""
        return self.cycle_s - self.upgraded_s


def critical_parts(network: Network, message_bytes: int, cycle: Cycle) -> list[Part]:
    """The parts that messages on the critical path wait for, the longest wait first.

    A message waits for its link's latency, and for the slowest of its link, its sender's uplink and
    its receiver's downlink.
    """
    clock = Clock(network, message_bytes)
    inside, across = clock.messages(cycle.A_intra), clock.messages(cycle.A)
    idle = np.zeros_like(cycle.compute_s)
    one = [(inside, cycle.compute_s)] * cycle.tau_a + [(across, idle)] * cycle.tau_r
    steps = one * CYCLES
    ready = [np.zeros(network.num_devices)]
    for messages, compute_s in steps:
        ready.append(messages.deliver(ready[-1], compute_s, cycle.sends_early))
    waits: dict[Part, float] = {}
    device = int(np.argmax(ready[-1]))
    for (messages, compute_s), ready_s in zip(reversed(steps), reversed(ready[:-1]), strict=True):
        done_s = ready_s + compute_s
        last = _last_message(messages, ready_s if cycle.sends_early else done_s, done_s, device)
        if last is not None:
            for part, wait_s in _waits(network, messages, last).items():
                waits[part] = waits.get(part, 0.0) + wait_s
            device = int(messages.sender[last])
    return sorted(waits, key=lambda part: (-waits[part], part))


def _last_message(
    messages: Messages, left_s: FloatArray, done_s: FloatArray, device: int
) -> int | None:
    """The last message that a device waited for in a step; None if it waited for its own computing.

    Args:
        left_s: (N,) when each device's messages left.
        done_s: (N,) when each device had computed.
    """
    received = np.flatnonzero(messages.receiver == device)
    if not len(received):
        return None
    arrival_s = left_s[messages.sender[received]] + messages.travel_s[received]
    last = int(np.argmax(arrival_s))
    return int(received[last]) if arrival_s[last] > done_s[device] else None


def _waits(network: Network, messages: Messages, message: int) -> dict[Part, float]:
    """Seconds that a message waits for its link and, if they are slower, for its ends."""
    sender, receiver = int(messages.sender[message]), int(messages.receiver[message])
    i, j = sorted((sender, receiver))
    found = np.flatnonzero((network.links[:, 0] == i) & (network.links[:, 1] == j))
    if not len(found):
        return {}
    link, travel_s = Part("link", int(found[0])), float(messages.travel_s[message])
    transfer_s = travel_s - float(network.latency_s[link.number])
    slow = _slow_ends(messages, sender, receiver, transfer_s)
    return {link: travel_s - (transfer_s if slow else 0.0), **slow}


def _slow_ends(
    messages: Messages, sender: int, receiver: int, transfer_s: float
) -> dict[Part, float]:
    """The uplink and downlink of a message that determine its transfer time."""
    if messages.ports is None:
        return {}
    busy_s = {
        Part("uplink", sender): float(messages.ports.uplink_s[sender]),
        Part("downlink", receiver): float(messages.ports.downlink_s[receiver]),
    }
    return {part: wait_s for part, wait_s in busy_s.items() if math.isclose(wait_s, transfer_s)}


def faster(network: Network, parts: Sequence[Part], factor: float = _SPEED_UP) -> Network:
    """The network with parts ``factor`` times as fast: latency / factor, bandwidth × factor."""
    scale = {"link": np.ones(network.num_links)}
    scale |= {kind: np.ones(network.num_devices) for kind in ("uplink", "downlink")}
    for part in parts:
        scale[part.kind][part.number] = factor
    return replace(
        network,
        latency_s=network.latency_s / scale["link"],
        bandwidth_Bps=network.bandwidth_Bps * scale["link"],
        uplink_Bps=network.uplink_Bps * scale["uplink"],
        downlink_Bps=network.downlink_Bps * scale["downlink"],
    )


def all_parts(network: Network) -> list[Part]:
    """All links, and all uplinks and downlinks that are limited."""
    links = [Part("link", number) for number in range(network.num_links)]
    return (
        links + _limited("uplink", network.uplink_Bps) + _limited("downlink", network.downlink_Bps)
    )


def _limited(kind: Kind, limits_Bps: FloatArray) -> list[Part]:
    return [Part(kind, number) for number in np.flatnonzero(np.isfinite(limits_Bps)).tolist()]


def best_upgrade(network: Network, message_bytes: int, cycle: Cycle) -> Upgrade | None:
    """The part of the critical path whose upgrade saves most seconds.

    Each part is tried on the simulated clock. If other paths are equally long, no single part
    helps. Then parts of the critical paths are upgraded together, until a cycle is noticeably
    shorter or too many have been tried. On a large network fewer are tried.

    Returns:
        None if even all parts together save nothing. An upgrade that saves nothing means that too
        many paths are equally long.
    """
    now_s = cycle.time_s(network, message_bytes)
    trials = max(_LEAST_TRIALS, min(_ROUNDS, _TRIED_LINKS // max(network.num_links, 1)))

    def tried(parts: tuple[Part, ...]) -> Upgrade:
        return Upgrade(parts, now_s, cycle.time_s(faster(network, parts), message_bytes))

    if not tried(tuple(all_parts(network))).saved_s > _NOTICEABLE * now_s:
        return None
    critical = critical_parts(network, message_bytes, cycle)
    best = max((tried((part,)) for part in critical[:trials]), key=lambda one: one.saved_s)
    while best.saved_s <= _NOTICEABLE * now_s and len(best.parts) < trials:
        path = critical_parts(faster(network, best.parts), message_bytes, cycle)
        fresh = next((part for part in path if part not in best.parts), None)
        if fresh is None:
            break
        best = tried((*best.parts, fresh))
    return best
