"""How many lying neighbours a network withstands: r-robustness.

A set of devices is r-reachable if one of them has r neighbours outside it. A network is r-robust if
of any two disjoint sets at least one is r-reachable. If devices drop the F largest and the F
smallest values that they hear, and nobody has more than F lying neighbours, honest devices still
come to agree, on a value between theirs, where the network is (2 F + 1)-robust.

Source: LeBlanc, Zhang, Koutsoukos and Sundaram, Resilient asymptotic consensus in robust networks,
IEEE Journal on Selected Areas in Communications 31 (4), 2013, on W-MSR, which drops values by
comparing them with a device's own and always keeps that one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssdfl.arrays import IntArray
from ssdfl.graph.network import Network

EXACT_TO = 16
"""Up to this many devices all sets are tried; above, the lowest degree gives a bound."""


def robustness(neighbours: Sequence[Sequence[int]]) -> int:
    """The largest r for which a network is r-robust; of more than 16 devices a lower bound.

    With fewer than two devices there are no two sets; 0 is returned.

    Args:
        neighbours: of each device 0 … n − 1.

    Examples:
        A complete network of n devices is ⌈n / 2⌉-robust, a ring is 1-robust.

        >>> robustness([[1, 2, 3, 4], [0, 2, 3, 4], [0, 1, 3, 4], [0, 1, 2, 4], [0, 1, 2, 3]])
        3
        >>> robustness([[1, 3], [0, 2], [1, 3], [2, 0]])
        1
    """
    n = len(neighbours)
    if n < 2:
        return 0
    return _exact(neighbours) if n <= EXACT_TO else _least(min(map(len, neighbours)), n)


def _least(degree: int, n: int) -> int:
    """A bound: the smaller of two sets has at most n / 2 devices, few of them one's neighbours."""
    return max(0, degree - n // 2 + 1)


def _exact(neighbours: Sequence[Sequence[int]]) -> int:
    """Over all pairs of disjoint sets S and T, the least of max(reach S, reach T)."""
    reach = _reaches(neighbours)
    n = len(neighbours)
    # least[M] becomes the least reach of the nonempty sets within M, bit by bit.
    least = reach.copy()
    for bit in range(n):
        by_bit = least.reshape(-1, 2, 1 << bit)
        by_bit[:, 1] = np.minimum(by_bit[:, 1], by_bit[:, 0])
    outside = least[::-1]  # of the complement
    return int(np.maximum(reach, outside)[1:-1].min())


def _reaches(neighbours: Sequence[Sequence[int]]) -> IntArray:
    """(2ⁿ,) the most neighbours that a member of each set has outside; n for the empty set."""
    n = len(neighbours)
    sets = np.arange(1 << n)
    sizes = np.zeros(1 << n, dtype=np.int64)
    for bit in range(n):
        sizes += sets >> bit & 1
    reach = np.zeros(1 << n, dtype=np.int64)
    for device, linked in enumerate(neighbours):
        mask = sum(1 << other for other in linked)
        is_in = (sets >> device & 1).astype(bool)
        outside = sizes[mask & ~sets[is_in]]
        reach[is_in] = np.maximum(reach[is_in], outside)
    reach[0] = n
    return reach


def survived_liars(network: Network, clusters: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """How many liars per neighbourhood each cluster withstands if devices drop extreme values.

    That is the largest F for which the cluster by itself is (2 F + 1)-robust.

    Examples:
        >>> from ssdfl.graph import load_network
        >>> survived_liars(load_network("complete:n=8"), [range(5), range(5, 8)])
        (1, 0)
    """
    label = np.full(network.num_devices, -1, dtype=np.int64)
    for number, cluster in enumerate(clusters):
        label[list(cluster)] = number
    links = network.links[label[network.links[:, 0]] == label[network.links[:, 1]]]
    degree = np.bincount(links.ravel(), minlength=network.num_devices)
    return tuple(_survived(links, degree, cluster) for cluster in clusters)


def _survived(links: IntArray, degree: IntArray, cluster: Sequence[int]) -> int:
    """Of one cluster, given the links inside clusters and devices' numbers of them."""
    members, n = list(cluster), len(cluster)
    least = int(degree[members].min())
    if n < 5 or least < 3:  # 3-robust takes both
        return 0
    if n > EXACT_TO:
        return max(0, _least(least, n) - 1) // 2
    place = {device: k for k, device in enumerate(members)}
    neighbours: list[list[int]] = [[] for _ in members]
    for a, b in links[np.isin(links[:, 0], members)].tolist():
        neighbours[place[a]].append(place[b])
        neighbours[place[b]].append(place[a])
    return max(0, robustness(neighbours) - 1) // 2
