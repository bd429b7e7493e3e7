"""A partition that sees what links cost: slow links are kept between clusters.

Two families of partitions are weighed at every number of clusters, and the one of the better score is kept:
bisection of the network whose link weights fall with a link's time (it knows where the network is thin),
and agglomeration of devices over the fastest links first (it knows what the slowest link inside is).
Devices then move between clusters as long as that makes the score better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

import numpy as np
from scipy.sparse import csr_array

from ssdfl.arrays import FloatArray, IntArray, SparseMatrix
from ssdfl.clusters.partition import Clusters, bisections, clusters_of, labels_of
from ssdfl.clusters.scores import Score, ScoreInputs, evaluate
from ssdfl.graph import Weights, component_labels, num_components, scaled

_SAME_TIME = 1.1


def partitions_by_cost(inputs: ScoreInputs, sizes: Iterable[int]) -> Iterator[list[tuple[Clusters, str]]]:
    """For each number of clusters, in ascending order, the partitions of both families and their rules."""
    wanted = set(sizes)
    merges = agglomerate(inputs)
    n = inputs.network.num_devices
    last = max(wanted - {n}, default=1)
    for size, clusters in enumerate(bisections(link_speeds(inputs), _slowed(inputs.weights)), start=1):
        if size in wanted:
            merged = clusters_after_merges(merges, n, size)
            found = [(clusters, "bisection"), (merged, "agglomeration")]
            yield found if merged != clusters else found[:1]
        if size == last:
            break
    if n > last and n in wanted:
        yield [(clusters_after_merges(merges, n, n), "agglomeration")]


def link_speeds(inputs: ScoreInputs) -> SparseMatrix:
    """(N, N) 1 on links that never keep a device waiting, falling with the square of a slower link's time."""
    network = inputs.network
    i, j = network.links.T
    time_s = network.message_time_s(inputs.message_bytes)
    compute_s = network.compute_s * inputs.constants.local_steps
    free_s = np.maximum(np.maximum(compute_s[i], compute_s[j]), time_s.min(initial=np.inf))
    return network.link_matrix(np.minimum(1.0, free_s / np.maximum(time_s, 1e-300)) ** 2)


def _slowed(weights: Weights) -> Weights:
    """A weight rule whose weights are scaled by the links' speeds."""
    return lambda links: scaled(weights(links), links)


def agglomerate(inputs: ScoreInputs) -> IntArray:
    """(N − 1, 2) pairs of devices whose clusters merge, in order.

    The next to merge are those two linked clusters whose slowest link between them is fastest; among
    nearly equally fast ones, those that are linked most closely for their sizes.
    """
    network, A = inputs.network, inputs.A
    i, j = network.links.T
    compute_s = inputs.constants.local_steps * float(network.compute_s.max())
    level = _time_levels(network.message_time_s(inputs.message_bytes), compute_s)
    weight = np.asarray(A[i, j]).ravel()
    size = dict.fromkeys(range(network.num_devices), 1)
    between: dict[int, dict[int, tuple[int, float]]] = {device: {} for device in size}
    for a, b, t, w in zip(i.tolist(), j.tolist(), level.tolist(), weight.tolist(), strict=True):
        between[a][b] = between[b][a] = (t, w)

    def priority(a: int, b: int) -> tuple[int, float, int, int]:
        t, w = between[a][b]
        return t, -round(w / (size[a] * size[b]), 12), min(a, b), max(a, b)

    queue = [priority(a, b) for a in between for b in between[a] if a < b]
    heapify(queue)
    merges: list[tuple[int, int]] = []
    while queue:
        entry = heappop(queue)
        a, b = entry[2:]
        if a not in between or b not in between[a] or priority(a, b) != entry:
            continue
        merges.append((a, b))
        size[a] += size[b]
        del between[a][b]
        for c, (t, w) in between.pop(b).items():
            if c != a:
                del between[c][b]
                before = between[a].get(c, (0, 0.0))
                between[a][c] = between[c][a] = (max(t, before[0]), w + before[1])
        for c in between[a]:
            heappush(queue, priority(a, c))
    return np.array(merges, dtype=np.int64).reshape(-1, 2)


def _time_levels(time_s: FloatArray, compute_s: float) -> IntArray:
    """Times on a logarithmic scale of 10 % steps; what is over before a training step is all the same."""
    floor = max(compute_s, float(time_s.min(initial=np.inf)), 1e-300)
    levels: IntArray = np.round(np.log(np.maximum(time_s / floor, 1.0)) / np.log(_SAME_TIME)).astype(np.int64)
    return levels


def clusters_after_merges(merges: IntArray, num_devices: int, num_clusters: int) -> Clusters:
    """The clusters that are left when enough merges are done.

    Examples:
        >>> clusters_after_merges(np.array([[0, 1], [0, 2]]), num_devices=3, num_clusters=2)
        ((0, 1), (2,))
    """
    i, j = merges[: num_devices - num_clusters].T
    joined = csr_array((np.ones(len(i)), (i, j)), shape=(num_devices, num_devices))
    return clusters_of(component_labels(joined))


def move_devices(inputs: ScoreInputs, clusters: Clusters, score: Score, sweeps: int = 2) -> Clusters:
    """Move single devices to a linked cluster where that makes the score better; clusters stay connected.

    The number of clusters stays as it is, too.
    """
    labels = labels_of(clusters, inputs.network.num_devices)
    best = evaluate(score, inputs, clusters)
    for _ in range(sweeps):
        before = best
        for device in range(len(labels)):
            home = int(labels[device])
            near = inputs.network.neighbours(device)
            rivals = sorted(set(labels[near].tolist()) - {home})
            if not rivals or not _can_leave(inputs, labels, device):
                continue
            for rival in rivals:
                labels[device] = rival
                value = evaluate(score, inputs, clusters_of(labels))
                if value < best - 1e-9 * abs(best):
                    best, home = value, rival
            labels[device] = home
        if best == before:
            break
    return clusters_of(labels)


def _can_leave(inputs: ScoreInputs, labels: IntArray, device: int) -> bool:
    """Whether a device's cluster would still be there, and connected, without it."""
    rest = np.flatnonzero((labels == labels[device]) & (np.arange(len(labels)) != device))
    links = inputs.network.adjacency[rest][:, rest]
    return len(rest) > 0 and num_components(links) == 1
