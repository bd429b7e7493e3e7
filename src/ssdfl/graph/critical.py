"""The critical path of a cycle: which messages the last device had to wait for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.graph.costs import CYCLES, Clock, Messages
from ssdfl.graph.mixing import MixingMatrix
from ssdfl.graph.network import Network

_SPEED_UP = 2.0
_ROUNDS = 32
_LEAST_TRIALS = 6
_TRIED_LINKS = 1_000_000
_NOTICEABLE = 1e-3


@dataclass(frozen=True)
class Cycle:
    """A cycle to be timed: which links are used when, and what computing costs.

    Attributes:
        A: mixing of all devices, whose places matter and not its weights.
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
        """Seconds of the cycle by the clock."""
        clock = Clock(network, message_bytes, sends_early=self.sends_early)
        return clock.cycle_cost(self.A, self.A_intra, self.tau_a, self.tau_r, self.compute_s).time_s


@dataclass(frozen=True)
class Upgrade:
    """Links made twice as fast, and how much shorter a cycle gets.

    Attributes:
        links: numbers of the links; several if none of them alone helps.
        cycle_s: seconds of a cycle now.
        upgraded_s: seconds of a cycle with these links twice as fast, by the clock.
    """

    links: tuple[int, ...]
    cycle_s: float
    upgraded_s: float

    @property
    def saved_s(self) -> float:
        """Seconds that a cycle gets shorter."""
        return self.cycle_s - self.upgraded_s


def critical_links(network: Network, message_bytes: int, cycle: Cycle) -> list[int]:
    """Numbers of the links on the critical path of the max-plus clock, the one that delays most first."""
    clock = Clock(network, message_bytes)
    inside, across = clock.messages(cycle.A_intra), clock.messages(cycle.A)
    idle = np.zeros_like(cycle.compute_s)
    one = [(inside, cycle.compute_s)] * cycle.tau_a + [(across, idle)] * cycle.tau_r
    steps = one * CYCLES
    ready = [np.zeros(network.num_devices)]
    for messages, compute_s in steps:
        ready.append(messages.deliver(ready[-1], compute_s, cycle.sends_early))
    waits: dict[int, float] = {}
    device = int(np.argmax(ready[-1]))
    for (messages, compute_s), ready_s in zip(reversed(steps), reversed(ready[:-1]), strict=True):
        done_s = ready_s + compute_s
        left_s = ready_s if cycle.sends_early else done_s
        device, link, travel_s = _last_cause(messages, left_s, done_s, device, network.links)
        if link is not None:
            waits[link] = waits.get(link, 0.0) + travel_s
    return sorted(waits, key=lambda link: (-waits[link], link))


def _last_cause(
    messages: Messages, left_s: FloatArray, done_s: FloatArray, device: int, links: IntArray
) -> tuple[int, int | None, float]:
    """What a device ended a step with: its own computing, or a message, with its sender, link and seconds.

    Args:
        left_s: (N,) when each device's messages left.
        done_s: (N,) when each device had computed.
    """
    received = np.flatnonzero(messages.receiver == device)
    if not len(received):
        return device, None, 0.0
    arrival_s = left_s[messages.sender[received]] + messages.travel_s[received]
    last = int(np.argmax(arrival_s))
    if arrival_s[last] <= done_s[device]:
        return device, None, 0.0
    sender = int(messages.sender[received[last]])
    ends = sorted((device, sender))
    found = np.flatnonzero((links[:, 0] == ends[0]) & (links[:, 1] == ends[1]))
    link = int(found[0]) if len(found) else None
    return sender, link, float(messages.travel_s[received[last]])


def faster_links(network: Network, links: tuple[int, ...], factor: float = _SPEED_UP) -> Network:
    """The network with some links ``factor`` times as fast: latency divided, bandwidth multiplied."""
    scale = np.ones(network.num_links)
    scale[list(links)] = factor
    return replace(network, latency_s=network.latency_s / scale, bandwidth_Bps=network.bandwidth_Bps * scale)


def best_upgrade(network: Network, message_bytes: int, cycle: Cycle) -> Upgrade | None:
    """The link to upgrade first: of those on the critical path the one that saves most seconds.

    Each is tried by the clock. Where other paths are as long, no single link helps; then links of the
    critical paths are upgraded together, until a cycle gets noticeably shorter or too many have been tried;
    of a large network fewer are tried.

    Returns:
        None if even all links together save nothing. An upgrade that saves nothing was not enough, since
        too many paths are as long.
    """
    now_s = cycle.time_s(network, message_bytes)
    trials = max(_LEAST_TRIALS, min(_ROUNDS, _TRIED_LINKS // max(network.num_links, 1)))

    def tried(links: tuple[int, ...]) -> Upgrade:
        return Upgrade(links, now_s, cycle.time_s(faster_links(network, links), message_bytes))

    if not tried(tuple(range(network.num_links))).saved_s > _NOTICEABLE * now_s:
        return None
    critical = critical_links(network, message_bytes, cycle)
    best = max((tried((link,)) for link in critical[:trials]), key=lambda one: one.saved_s)
    while best.saved_s <= _NOTICEABLE * now_s and len(best.links) < trials:
        path = critical_links(faster_links(network, best.links), message_bytes, cycle)
        fresh = next((link for link in path if link not in best.links), None)
        if fresh is None:
            break
        best = tried((*best.links, fresh))
    return best
