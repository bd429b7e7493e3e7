"""Partition a network into connected clusters, by recursive spectral bisection or at random."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

import numpy as np

from ssdfl.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from ssdfl.errors import check_range
from ssdfl.graph import (
    DENSE_LIMIT,
    Blocks,
    MixingMatrix,
    NestedModes,
    Network,
    Weights,
    component_labels,
    make_blocks,
    metropolis,
)

_FAR = 4  # clusters are examined ahead if there will be one for every four devices or more

Cluster = tuple[int, ...]
Clusters = tuple[Cluster, ...]


def spectral_bisection(
    network: Network, num_clusters: int, weights: Weights = metropolis
) -> Clusters:
    """Split the worst-mixing cluster by the best cut along its Fiedler vector, repeatedly.

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
        "There cannot be more clusters than devices.",
    )
    return next(bisections(network.adjacency, weights, [num_clusters]))


def bisections(links: SparseMatrix, weights: Weights, sizes: Iterable[int]) -> Iterator[Clusters]:
    """Partitions from repeatedly bisecting the worst-mixing cluster, at the given sizes.

    Args:
        links: (N, N) the links; some weight rules use their values.
        sizes: numbers of clusters from 1 to N, in any order; partitions come in ascending order.
    """
    wanted = sorted(set(sizes))
    splitting = _Splitting(links, weights, max(wanted, default=1))
    for size in wanted:
        while len(splitting.clusters) < size:
            splitting.split_worst()
        yield tuple(cluster for _, cluster in sorted(splitting.clusters.items()))


class _Part:
    """A cluster in repeated bisection; its two parts are computed when first needed."""

    __slots__ = ("cluster", "halves", "lambda_2", "parts")

    def __init__(self, devices: IntArray) -> None:
        self.cluster: Cluster = tuple(devices.tolist())
        self.lambda_2 = 0.0
        self.halves: tuple[IntArray, ...] = ()
        self.parts: tuple[_Part, ...] = ()


class _Splitting:
    """Clusters of a network; each step splits the worst-mixing one.

    A cluster's halves do not depend on the order of splits. So small clusters are examined in
    batches: when the parts of one are needed, all that wait are examined with it, and if most of
    their parts will be needed later, these too, down to single devices.

    Attributes:
        clusters: the current clusters, by their lowest device.
    """

    def __init__(self, links: SparseMatrix, weights: Weights, most: int) -> None:
        self._links, self._weights = links, weights
        self._mode_of = NestedModes(links.shape[0])
        self._looks_far = _FAR * most >= links.shape[0]
        self.clusters: dict[int, Cluster] = {}
        self._queue: list[tuple[float, int, _Part]] = []
        self._waiting: list[_Part] = []
        for part in self._look_at([np.arange(links.shape[0])]):
            self._add(part)

    def split_worst(self) -> None:
        """Replace the cluster of largest λ₂ by its halves; ties go to the lowest device."""
        worst = heappop(self._queue)[2]
        if not worst.parts:
            self._look_ahead(worst)
        del self.clusters[worst.cluster[0]]
        for part in worst.parts:
            self._add(part)

    def _add(self, part: _Part) -> None:
        self.clusters[part.cluster[0]] = part.cluster
        if len(part.cluster) > 1:
            heappush(self._queue, (-round(part.lambda_2, 9), part.cluster[0], part))
            if len(part.cluster) <= DENSE_LIMIT and not part.parts:
                self._waiting.append(part)

    def _look_ahead(self, worst: _Part) -> None:
        """Find the parts of a cluster and, if it is small, of all other small clusters."""
        small = len(worst.cluster) <= DENSE_LIMIT
        chosen = self._waiting if small else [worst]
        found = self._look_into(chosen)
        if small:
            self._waiting = []
        while small and self._looks_far and found:
            found = self._look_into([part for part in found if len(part.cluster) > 1])

    def _look_into(self, chosen: list[_Part]) -> list[_Part]:
        """Find the parts of clusters."""
        found = self._look_at([half for part in chosen for half in part.halves])
        for part, parts in zip(chosen, _pairs(found), strict=True):
            part.parts, part.halves = parts, ()
        return found

    def _look_at(self, groups: list[IntArray]) -> list[_Part]:
        """Find λ₂ and the halves of clusters."""
        found = list(map(_Part, groups))
        several = [k for k, devices in enumerate(groups) if len(devices) > 1]
        if several:
            chosen = [groups[k] for k in several]
            blocks = make_blocks(self._links, chosen, self._weights, self._mode_of)
            values, fiedler = blocks.slowest
            split = zip(several, values.tolist(), halves_of(blocks, fiedler), strict=True)
            for k, lambda_2, halves in split:
                found[k].lambda_2, found[k].halves = lambda_2, halves
        return found


def _pairs(values: list[_Part]) -> Iterator[tuple[_Part, _Part]]:
    """The values in pairs."""
    return zip(values[::2], values[1::2], strict=True)


def halves_of(blocks: Blocks, fiedler: FloatArray) -> list[tuple[IntArray, IntArray]]:
    """Two connected halves of each of several connected clusters: sweep cuts of Fiedler vectors.

    Devices are ordered by the vector, ties by id, and cut where the cut conductance
    (`eq:cut_conductance_defn`) is lowest. A half that falls apart keeps its largest part; the rest
    joins the other half, to which it is linked.

    Args:
        fiedler: (n,) the clusters' Fiedler vectors, one after the other.
    """
    first = blocks.sweep(fiedler)
    for number in np.flatnonzero(blocks.parts(first) != 2).tolist():
        inside = blocks.places(number)
        first[inside] = _in_one_piece(blocks.matrix(number), first[inside])
    starts = blocks.starts[1:-1]
    pairs = zip(np.split(blocks.devices, starts), np.split(first, starts), strict=True)
    return [(devices[mask], devices[~mask]) for devices, mask in pairs]


def _in_one_piece(W: MixingMatrix, first: BoolArray) -> BoolArray:
    """A cut with connected sides: parts that are separated from one side join the other."""
    first = first.copy()
    for side in (True, False):
        inside = np.flatnonzero(first == side)
        parts = component_labels(W[inside][:, inside])
        stray = parts != np.bincount(parts).argmax()
        first[inside[stray]] = not side
    return first


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
    """(N,) the number of each device's cluster.

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
