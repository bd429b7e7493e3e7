"""The costs of mixing: transmissions, bytes and simulated seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ssdfl.arrays import BoolArray, FloatArray, IntArray
from ssdfl.graph.mixing import MixingMatrix, places_of
from ssdfl.graph.network import Network
from ssdfl.graph.relays import Relays
from ssdfl.memo import by_identity

CYCLES = 3


@dataclass(frozen=True, eq=False)
class Ports:
    """(N,) seconds for which one step's messages occupy each device's uplink and downlink."""

    uplink_s: FloatArray
    downlink_s: FloatArray

    def busy_s(self, sender: IntArray, receiver: IntArray) -> FloatArray:
        """The longer time of each message's two ends."""
        return np.maximum(self.uplink_s[sender], self.downlink_s[receiver])


@dataclass(frozen=True, eq=False)
class Messages:
    """The messages of one step: sender, receiver and travel time of each, and the total of hops.

    Attributes:
        receiver: (M,) the receivers, in ascending order.
        ports: the load of uplinks and downlinks; None if all are unlimited.
    """

    receiver: IntArray
    sender: IntArray
    travel_s: FloatArray
    transmissions: int
    ports: Ports | None = None

    def deliver(self, ready_s: FloatArray, compute_s: FloatArray, early: bool = True) -> FloatArray:
        """(N,) when each device is ready for the next step.

        Args:
            early: messages leave when a device starts the step, rather than after computing.
        """
        done_s = ready_s + compute_s
        left_s = ready_s if early else done_s.copy()
        if len(self.receiver):
            hearing, first = self._receivers
            arrived_s = np.maximum.reduceat(left_s[self.sender] + self.travel_s, first)
            done_s[hearing] = np.maximum(done_s[hearing], arrived_s)
        return done_s

    def to(self, receives: BoolArray) -> Messages:
        """The messages to some devices, given as an (N,) mask."""
        here = receives[self.receiver]
        receiver, sender, travel_s = self.receiver[here], self.sender[here], self.travel_s[here]
        return replace(self, receiver=receiver, sender=sender, travel_s=travel_s)

    @cached_property
    def _receivers(self) -> tuple[IntArray, IntArray]:
        """The devices that receive messages, and the position of the first message of each."""
        return np.unique(self.receiver, return_index=True)


@dataclass(frozen=True)
class CycleCost:
    """Seconds, directed messages and bytes of one cycle."""

    time_s: float
    transmissions: int
    sent_bytes: int


class Clock:
    """Simulated time on a network, by the max-plus recursion.

    A device sends its parameters when it starts a step, computes meanwhile, and starts the next
    step when it has computed and the messages of its active neighbours have arrived. So clusters
    run ahead of each other until a step mixes across them.

    All messages that a device sends in a step share its uplink, and those that it receives its
    downlink, in equal parts and as if they all travelled at once. So a message of m bytes from i to
    j takes ``latency + max(m / bandwidth, sent_i · m / uplink_i, received_j · m / downlink_j)``.

    A weight between two devices without a link is relayed over the fastest path. Every hop counts
    as a transmission, and for the uplinks and downlinks of the devices on the way. This is the cost
    of the `central` reference without a server.

    Args:
        sends_early: a device sends when it starts a step; otherwise after it has computed.
        keep: the number of matrices whose messages are cached.
        devices: keep the time of these devices only; the times of the others are not valid.
    """

    def __init__(
        self,
        network: Network,
        message_bytes: int,
        *,
        sends_early: bool = True,
        keep: int = 4,
        devices: IntArray | None = None,
    ) -> None:
        self.network, self.sends_early = network, sends_early
        self.message_bytes = message_bytes
        self._transfer_s = message_bytes / network.bandwidth_Bps
        self._link_s = network.latency_s + self._transfer_s
        self._link_keys, self._link_numbers = _sorted_links(network)
        self._receives = (
            None if devices is None else np.isin(np.arange(network.num_devices), devices)
        )
        self.messages = by_identity(self._messages, size=keep)

    def advance(
        self, ready_s: FloatArray, W: MixingMatrix, compute_s: FloatArray
    ) -> tuple[FloatArray, int]:
        """Advance one step: when each device is ready for the next, and the number of messages.

        Args:
            ready_s: (N,) when each device can start this step.
            W: the step's mixing matrix.
            compute_s: (N,) seconds of local training in this step, 0 for devices that do not train.
        """
        messages = self.messages(W)
        return messages.deliver(ready_s, compute_s, self.sends_early), messages.transmissions

    def _messages(self, W: MixingMatrix) -> Messages:
        """The messages of a step with W to devices whose time is kept; all messages are counted."""
        messages = self._all_messages(W)
        return messages if self._receives is None else messages.to(self._receives)

    def _all_messages(self, W: MixingMatrix) -> Messages:
        """All messages of a step that mixes with W."""
        receiver, sender = _off_diagonal(W)
        link, linked = self._links_between(sender, receiver)
        ports = self._ports(sender, receiver, linked) if self.network.is_shared else None
        travel_s = (
            self._link_s[link] if ports is None else self._over_links(link, ports, sender, receiver)
        )
        if linked.all():
            return Messages(receiver, sender, travel_s, len(sender), ports)
        relayed_s = self._relayed_s(ports)
        travel_s = np.where(linked, travel_s, relayed_s[sender, receiver])
        hops = np.where(linked, 1, self._relays.hops[sender, receiver])
        return Messages(receiver, sender, travel_s, int(hops.sum()), ports)

    def _over_links(
        self, link: IntArray, ports: Ports, sender: IntArray, receiver: IntArray
    ) -> FloatArray:
        """Seconds of messages over links whose ends are shared."""
        busy_s = ports.busy_s(sender, receiver)
        return self.network.latency_s[link] + np.maximum(self._transfer_s[link], busy_s)

    def _ports(self, sender: IntArray, receiver: IntArray, linked: BoolArray) -> Ports:
        """The load of a step's messages on uplinks and downlinks."""
        n = self.network.num_devices
        sent = np.bincount(sender[linked], minlength=n)
        received = np.bincount(receiver[linked], minlength=n)
        if not linked.all():
            passed = self._relays.loads(sender[~linked], receiver[~linked])
            sent, received = sent + passed[0], received + passed[1]
        size = self.message_bytes
        return Ports(
            sent * size / self.network.uplink_Bps, received * size / self.network.downlink_Bps
        )

    def cycle_cost(
        self, A: MixingMatrix, A_intra: MixingMatrix, tau_a: int, tau_r: int, compute_s: FloatArray
    ) -> CycleCost:
        """The cost of a cycle: ``tau_a`` training steps mixed by Ã, then ``tau_r`` mixed by A.

        Seconds are the mean over the first few cycles, since no device waits in the first one.
        """
        inside, across = self.messages(A_intra), self.messages(A)
        ready_s = np.zeros(self.network.num_devices)
        for _ in range(CYCLES):
            for _ in range(tau_a):
                ready_s = inside.deliver(ready_s, compute_s, self.sends_early)
            for _ in range(tau_r):
                ready_s = across.deliver(ready_s, np.zeros_like(compute_s))
        sent = tau_a * inside.transmissions + tau_r * across.transmissions
        return CycleCost(float(ready_s.max()) / CYCLES, sent, sent * self.message_bytes)

    def _links_between(self, sender: IntArray, receiver: IntArray) -> tuple[IntArray, BoolArray]:
        """The index of each pair's link, and whether the link exists; if not, ignore the index."""
        if not len(self._link_keys):
            return np.zeros(len(sender), dtype=np.int64), np.zeros(len(sender), dtype=bool)
        # A link's number is the same both ways, and messages come in order of their receivers:
        # ascending keys are found much faster.
        key = receiver * self.network.num_devices + sender
        place = np.minimum(np.searchsorted(self._link_keys, key), len(self._link_keys) - 1)
        return self._link_numbers[place], self._link_keys[place] == key

    @cached_property
    def _relays(self) -> Relays:
        return Relays(self.network.link_matrix(self._link_s))

    def _relayed_s(self, ports: Ports | None) -> FloatArray:
        """(N, N) seconds over the fastest paths, with the waits at shared uplinks and downlinks."""
        if ports is None:
            return self._relays.seconds
        sender, receiver = np.concatenate([self.network.links, self.network.links[:, ::-1]]).T
        link = np.tile(np.arange(self.network.num_links), 2)
        hop_s = np.zeros(self._relays.seconds.shape)
        hop_s[sender, receiver] = self._over_links(link, ports, sender, receiver)
        return self._relays.seconds_over(hop_s)


def _off_diagonal(W: MixingMatrix) -> tuple[IntArray, IntArray]:
    row, column = places_of(W)
    sent = (row != column) & (W.data != 0)
    return row[sent], column[sent].astype(np.int64)


def _sorted_links(network: Network) -> tuple[IntArray, IntArray]:
    """A key for each direction of each link, in ascending order, and the link's number."""
    i, j = network.links.T
    keys = np.concatenate([i, j]) * network.num_devices + np.concatenate([j, i])
    order = np.argsort(keys)
    return keys[order], np.tile(np.arange(network.num_links), 2)[order]
