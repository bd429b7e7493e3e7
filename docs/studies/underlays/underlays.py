"""Real networks as silos see them, and the overlays that are compared on them.

The model is that of Marfoq, Xu, Neglia and Vidal, "Throughput-Optimal Topology Design for
Cross-Silo Federated Learning", NeurIPS 2020: every pair of silos is connected over the shortest
path of the underlay.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import networkx as nx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from ssdfl.errors import InputWarning
from ssdfl.graph import Clock, MixingMatrix, Network, load_network, make_network

FILES = {
    "Gaia": "gaia.gml",
    "AWS North America": "amazon_us.gml",
    "Géant": "geantdistance.gml",
    "Exodus": "exodus.gml",
    "Ebone": "ebone.gml",
}
CORE_BPS = 1e9 / 8
COMPUTE_S = 0.0254
MS_PER_KM, MS_PER_PATH = 0.0085, 4.0
NEIGHBOURS = 2
"""How many nearest silos the overlay of near ones joins each with."""

Links = list[tuple[int, int]]


def read_underlay(folder: Path, name: str) -> Network:
    """An underlay from its file, with latencies by its links' lengths."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", InputWarning
        )  # of a capacity that all links share, and of lengths
        return load_network(folder / FILES[name])


def silos(underlay: Network, access_bps: float) -> Network:
    """The complete network of all pairs of silos, each over the underlay's shortest path by length.

    A path has the latency of its whole length and the core's bandwidth divided by its hops. The
    silos' access links are their uplinks and downlinks.
    """
    length_km = (underlay.latency_s * 1e3 - MS_PER_PATH) / MS_PER_KM
    km, before = shortest_path(
        underlay.link_matrix(np.maximum(length_km, 1e-9)), directed=False, return_predecessors=True
    )
    pairs = list(combinations(range(underlay.num_devices), 2))
    hops = [_hops(before, i, j) for i, j in pairs]
    return make_network(
        underlay.num_devices,
        pairs,
        latency_s=[(MS_PER_PATH + MS_PER_KM * km[i, j]) * 1e-3 for i, j in pairs],
        bandwidth_Bps=CORE_BPS / np.array(hops),
        compute_s=COMPUTE_S,
        uplink_Bps=access_bps / 8,
        downlink_Bps=access_bps / 8,
        names=underlay.names,
    )


def _hops(before: np.ndarray, source: int, target: int) -> int:
    hops = 0
    while target != source:
        target = int(before[source, target])
        hops += 1
    return hops


def overlay(network: Network, links: Iterable[tuple[int, int]]) -> Network:
    """The network with some of its links only."""
    wanted = {(min(link), max(link)) for link in links}
    keep = [k for k, link in enumerate(network.links.tolist()) if tuple(link) in wanted]
    return replace(
        network,
        links=network.links[keep],
        latency_s=network.latency_s[keep],
        bandwidth_Bps=network.bandwidth_Bps[keep],
    )


def weighted(network: Network, message_bytes: int) -> nx.Graph:
    """All pairs with what an exchange takes on an idle network: what the designs minimise."""
    graph = nx.Graph()
    time_s = network.latency_s + message_bytes / network.bandwidth_Bps + COMPUTE_S
    graph.add_weighted_edges_from(
        (i, j, s) for (i, j), s in zip(network.links.tolist(), time_s.tolist(), strict=True)
    )
    return graph


def star(network: Network) -> Links:
    """All to the first silo: in a complete network every silo has the same load centrality."""
    return [(0, silo) for silo in range(1, network.num_devices)]


def tree(network: Network, message_bytes: int) -> Links:
    """The minimum spanning tree."""
    return list(nx.minimum_spanning_tree(weighted(network, message_bytes)).edges())


def tour(network: Network, message_bytes: int) -> Links:
    """Christofides' tour, a link from each silo to the next."""
    return list(pairwise(nx.approximation.christofides(weighted(network, message_bytes))))


def near(network: Network, message_bytes: int) -> Links:
    """The minimum spanning tree, and a link from each silo to its nearest."""
    graph = weighted(network, message_bytes)
    links = tree(network, message_bytes)
    for silo in graph:
        nearest = sorted(graph[silo], key=lambda other: (graph[silo][other]["weight"], other))
        links += [(silo, other) for other in nearest[:NEIGHBOURS]]
    return links


def ring_matrix(num_silos: int, links: Links) -> MixingMatrix:
    """Each takes the mean of itself and of the one before it; links go one way."""
    sender, receiver = np.array(links).T
    shift = csr_array((np.ones(num_silos), (receiver, sender)), shape=(num_silos, num_silos))
    return csr_array((shift + csr_array(np.eye(num_silos))) / 2)


def star_step(clock: Clock, ready_s: np.ndarray, compute_s: np.ndarray) -> np.ndarray:
    """Train, send to the centre, hear from it: two exchanges, the first after training."""
    n = clock.network.num_devices
    silos = np.arange(1, n)
    up = csr_array((np.ones(n - 1), (np.zeros(n - 1, dtype=int), silos)), shape=(n, n))
    ready_s, _ = clock.advance(ready_s, up, compute_s)
    ready_s, _ = clock.advance(ready_s, csr_array(up.T), np.zeros(n))
    return ready_s


def cycle_s(clock: Clock, W: MixingMatrix | None, steps: int = 400) -> float:
    """Seconds of a step in the long run if all train in every step; without a matrix, a star's."""
    ready_s, compute_s = np.zeros(clock.network.num_devices), clock.network.compute_s
    times: list[float] = []
    for _ in range(steps):
        if W is None:
            ready_s = star_step(clock, ready_s, compute_s)
        else:
            ready_s, _ = clock.advance(ready_s, W, compute_s)
        times.append(float(ready_s.max()))
    return (times[-1] - times[steps // 2 - 1]) / (steps - steps // 2)


def named(network: Network, indices: Sequence[int]) -> str:
    """Silos by name, for people."""
    return ", ".join(network.names[k] for k in indices)
