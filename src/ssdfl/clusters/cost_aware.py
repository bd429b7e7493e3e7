"""A partition that considers the cost of links: slow links are kept between clusters.

At every number of clusters, two families of partitions are weighed and the better score is kept.
Bisection of the network, with link weights that fall with a link's time, finds where the network is
thin. Agglomeration merges devices over the fastest links first, which limits the slowest link
inside. Devices then move between clusters as long as the score improves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

import numpy as np
from scipy.sparse import csr_array

from ssdfl.arrays import IntArray, SparseMatrix
from ssdfl.clusters.partition import Clusters, bisections, clusters_of, labels_of
from ssdfl.clusters.scores import Score, ScoreInputs, evaluate
from ssdfl.graph import MixingMatrix, Weights, component_labels, num_components, scaled

_SAME_TIME = 1.1

Priority = tuple[int, float, int, int]
"""Level of time, minus closeness, and the two clusters."""


def partitions_by_cost(
    inputs: ScoreInputs, sizes: Iterable[int]
) -> Iterator[list[tuple[Clusters, str]]]:
    """The partitions of both families and their rules, for each number of clusters, ascending."""
    wanted = set(sizes)
    merges = agglomerate(Agglomeration(inputs))
    n = inputs.network.num_devices
    fewer = sorted(wanted - {n}) or ([1] if n == 1 else [])
    by_bisection = bisections(link_speeds(inputs), _slowed(inputs.weights), fewer)
    for size, bisected in zip(fewer, by_bisection, strict=True):
        yield _families(bisected, clusters_after_merges(merges, n, size))
    if n > 1 and n in wanted:
        yield [(clusters_after_merges(merges, n, n), "agglomeration")]


def _families(bisected: Clusters, merged: Clusters) -> list[tuple[Clusters, str]]:
    """Both partitions with their rules, or one of them if they are equal."""
    found = [(bisected, "bisection"), (merged, "agglomeration")]
    return found[:1] if bisected == merged else found


def link_speeds(inputs: ScoreInputs) -> SparseMatrix:
    """(N, N) 1 for links that delay no device; slower links fall with the square of their time."""
    network = inputs.network
    i, j = network.links.T
    time_s = network.message_time_s(inputs.message_bytes)
    hidden_s = inputs.hidden_s
    free_s = np.maximum(np.maximum(hidden_s[i], hidden_s[j]), time_s.min(initial=np.inf))
    return network.link_matrix(np.minimum(1.0, free_s / np.maximum(time_s, 1e-300)) ** 2)


def _slowed(weights: Weights) -> Weights:
    """A weight rule whose weights are scaled by the links' speeds."""

    def slowed(links: SparseMatrix) -> MixingMatrix:
        is_slow_somewhere = bool((links.data != 1).any())
        return scaled(weights(links), links) if is_slow_somewhere else weights(links)

    return slowed


def agglomerate(clusters: Agglomeration) -> IntArray:
    """(N − 1, 2) pairs of devices whose clusters merge, in order of increasing priority value."""
    queue = clusters.priorities()
    heapify(queue)
    merges: list[tuple[int, int]] = []
    while queue:
        entry = heappop(queue)
        if not clusters.is_current(entry):
            continue
        a, b = entry[2:]
        merges.append((a, b))
        clusters.merge(a, b)
        for c in clusters.between[a]:
            heappush(queue, clusters.priority(a, c))
    return np.array(merges, dtype=np.int64).reshape(-1, 2)


class Agglomeration:
    """Merges clusters; each is identified by its lowest device.

    The next two to merge are the linked clusters whose slowest link between them is fastest. Among
    nearly equal ones, those linked most closely for their sizes merge first.

    Attributes:
        size: devices of each cluster.
        between: for each pair of linked clusters, the level of their slowest link and the weight of
            all links between them.
    """

    def __init__(self, inputs: ScoreInputs) -> None:
        network = inputs.network
        i, j = network.links.T
        level = link_levels(inputs)
        weight = np.asarray(inputs.A[i, j]).ravel()
        self.size = dict.fromkeys(range(network.num_devices), 1)
        self.between: dict[int, dict[int, tuple[int, float]]] = {device: {} for device in self.size}
        for a, b, t, w in zip(i.tolist(), j.tolist(), level.tolist(), weight.tolist(), strict=True):
            self.between[a][b] = self.between[b][a] = (t, w)

    def priority(self, a: int, b: int) -> Priority:
        """The position of a pair of clusters in the queue, and the pair."""
        level, weight = self.between[a][b]
        closeness = round(weight / (self.size[a] * self.size[b]), 12)
        return level, -closeness, min(a, b), max(a, b)

    def priorities(self) -> list[Priority]:
        """The priorities of all linked pairs."""
        return [self.priority(a, b) for a in self.between for b in self.between[a] if a < b]

    def is_current(self, entry: Priority) -> bool:
        """Whether both clusters of an entry still exist unchanged."""
        a, b = entry[2:]
        linked = a in self.between and b in self.between[a]
        return linked and self.priority(a, b) == entry

    def merge(self, a: int, b: int) -> None:
        """Merge cluster b into cluster a."""
        self.size[a] += self.size[b]
        links_of_b = self.between.pop(b)
        del links_of_b[a], self.between[a][b]
        for c, (level, weight) in links_of_b.items():
            del self.between[c][b]
            before = self.between[a].get(c, (0, 0.0))
            self.between[a][c] = self.between[c][a] = (max(level, before[0]), weight + before[1])


def link_levels(inputs: ScoreInputs) -> IntArray:
    """(L,) link times in logarithmic steps of 10 %; 0 if a training step hides the link."""
    time_s = inputs.network.message_time_s(inputs.message_bytes)
    floor = max(float(inputs.hidden_s.max()), float(time_s.min(initial=np.inf)), 1e-300)
    levels: IntArray = np.round(
        np.log(np.maximum(time_s / floor, 1.0)) / np.log(_SAME_TIME)
    ).astype(np.int64)
    return levels


def clusters_after_merges(merges: IntArray, num_devices: int, num_clusters: int) -> Clusters:
    """The clusters that remain after enough merges.

    Examples:
        >>> clusters_after_merges(np.array([[0, 1], [0, 2]]), num_devices=3, num_clusters=2)
        ((0, 1), (2,))
    """
    i, j = merges[: num_devices - num_clusters].T
    joined = csr_array((np.ones(len(i)), (i, j)), shape=(num_devices, num_devices))
    return clusters_of(component_labels(joined))


def move_devices(
    inputs: ScoreInputs, clusters: Clusters, score: Score, sweeps: int = 2
) -> Clusters:
    """Move single devices to a linked cluster where that improves the score.

    Clusters stay connected, and their number stays the same.
    """
    labels = labels_of(clusters, inputs.network.num_devices)
    best = evaluate(score, inputs, clusters)
    for _ in range(sweeps):
        before = best
        for device in range(len(labels)):
            best = _move_device(inputs, labels, device, score, best)
        if best == before:
            break
    return clusters_of(labels)


def _move_device(
    inputs: ScoreInputs, labels: IntArray, device: int, score: Score, best: float
) -> float:
    """Give a device the label of the best cluster next to it; returns the score."""
    home = int(labels[device])
    near = inputs.network.neighbours(device)
    rivals = sorted(set(labels[near].tolist()) - {home})
    if not rivals or not _can_leave(inputs, labels, device):
        return best
    for rival in rivals:
        labels[device] = rival
        value = evaluate(score, inputs, clusters_of(labels))
        if value < best - 1e-9 * abs(best):
            best, home = value, rival
    labels[device] = home
    return best


def _can_leave(inputs: ScoreInputs, labels: IntArray, device: int) -> bool:
    """Whether a device's cluster would be nonempty and connected without it."""
    rest = np.flatnonzero((labels == labels[device]) & (np.arange(len(labels)) != device))
    links = inputs.network.adjacency[rest][:, rest]
    return len(rest) > 0 and num_components(links) == 1
