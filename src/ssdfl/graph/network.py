"""The device-to-device network: links, and the costs of messages and local steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from ssdfl.arrays import FloatArray, IntArray, SparseMatrix
from ssdfl.errors import InputError
from ssdfl.graph.components import component_labels
from ssdfl.lazy import LazyModule

if TYPE_CHECKING:
    import networkx as nx
else:
    nx = LazyModule("networkx")

DEFAULT_LATENCY_S = 0.005
DEFAULT_BANDWIDTH_BPS = 12.5e6
DEFAULT_COMPUTE_S = 0.01
_LONGEST_S, _SLOWEST_BPS = 1e100, 1e-100
"""Beyond these limits, times of messages and steps would overflow."""

Link = tuple[int, int]

if TYPE_CHECKING:
    Graph: TypeAlias = nx.Graph[Any]
else:  # only for signatures: NetworkX is imported lazily and cannot be subscripted at run time
    Graph = Any


@dataclass(frozen=True, eq=False)
class Network:
    """An undirected network of ``num_devices`` devices with costs on links and devices.

    Build one with `make_network`, `load_network` or `from_networkx`, which fill in defaults and
    sort links.

    Attributes:
        links: (L, 2) device ids, ``i < j``, sorted and unique.
        latency_s: (L,) seconds until the first byte of a message arrives.
        bandwidth_Bps: (L,) bytes per second of each direction of a link.
        compute_s: (N,) seconds of one local mini-batch step.
        uplink_Bps: (N,) bytes per second that are shared by the messages a device sends at a time;
            ∞ is unlimited.
        downlink_Bps: (N,) the same for the messages it receives.
        names: the user's names of the devices.
        positions: (N, 2) where to draw the devices, if the network has a geometry.
        geographic: whether positions are longitude and latitude in degrees.
        added_links: links that were added to make a random network connected.
        title: the spec or file name that it came from.
    """

    num_devices: int
    links: IntArray
    latency_s: FloatArray
    bandwidth_Bps: FloatArray
    compute_s: FloatArray
    uplink_Bps: FloatArray
    downlink_Bps: FloatArray
    names: tuple[str, ...]
    positions: FloatArray | None = None
    added_links: tuple[Link, ...] = ()
    title: str = field(default="network")
    geographic: bool = False

    def __post_init__(self) -> None:
        if self.num_devices < 1:
            raise InputError(
                "number of devices", self.num_devices, "at least 1", "Give the network devices."
            )
        _check_names(self.names)
        _check_seconds("latency_s", self.latency_s)
        _check_speeds("bandwidth_Bps", self.bandwidth_Bps)
        _check_seconds("compute_s", self.compute_s)
        _check_limits("uplink_Bps", self.uplink_Bps)
        _check_limits("downlink_Bps", self.downlink_Bps)

    @property
    def num_links(self) -> int:
        """The number of undirected links."""
        return len(self.links)

    @cached_property
    def is_shared(self) -> bool:
        """Whether any device has an uplink or downlink that its messages share."""
        return bool(np.isfinite(self.uplink_Bps).any() or np.isfinite(self.downlink_Bps).any())

    @cached_property
    def adjacency(self) -> SparseMatrix:
        """The symmetric (N, N) 0/1 matrix of links."""
        return self.link_matrix(np.ones(self.num_links))

    def link_matrix(self, values: FloatArray) -> SparseMatrix:
        """The symmetric (N, N) matrix with ``values[k]`` at both entries of link ``k``."""
        i, j = self.links.T
        rows, columns = np.concatenate([i, j]), np.concatenate([j, i])
        entries = (np.concatenate([values, values]), (rows, columns))
        matrix = csr_array(entries, shape=(self.num_devices, self.num_devices))
        matrix.sort_indices()
        return matrix

    def neighbours(self, device: int) -> IntArray:
        """The neighbours of a device, in ascending order."""
        of = self.adjacency
        linked: IntArray = np.sort(of.indices[of.indptr[device] : of.indptr[device + 1]])
        return linked

    def message_time_s(self, message_bytes: int) -> FloatArray:
        """(L,) seconds of a message that has the link to itself, in the slower direction."""
        slowest_Bps = self.bandwidth_Bps
        if self.is_shared:
            ends_Bps = np.minimum(self.uplink_Bps, self.downlink_Bps)
            slowest_Bps = np.minimum(slowest_Bps, ends_Bps[self.links].min(axis=1))
        return self.latency_s + message_bytes / slowest_Bps

    def components(self) -> IntArray:
        """(N,) the number of each device's connected component."""
        return component_labels(self.adjacency)

    def renumbered(self, order: IntArray) -> Network:
        """The same network with its devices in another order.

        Args:
            order: (N,) the device that comes first, second, …

        Examples:
            >>> line = make_network(3, [(0, 1), (1, 2)], names=["a", "b", "c"])
            >>> line.renumbered(np.array([1, 0, 2])).links.tolist()
            [[0, 1], [0, 2]]
        """
        place = np.empty(self.num_devices, dtype=np.int64)
        place[order] = np.arange(self.num_devices)
        links = np.sort(place[self.links], axis=1)
        turn = np.lexsort((links[:, 1], links[:, 0]))
        added = [sorted((int(place[a]), int(place[b]))) for a, b in self.added_links]
        found = self._taken(order, links[turn], turn)
        return replace(found, added_links=tuple(sorted((a, b) for a, b in added)))

    def of_devices(self, kept: IntArray) -> Network:
        """The network of some devices, in ascending order, with the links between them.

        Examples:
            >>> line = make_network(3, [(0, 1), (1, 2)], names=["a", "b", "c"])
            >>> line.of_devices(np.array([1, 2])).links.tolist()
            [[0, 1]]
        """
        place = np.full(self.num_devices, -1)
        place[kept] = np.arange(len(kept))
        links = place[self.links]
        stay = np.flatnonzero((links >= 0).all(axis=1))
        return self._taken(kept, links[stay], stay)

    def _taken(self, devices: IntArray, links: IntArray, taken: IntArray) -> Network:
        """A network of some devices, with new ends for some links."""
        return replace(
            self,
            num_devices=len(devices),
            links=links,
            latency_s=self.latency_s[taken],
            bandwidth_Bps=self.bandwidth_Bps[taken],
            compute_s=self.compute_s[devices],
            uplink_Bps=self.uplink_Bps[devices],
            downlink_Bps=self.downlink_Bps[devices],
            names=tuple(self.names[device] for device in devices),
            positions=None if self.positions is None else self.positions[devices],
            added_links=(),
        )

    def to_networkx(self) -> Graph:
        """The same network with its costs as node and edge attributes, device ids as nodes."""
        graph: Graph = nx.Graph(title=self.title)
        graph.add_nodes_from(enumerate(self.device_attributes()))
        links = zip(self.links.tolist(), self.link_attributes(), strict=True)
        graph.add_edges_from((i, j, attributes) for (i, j), attributes in links)
        return graph

    def device_attributes(self) -> list[dict[str, Any]]:
        """Name, costs and place of each device, as files have them."""
        found: list[dict[str, Any]] = [
            {"name": name, "compute_s": compute_s}
            for name, compute_s in zip(self.names, self.compute_s.tolist(), strict=True)
        ]
        _add_limits(found, "uplink_Bps", self.uplink_Bps)
        _add_limits(found, "downlink_Bps", self.downlink_Bps)
        if self.positions is not None:
            axes = ("longitude", "latitude") if self.geographic else ("x", "y")
            for attributes, place in zip(found, self.positions.tolist(), strict=True):
                attributes.update(zip(axes, place, strict=True))
        return found

    def link_attributes(self) -> list[dict[str, Any]]:
        """The costs of each link, and whether it was added, as files have them."""
        costs = zip(self.latency_s.tolist(), self.bandwidth_Bps.tolist(), strict=True)
        found: list[dict[str, Any]] = [
            {"latency_s": latency_s, "bandwidth_Bps": bandwidth_Bps}
            for latency_s, bandwidth_Bps in costs
        ]
        added = set(self.added_links)
        for (i, j), attributes in zip(self.links.tolist(), found, strict=True):
            if (i, j) in added:
                attributes["added"] = True
        return found


def _add_limits(devices: list[dict[str, Any]], name: str, limits_Bps: FloatArray) -> None:
    """Uplinks or downlinks as device attributes; omitted if unlimited, as files have no ∞."""
    for device in np.flatnonzero(np.isfinite(limits_Bps)).tolist():
        devices[device][name] = float(limits_Bps[device])


def _check_seconds(what: str, values: FloatArray) -> None:
    fits = (values >= 0) & (values <= _LONGEST_S)  # False for NaN
    _check_all(fits, what, values, f"seconds from 0 to {_LONGEST_S:g}")


def _check_speeds(what: str, values: FloatArray) -> None:
    fits = (values >= _SLOWEST_BPS) & np.isfinite(values)
    _check_all(fits, what, values, f"bytes per second above 0, at least {_SLOWEST_BPS:g}")


def _check_limits(what: str, limits_Bps: FloatArray) -> None:
    """Refuse impossible speeds; an infinite speed means no limit."""
    _check_speeds(what, np.where(limits_Bps == np.inf, 1.0, limits_Bps))


def _check_all(fits: NDArray[np.bool_], what: str, values: FloatArray, expected: str) -> None:
    if not fits.all():
        place = int(np.argmin(fits))
        raise InputError(
            f"{what}[{place}]", float(values[place]), expected, "Correct it or leave it out."
        )


def _check_names(names: tuple[str, ...]) -> None:
    """Refuse duplicate names, since plans and device files use names."""
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise InputError(
            "name of two devices", twice, "a different name for each", "Rename one of them."
        )


def _check_ends(links: IntArray, num_devices: int) -> None:
    unknown = ((links < 0) | (links >= num_devices)).any(axis=1)
    if unknown.any():
        link = tuple(links[unknown][0].tolist())
        raise InputError(
            "link", link, f"device ids from 0 to {num_devices - 1}", "Correct its ids."
        )


def _one_each(values: ArrayLike, num_devices: int) -> FloatArray:
    return np.broadcast_to(np.asarray(values, dtype=float), max(num_devices, 0)).copy()


def make_network(
    num_devices: int,
    links: Sequence[Link] | IntArray,
    *,
    latency_s: ArrayLike = DEFAULT_LATENCY_S,
    bandwidth_Bps: ArrayLike = DEFAULT_BANDWIDTH_BPS,
    compute_s: ArrayLike = DEFAULT_COMPUTE_S,
    uplink_Bps: ArrayLike = np.inf,
    downlink_Bps: ArrayLike = np.inf,
    names: Sequence[str] = (),
    positions: FloatArray | None = None,
    added_links: Sequence[Link] = (),
    title: str = "network",
    geographic: bool = False,
) -> Network:
    """A network from its links; a cost is one number, or one per link or device in order.

    Self-loops are dropped: a device always keeps a share of its own parameters.

    Examples:
        >>> make_network(3, [(1, 0), (1, 2)]).links.tolist()
        [[0, 1], [1, 2]]
    """
    pairs = np.sort(np.asarray(links, dtype=np.int64).reshape(-1, 2), axis=1)
    latency = np.broadcast_to(np.asarray(latency_s, dtype=float), len(pairs))
    bandwidth = np.broadcast_to(np.asarray(bandwidth_Bps, dtype=float), len(pairs))
    _check_ends(pairs, num_devices)
    proper = np.flatnonzero(pairs[:, 0] != pairs[:, 1])
    _, first = np.unique(pairs[proper], axis=0, return_index=True)
    keep = proper[first]
    return Network(
        num_devices=num_devices,
        links=pairs[keep],
        latency_s=latency[keep].copy(),
        bandwidth_Bps=bandwidth[keep].copy(),
        compute_s=_one_each(compute_s, num_devices),
        uplink_Bps=_one_each(uplink_Bps, num_devices),
        downlink_Bps=_one_each(downlink_Bps, num_devices),
        names=tuple(names) or tuple(str(i) for i in range(num_devices)),
        positions=positions,
        added_links=tuple(sorted((min(link), max(link)) for link in added_links)),
        title=title,
        geographic=geographic,
    )
