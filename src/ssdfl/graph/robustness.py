"""The number of lying neighbours that a network tolerates: r-robustness.

A set of devices is r-reachable if one of them has r neighbours outside it. A network is r-robust
if, of any two disjoint sets, at least one is r-reachable. Suppose that devices drop the F largest
and the F smallest values that they receive, and that no device has more than F lying neighbours.
Then honest devices still reach agreement, on a value between theirs, if the network is
(2 F + 1)-robust.

Source: LeBlanc, Zhang, Koutsoukos and Sundaram, Resilient asymptotic consensus in robust networks,
IEEE Journal on Selected Areas in Communications 31 (4), 2013, on W-MSR, which drops values by
comparing them with a device's own and always keeps that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ssdfl.arrays import IntArray
from ssdfl.graph.network import Network

EXACT_TO = 16
"""Up to this many devices all sets are tried; above, the lowest degree is used for a bound."""


def robustness(neighbours: Sequence[Sequence[int]]) -> int:
    """The largest r for which a network is r-robust, or a lower bound above 16 devices.

    With fewer than two devices there are no two sets, and 0 is returned.

    Args:
        neighbours: the neighbours of each device 0 … n − 1.

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
    """A lower bound: the smaller of two sets has at most n / 2 devices, so few are neighbours."""
    return max(0, degree - n // 2 + 1)


def _exact(neighbours: Sequence[Sequence[int]]) -> int:
    """The minimum of max(reach S, reach T) over all pairs of disjoint sets S and T."""
    reach = _reaches(neighbours)
    n = len(neighbours)
    # least[M] becomes the lowest reach of the nonempty subsets of M, bit by bit.
    least = reach.copy()
    for bit in range(n):
        by_bit = least.reshape(-1, 2, 1 << bit)
        by_bit[:, 1] = np.minimum(by_bit[:, 1], by_bit[:, 0])
    outside = least[::-1]  # of the complement
    return int(np.maximum(reach, outside)[1:-1].min())


def _reaches(neighbours: Sequence[Sequence[int]]) -> IntArray:
    """(2ⁿ,) the most outside neighbours of any member of each set; n for the empty set."""
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
    """The liars per neighbourhood that each cluster tolerates if devices drop extreme values.

    This is the largest F for which the cluster by itself is (2 F + 1)-robust.

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
    owner = label[links[:, 0]]
    by_cluster = links[np.argsort(owner, kind="stable")]
    ends = np.cumsum(np.bincount(owner, minlength=len(clusters)))
    parts = np.split(by_cluster, ends[:-1])
    return tuple(
        _survived(inside, degree, cluster) for inside, cluster in zip(parts, clusters, strict=True)
    )


def _survived(links: IntArray, degree: IntArray, cluster: Sequence[int]) -> int:
    """Of one cluster, given the links inside it and the number of them at each device."""
    members, n = list(cluster), len(cluster)
    least = int(degree[members].min())
    if n < 5 or least < 3:  # 3-robust networks have at least 5 devices, of degree 3 or more
        return 0
    if n > EXACT_TO:
        return max(0, _least(least, n) - 1) // 2
    place = {device: k for k, device in enumerate(members)}
    pairs = tuple((place[a], place[b]) for a, b in links.tolist())
    return _survived_exactly(n, pairs)


@lru_cache
def _survived_exactly(num_devices: int, links: tuple[tuple[int, int], ...]) -> int:
    """Of a small cluster; large networks have many that are alike."""
    neighbours: list[list[int]] = [[] for _ in range(num_devices)]
    for a, b in links:
        neighbours[a].append(b)
        neighbours[b].append(a)
    return max(0, robustness(neighbours) - 1) // 2
