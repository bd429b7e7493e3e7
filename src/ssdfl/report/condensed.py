"""Condense large networks: pages and figures draw groups of devices instead of single devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.clusters import Clusters, clusters_of, labels_of
from ssdfl.graph import Network, make_network

MOST_DRAWN = 10_000
"""Up to this number, devices are drawn one by one."""
GROUPS = 1000
"""Larger networks are drawn as about this many groups of devices."""


@dataclass(frozen=True, eq=False)
class Condensed:
    """Groups of devices, each within one cluster, or of whole clusters if there are too many.

    Attributes:
        group: (N,) the group of each device; groups are numbered by their lowest device.
        network: one device per group, with the links between groups.
        clusters: the clusters, as sets of groups.
    """

    group: IntArray
    network: Network
    clusters: Clusters

    @property
    def first(self) -> IntArray:
        """(G,) the lowest device of each group."""
        return np.unique(self.group, return_index=True)[1]

    def means(self, values: ArrayLike) -> FloatArray:
        """(G,) the mean of the devices' values in each group.

        Examples:
            >>> from ssdfl.graph import load_network
            >>> halves = condensed(load_network("path:n=4"), ((0, 1), (2, 3)), groups=2)
            >>> halves.means([1.0, 3.0, 5.0, 6.0])
            array([2. , 5.5])
        """
        means: FloatArray = np.bincount(self.group, np.asarray(values)) / np.bincount(self.group)
        return means

    def facts(self, devices: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The samples, labels and optimizer of each group, and whether one of its devices lies."""
        if not devices:
            return []
        samples = np.bincount(self.group, [one["samples"] for one in devices]).astype(int).tolist()
        counts = np.array([one["labels"] for one in devices])
        labels = np.zeros((len(samples), counts.shape[1]), dtype=np.int64)
        np.add.at(labels, self.group, counts)
        kinds = self._kinds([str(one["optimizer"]) for one in devices])
        facts = [
            {"device": k, "optimizer": kind, "samples": number, "labels": own}
            for k, (kind, number, own) in enumerate(
                zip(kinds, samples, labels.tolist(), strict=True)
            )
        ]
        for k in self._lied_in(devices):
            facts[k]["liar"] = True
        return facts

    def _lied_in(self, devices: list[dict[str, Any]]) -> list[int]:
        """The groups with a device that lies."""
        lying = [one.get("liar", False) for one in devices]
        return np.flatnonzero(np.bincount(self.group, lying)).tolist()

    def _kinds(self, optimizers: list[str]) -> list[str]:
        """The optimizer of each group, or a note that there are several."""
        kinds, number = np.unique(optimizers, return_inverse=True)
        pairs = np.unique(np.stack([self.group, number], axis=1), axis=0)
        several = np.bincount(pairs[:, 0]) > 1
        own = dict(pairs.tolist())
        return ["several" if several[k] else str(kinds[own[k]]) for k in range(len(several))]


def if_large(network: Network, clusters: Clusters) -> Condensed | None:
    """The network's groups, if it has more devices than are drawn one by one."""
    return condensed(network, clusters, GROUPS) if network.num_devices > MOST_DRAWN else None


def condensed(network: Network, clusters: Clusters, groups: int) -> Condensed:
    """About ``groups`` groups of a network's devices."""
    labels = labels_of(clusters, network.num_devices)
    group = _groups(labels, groups)
    first = np.unique(group, return_index=True)[1]
    counts = np.bincount(group)
    names = [
        f"{network.names[k]} and {n - 1} more" for k, n in zip(first, counts.tolist(), strict=True)
    ]
    links, latency_s, bandwidth_Bps = _links(network, group)
    small = make_network(
        len(first),
        links,
        latency_s=latency_s,
        bandwidth_Bps=bandwidth_Bps,
        compute_s=np.bincount(group, network.compute_s) / counts,
        names=names,
        positions=None if network.positions is None else network.positions[first],
        geographic=network.geographic,
        title=network.title,
    )
    return Condensed(group, small, clusters_of(labels[first]))


def _groups(labels: IntArray, groups: int) -> IntArray:
    """(N,) groups of about equal size, taken in the order of clusters."""
    order = np.argsort(labels, kind="stable")
    number = np.arange(len(labels)) * groups // len(labels)
    sizes = np.bincount(labels)
    if len(sizes) > groups:  # whole clusters, each where its first device is
        key = number[np.repeat(np.cumsum(sizes) - sizes, sizes)]
    else:
        key = labels[order] * groups + number
    found = np.empty(len(labels), dtype=np.int64)
    found[order] = key
    _, first, place = np.unique(found, return_index=True, return_inverse=True)
    by_first = np.empty(len(first), dtype=np.int64)
    by_first[np.argsort(first)] = np.arange(len(first))
    return by_first[place]


def _links(network: Network, group: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Links between groups, with the mean latency and bandwidth of the links they stand for."""
    ends = np.sort(group[network.links], axis=1)
    across = ends[:, 0] != ends[:, 1]
    n = int(group.max()) + 1
    keys, place, count = np.unique(
        ends[across] @ np.array([n, 1]), return_inverse=True, return_counts=True
    )
    links = np.stack(np.divmod(keys, n), axis=1)
    latency_s = np.bincount(place, network.latency_s[across]) / count
    return links, latency_s, np.bincount(place, network.bandwidth_Bps[across]) / count
