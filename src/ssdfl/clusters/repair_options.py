"""Changes to clusters that a repair may try, each with a description and a reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ssdfl.arrays import BoolArray, IntArray
from ssdfl.clusters.fitting import listed_names
from ssdfl.clusters.labelled import LinkTable, fresh_label, with_pieces_apart
from ssdfl.clusters.partition import clusters_of
from ssdfl.clusters.scores import ScoreInputs
from ssdfl.clusters.settling import Placement, settle
from ssdfl.graph import Cycle, Part, critical_parts


@dataclass(frozen=True, eq=False)
class Option:
    """Clusters to try.

    Attributes:
        labels: (N,) the cluster of each device.
        what: a description of the change.
    """

    labels: IntArray
    what: str


class RepairOptions:
    """Changes that can be made to labels on a network."""

    def __init__(self, inputs: ScoreInputs, table: LinkTable) -> None:
        self.inputs, self.table = inputs, table
        self.names = inputs.network.names

    def moved(self, labels: IntArray, devices: IntArray, host: int | None) -> IntArray:
        """Move devices to another or a new cluster; the cluster they leave may fall apart."""
        changed = labels.copy()
        changed[devices] = fresh_label(labels) if host is None else host
        return with_pieces_apart(self.table, changed)

    def joins(self, labels: IntArray, placement: Placement) -> Iterator[Option]:
        """Put devices that settling made a new cluster into each cluster next to them."""
        if placement.host is not None:
            return
        devices = np.array(placement.devices)
        for host in self.table.clusters_next_to(labels, devices):
            what = f"{self._listed(placement)} to {self._called(labels, host)}"
            yield Option(self.moved(labels, devices, host), what)

    def cuts(self, labels: IntArray) -> Iterator[Option]:
        """Ways to move a link that a cycle waits for out of its cluster, most awaited first."""
        for link in self._awaited(labels):
            yield from self._cuts_at(labels, link)

    def _awaited(self, labels: IntArray) -> list[int]:
        """Links inside clusters on the critical path of a cycle or of a device it waits for."""
        inputs = self.inputs
        constants = inputs.constants
        cycle = Cycle(
            inputs.A,
            inputs.A_intra(clusters_of(labels)),
            constants.tau_a,
            constants.tau_r,
            inputs.network.compute_s * constants.local_steps,
            inputs.sends_early,
        )
        inside = self.table.inside(labels)
        parts = critical_parts(inputs.network, inputs.message_bytes, cycle)
        awaited = [inside[self._belong_to(part, inside)].tolist() for part in parts]
        return list(dict.fromkeys(chain.from_iterable(awaited)))

    def _belong_to(self, part: Part, links: IntArray) -> BoolArray:
        """Which links are the given part, or use it as a device's uplink or downlink."""
        is_link = part.kind == "link"
        ends = links[:, None] if is_link else self.table.links[links]
        belong: BoolArray = (ends == part.number).any(axis=1)
        return belong

    def _cuts_at(self, labels: IntArray, link: int) -> Iterator[Option]:
        """Split the link's cluster there, or move one of its ends."""
        a, b = self.table.links[link].tolist()
        time_ms = self.inputs.network.message_time_s(self.inputs.message_bytes)[link] * 1e3
        why = f"since cycles wait for {self.names[a]} – {self.names[b]} ({time_ms:.3g} ms)"
        home = self._called(labels, labels[a])
        yield Option(self._split(labels, link), f"{home} splits, {why}")
        for device in (a, b):
            for option in self.moves_of(labels, device):
                yield Option(option.labels, f"{option.what}, {why}")
            alone = self.moved(labels, np.array([device]), None)
            yield Option(alone, f"{self.names[device]} leaves {home}, {why}")

    def _split(self, labels: IntArray, link: int) -> IntArray:
        """Labels in which the link's cluster is split into the parts that faster links connect."""
        pieces = with_pieces_apart(self.table, labels, below=int(self.table.level[link]))
        return np.where(labels == labels[self.table.links[link, 0]], pieces, labels)

    def moves_of(self, labels: IntArray, device: int) -> Iterator[Option]:
        """Put a device into each cluster next to it."""
        one = np.array([device])
        for host in self.table.clusters_next_to(labels, one):
            what = f"{self.names[device]} to {self._called(labels, host)}"
            yield Option(self.moved(labels, one, host), what)

    def merges(self, labels: IntArray) -> Iterator[Option]:
        """Merge each pair of linked clusters, starting with the fastest links."""
        for a, b in self._linked_clusters(labels):
            what = f"{self._called(labels, b)} merged into {self._called(labels, a)}"
            yield Option(np.where(labels == b, a, labels), what)

    def _linked_clusters(self, labels: IntArray) -> list[tuple[int, int]]:
        """Pairs of linked clusters by their slowest link between them, the fastest first."""
        ends = np.sort(labels[self.table.links], axis=1)
        crossing = np.flatnonzero(ends[:, 0] != ends[:, 1])
        pairs, place = np.unique(ends[crossing], axis=0, return_inverse=True)
        slowest = np.zeros(len(pairs), dtype=np.int64)
        np.maximum.at(slowest, place.ravel(), self.table.level[crossing])
        return [(int(a), int(b)) for a, b in pairs[np.argsort(slowest, kind="stable")]]

    def rivals(self, carried: Sequence[IntArray]) -> Iterator[Option]:
        """Apply other partitions of the old network to this one."""
        for labels in carried:
            clusters = len(np.unique(labels[labels >= 0]))
            what = f"the old plan's candidate of {clusters} clusters instead"
            yield Option(settle(self.table, labels)[0], what)

    def told(self, placement: Placement) -> str:
        """A sentence on where settling put devices, and why."""
        who = self._listed(placement)
        why = "new" if placement.is_new else "no links to the rest of the cluster any more"
        if placement.host is None:
            return (
                f"{who} ({why}) in a new cluster: "
                "links to others are slower than any inside clusters."
            )
        return (
            f"{who} ({why}) to the cluster of {self.names[placement.host]}, over the fastest links."
        )

    def _listed(self, placement: Placement) -> str:
        return listed_names([self.names[device] for device in placement.devices])

    def _called(self, labels: IntArray, cluster: int) -> str:
        """The name of a cluster, by its first device."""
        return f"the cluster of {self.names[int(np.argmax(labels == cluster))]}"
