"""Links inside and between labelled clusters, and clusters that have fallen apart."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ssdfl.arrays import FloatArray, IntArray, SparseMatrix
from ssdfl.clusters.cost_aware import link_levels
from ssdfl.clusters.scores import ScoreInputs
from ssdfl.graph import component_labels


class LinkTable:
    """The links of a network.

    Attributes:
        links: (L, 2) the two devices of each link.
        level: (L,) how slow each link is, from `link_levels`.
        weight: (L,) its mixing weight.
    """

    def __init__(self, inputs: ScoreInputs) -> None:
        self.links = inputs.network.links
        self.level: IntArray = link_levels(inputs)
        i, j = self.links.T
        self.weight: FloatArray = np.asarray(inputs.A[i, j]).ravel()
        self.num_devices = inputs.network.num_devices

    def inside(self, labels: IntArray) -> IntArray:
        """The indices of the links inside clusters."""
        i, j = self.links.T
        return np.flatnonzero((labels[i] == labels[j]) & (labels[i] >= 0))

    def slowest_inside(self, labels: IntArray) -> int:
        """The level of the slowest link inside clusters; −1 if there is none."""
        return int(self.level[self.inside(labels)].max(initial=-1))

    def leaving(self, devices: IntArray) -> tuple[IntArray, IntArray]:
        """The links that leave a set of devices, and the outside device of each."""
        among = np.zeros(self.num_devices, dtype=bool)
        among[devices] = True
        i, j = self.links.T
        leaving = np.flatnonzero(among[i] != among[j])
        other = np.where(among[i[leaving]], j[leaving], i[leaving])
        return leaving, other

    def clusters_next_to(self, labels: IntArray, devices: IntArray) -> list[int]:
        """Labels of clusters linked to these devices, by their slowest link, then by weight."""
        links, others = self.leaving(devices)
        near = np.setdiff1d(labels[others], labels[devices]).tolist()

        def distance(cluster: int) -> tuple[int, float, int]:
            between = links[labels[others] == cluster]
            weight = round(float(self.weight[between].sum()), 12)
            return int(self.level[between].max()), -weight, cluster

        return sorted(near, key=distance)

    def matrix(self, chosen: IntArray) -> SparseMatrix:
        """(N, N) the matrix of some links."""
        i, j = self.links[chosen].T
        return csr_array((np.ones(len(i)), (i, j)), shape=(self.num_devices, self.num_devices))


def fresh_label(labels: IntArray) -> int:
    """The first unused label.

    Examples:
        >>> fresh_label(np.array([0, 4, -1]))
        5
    """
    return int(labels.max()) + 1


def with_pieces_apart(table: LinkTable, labels: IntArray, below: int | None = None) -> IntArray:
    """Give each connected part of a cluster its own label.

    The largest part keeps the label; ties go to the part with the first device.

    Args:
        below: use only links of lower levels.
    """
    inside = table.inside(labels)
    if below is not None:
        inside = inside[table.level[inside] < below]
    parts = component_labels(table.matrix(inside))
    size = np.bincount(parts)[parts]
    by_cluster = np.lexsort((np.arange(len(labels)), -size, labels))
    clusters, first = np.unique(labels[by_cluster], return_index=True)
    main = parts[by_cluster[first]]
    is_apart = parts != main[np.searchsorted(clusters, labels)]
    lowest = np.unique(parts, return_index=True)[1][parts]
    return np.where(is_apart & (labels >= 0), fresh_label(labels) + lowest, labels)
