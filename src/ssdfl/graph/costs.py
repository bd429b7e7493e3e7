"""What mixing costs: transmissions, bytes and simulated seconds (DESIGN: "what a cycle costs")."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse.csgraph import shortest_path

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.graph.mixing import MixingMatrix
from ssdfl.graph.network import Network
from ssdfl.memo import by_identity

CYCLES = 3


@dataclass(frozen=True, eq=False)
class Messages:
    """The messages of one step: from whom to whom, how long each travels, and hops in all."""

    receiver: IntArray
    sender: IntArray
    travel_s: FloatArray
    transmissions: int

    def deliver(self, ready_s: FloatArray, compute_s: FloatArray, early: bool = True) -> FloatArray:
        """(N,) when each device is ready for the next step.

        Args:
            early: messages leave when a device starts the step, and not after it has computed.
        """
        done_s = ready_s + compute_s
        left_s = ready_s if early else done_s.copy()
        np.maximum.at(done_s, self.receiver, left_s[self.sender] + self.travel_s)
        return done_s


@dataclass(frozen=True)
class CycleCost:
    """Seconds, directed messages and bytes of one cycle."""

    time_s: float
    transmissions: int
    sent_bytes: int


class Clock:
    """Simulated time on a network, by the max-plus recursion.

    A device sends its parameters when it starts a step, computes meanwhile, and starts the next step when
    it has computed and the messages of its active neighbours have arrived. So clusters run ahead of each
    other until a step mixes across them.

    A weight between two devices without a link is relayed over the fastest path, and every hop counts as
    a transmission: that is what the `central` reference would cost with no server.

    Args:
        sends_early: a device sends when it starts a step; otherwise when it has computed.
        keep: of how many matrices to remember the messages.
    """

    def __init__(
        self, network: Network, message_bytes: int, *, sends_early: bool = True, keep: int = 4
    ) -> None:
        self.network, self.sends_early = network, sends_early
        self.message_bytes = message_bytes
        self._link_s = network.link_matrix(network.message_time_s(message_bytes))
        self._link_keys, self._link_times = _sorted_entries(self._link_s)
        self.messages = by_identity(self._messages, size=keep)

    def advance(self, ready_s: FloatArray, W: MixingMatrix, compute_s: FloatArray) -> tuple[FloatArray, int]:
        """One step: when each device is ready for the next one, and how many messages were sent.

        Args:
            ready_s: (N,) when each device can start this step.
            W: the step's mixing matrix.
            compute_s: (N,) seconds of local training in this step, 0 for those that do not train.
        """
        messages = self.messages(W)
        return messages.deliver(ready_s, compute_s, self.sends_early), messages.transmissions

    def _messages(self, W: MixingMatrix) -> Messages:
        """What a step that mixes with W sends."""
        receiver, sender = _off_diagonal(W)
        travel_s, hops = self._travel(sender, receiver)
        return Messages(receiver, sender, travel_s, int(hops.sum()))

    def cycle_cost(
        self, A: MixingMatrix, A_intra: MixingMatrix, tau_a: int, tau_r: int, compute_s: FloatArray
    ) -> CycleCost:
        """What a cycle of ``tau_a`` training steps mixed by Ã and ``tau_r`` steps mixed by A costs.

        Seconds are the mean over the first few cycles, since a first cycle has nobody to wait for.
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

    def _travel(self, sender: IntArray, receiver: IntArray) -> tuple[FloatArray, IntArray]:
        n = self.network.num_devices
        key = sender * n + receiver
        place = np.minimum(np.searchsorted(self._link_keys, key), max(len(self._link_keys) - 1, 0))
        linked = self._link_keys[place] == key if len(self._link_keys) else np.zeros(len(key), dtype=bool)
        hops = np.ones(len(key), dtype=np.int64)
        if linked.all():
            return self._link_times[place], hops
        relay_s, relay_hops = self._relays
        travel_s = np.where(linked, self._link_times[place], relay_s[sender, receiver])
        return travel_s, np.where(linked, hops, relay_hops[sender, receiver])

    @cached_property
    def _relays(self) -> tuple[FloatArray, IntArray]:
        """Seconds and hops of the fastest path between any two devices, by a direct link or not."""
        seconds, before = shortest_path(self._link_s, directed=False, return_predecessors=True)
        hops = np.zeros(seconds.shape, dtype=np.int64)
        for nearest in np.argsort(seconds, axis=1, kind="stable").T:  # of every source the next device
            sources = np.flatnonzero(before[np.arange(len(nearest)), nearest] >= 0)
            device = nearest[sources]
            hops[sources, device] = hops[sources, before[sources, device]] + 1
        return seconds, hops


def _off_diagonal(W: MixingMatrix) -> tuple[IntArray, IntArray]:
    entries = W.tocoo()
    sent = (entries.row != entries.col) & (entries.data != 0)
    return entries.row[sent].astype(np.int64), entries.col[sent].astype(np.int64)


def _sorted_entries(matrix: MixingMatrix) -> tuple[IntArray, FloatArray]:
    entries = matrix.tocoo()
    keys = entries.row.astype(np.int64) * matrix.shape[0] + entries.col
    order = np.argsort(keys)
    return keys[order], entries.data[order]
