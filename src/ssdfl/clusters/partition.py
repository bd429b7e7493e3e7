"""Partitions of a network into connected clusters: by recursive spectral bisection, or at random."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import islice

import numpy as np

from ssdfl.arrays import FloatArray, IntArray, SparseMatrix
from ssdfl.errors import check_range
from ssdfl.graph import (
    MixingMatrix,
    Network,
    Weights,
    component_labels,
    links_within,
    metropolis,
    num_components,
    slowest_mode,
    sweep_cut,
)

Cluster = tuple[int, ...]
Clusters = tuple[Cluster, ...]


def spectral_bisection(network: Network, num_clusters: int, weights: Weights = metropolis) -> Clusters:
    """Split the worst-mixing cluster by the best cut along its Fiedler vector until there are enough.

    Clusters stay connected. Deterministic: ties go to the cluster with the lowest device.

    Examples:
        >>> from ssdfl.graph import load_network
        >>> spectral_bisection(load_network("barbell:size=3"), 2)
        ((0, 1, 2), (3, 4, 5))
    """
    check_range(
        "clusters.number",
        num_clusters,
        1,
        network.num_devices,
        "There are at most as many clusters as devices.",
    )
    return next(islice(bisections(network.adjacency, weights), num_clusters - 1, None))


def bisections(links: SparseMatrix, weights: Weights) -> Iterator[Clusters]:
    """The partitions into 1, 2, … N clusters that repeated bisection of the worst-mixing one goes through.

    Args:
        links: (N, N) the links; their values matter to weight rules that look at them.
    """
    n = links.shape[0]
    clusters: set[Cluster] = set()
    halves_of: dict[Cluster, tuple[Cluster, ...]] = {}
    queue: list[tuple[float, Cluster]] = []

    def add(cluster: Cluster) -> None:
        clusters.add(cluster)
        if len(cluster) > 1:
            W = weights(links[list(cluster)][:, list(cluster)])
            lambda_2, fiedler = slowest_mode(W)
            halves_of[cluster] = bisect(cluster, W, fiedler)
            heappush(queue, (-round(lambda_2, 9), cluster))

    add(tuple(range(n)))
    while True:
        yield tuple(sorted(clusters))
        if not queue:
            return
        worst = heappop(queue)[1]
        clusters.remove(worst)
        for half in halves_of.pop(worst):
            add(half)


def bisect(cluster: Cluster, W: MixingMatrix, fiedler: FloatArray) -> tuple[Cluster, Cluster]:
    """Two connected halves of a connected cluster: the sweep cut of its Fiedler vector.

    Devices are ordered by the vector, ties by id, and cut where the cut conductance
    (`eq:cut_conductance_defn`) is least. A half that falls apart keeps its largest part; the rest joins
    the other half, to which it is linked.
    """
    devices = np.array(cluster)
    first = sweep_cut(W, fiedler)
    in_one_piece = num_components(links_within(W, first)) == 2
    for side in () if in_one_piece else (True, False):
        inside = np.flatnonzero(first == side)
        parts = component_labels(W[inside][:, inside])
        stray = parts != np.bincount(parts).argmax()
        first[inside[stray]] = not side
    return tuple(devices[first].tolist()), tuple(devices[~first].tolist())


def random_clusters(network: Network, rng: np.random.Generator) -> Clusters:
    """A random number of random connected clusters, each grown from a random device.

    Examples:
        >>> from ssdfl.graph import load_network
        >>> sum(len(c) for c in random_clusters(load_network("ring:n=9"), np.random.default_rng(0)))
        9
    """
    n = network.num_devices
    seeds = rng.permutation(n)[: int(rng.integers(1, n + 1))]
    label = np.full(n, -1)
    label[seeds] = np.arange(len(seeds))
    i, j = network.links.T
    while (label < 0).any():
        frontier = np.flatnonzero((label[i] < 0) != (label[j] < 0))
        link = network.links[rng.choice(frontier)]
        label[link] = label[link].max()
    return clusters_of(label)


def labels_of(clusters: Clusters, num_devices: int) -> IntArray:
    """(N,) the number of the cluster that each device is in.

    Examples:
        >>> labels_of(((0, 2), (1,)), 3).tolist()
        [0, 1, 0]
    """
    labels = np.full(num_devices, -1, dtype=np.int64)
    for number, cluster in enumerate(clusters):
        labels[list(cluster)] = number
    return labels


def clusters_of(labels: IntArray) -> Clusters:
    """The clusters of equal labels, ordered by their lowest device.

    Examples:
        >>> clusters_of(np.array([7, 3, 7]))
        ((0, 2), (1,))
    """
    order = np.argsort(labels, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    return tuple(sorted(tuple(part.tolist()) for part in parts))
