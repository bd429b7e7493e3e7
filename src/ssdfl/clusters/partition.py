"""Partitions of a network into connected clusters: by recursive spectral bisection, or at random."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

from ssdfl.arrays import IntArray
from ssdfl.errors import check_range
from ssdfl.graph import Network, Weights, metropolis, spectrum

Cluster = tuple[int, ...]
Clusters = tuple[Cluster, ...]


def spectral_bisection(network: Network, num_clusters: int, weights: Weights = metropolis) -> Clusters:
    """Split the worst-mixing cluster by the sign of its Fiedler vector until there are ``num_clusters``.

    Clusters stay connected. Deterministic: ties go to the cluster with the lowest device.

    >>> from ssdfl.graph import load_network
    >>> spectral_bisection(load_network("barbell:size=3"), 2)
    ((0, 1, 2), (3, 4, 5))
    """
    check_range(
        "clusters.number", num_clusters, 1, network.num_devices, "There are at most as many clusters as devices."
    )
    clusters: list[Cluster] = [tuple(range(network.num_devices))]
    while len(clusters) < num_clusters:
        worst = max(clusters, key=lambda c: (len(c) > 1, round(_lambda_2(network, c, weights), 9), -c[0]))
        clusters.remove(worst)
        clusters += bisect(network, worst, weights)
    return tuple(sorted(clusters))


def _lambda_2(network: Network, cluster: Cluster, weights: Weights) -> float:
    return spectrum(weights(network.adjacency[list(cluster)][:, list(cluster)])).lambda_2


def bisect(network: Network, cluster: Cluster, weights: Weights = metropolis) -> tuple[Cluster, Cluster]:
    """Two connected halves of a connected cluster of at least two devices, by the Fiedler vector's sign.

    A half that falls apart keeps its largest part; the rest joins the other half, to which it is linked.
    """
    devices = np.array(cluster)
    links = network.adjacency[devices][:, devices]
    upper = np.round(spectrum(weights(links)).fiedler, 9) > 0
    for side in (True, False):
        inside = np.flatnonzero(upper == side)
        parts: IntArray = connected_components(links[inside][:, inside], directed=False)[1]
        stray = parts != np.bincount(parts).argmax()
        upper[inside[stray]] = not side
    return tuple(devices[upper].tolist()), tuple(devices[~upper].tolist())


def random_clusters(network: Network, rng: np.random.Generator) -> Clusters:
    """A random number of random connected clusters, each grown from a random device.

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

    >>> labels_of(((0, 2), (1,)), 3).tolist()
    [0, 1, 0]
    """
    labels = np.full(num_devices, -1, dtype=np.int64)
    for number, cluster in enumerate(clusters):
        labels[list(cluster)] = number
    return labels


def clusters_of(labels: IntArray) -> Clusters:
    """The clusters of equal labels, ordered by their lowest device.

    >>> clusters_of(np.array([7, 3, 7]))
    ((0, 2), (1,))
    """
    return tuple(sorted(tuple(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)))
