"""Partitions of a network into connected clusters: by recursive spectral bisection, or at random."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

from ssdfl.arrays import IntArray
from ssdfl.errors import check_range
from ssdfl.graph import Network, Weights, metropolis, slowest_mode, sweep_cut

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
    clusters: list[Cluster] = [tuple(range(network.num_devices))]
    lambda_2: dict[Cluster, float] = {}
    while len(clusters) < num_clusters:
        for cluster in clusters:
            if cluster not in lambda_2:
                lambda_2[cluster] = round(_lambda_2(network, cluster, weights), 9)
        worst = max(clusters, key=lambda c: (len(c) > 1, lambda_2[c], -c[0]))
        clusters.remove(worst)
        clusters += bisect(network, worst, weights)
    return tuple(sorted(clusters))


def _lambda_2(network: Network, cluster: Cluster, weights: Weights) -> float:
    return slowest_mode(weights(network.adjacency[list(cluster)][:, list(cluster)]))[0]


def bisect(network: Network, cluster: Cluster, weights: Weights = metropolis) -> tuple[Cluster, Cluster]:
    """Two connected halves of a connected cluster: the sweep cut of its Fiedler vector.

    Devices are ordered by the vector, ties by id, and cut where the cut conductance
    (`eq:cut_conductance_defn`) is least. A half that falls apart keeps its largest part; the rest joins
    the other half, to which it is linked.
    """
    devices = np.array(cluster)
    W = weights(network.adjacency[devices][:, devices])
    first = sweep_cut(W, slowest_mode(W)[1])
    for side in (True, False):
        inside = np.flatnonzero(first == side)
        parts: IntArray = connected_components(W[inside][:, inside], directed=False)[1]
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
    return tuple(sorted(tuple(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)))
