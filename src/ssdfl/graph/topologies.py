"""Generated networks: the paper's five, and networks whose clusters are known.

Every function here is a network spec: ``er:n=30,p=0.1`` calls ``TOPOLOGIES["er"](n=30, p=0.1)``, so
the parameters have the short names of specs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ssdfl.arrays import IntArray
from ssdfl.errors import check_range
from ssdfl.graph.connect import missing_links
from ssdfl.graph.conversion import from_networkx
from ssdfl.graph.memory import check_fits
from ssdfl.graph.network import (
    DEFAULT_BANDWIDTH_BPS,
    DEFAULT_LATENCY_S,
    Graph,
    Network,
    make_network,
)
from ssdfl.graph.places import gaia
from ssdfl.lazy import LazyModule
from ssdfl.rng import generator

if TYPE_CHECKING:
    import networkx as nx
else:
    nx = LazyModule("networkx")


def erdos_renyi(n: int, p: float, seed: int = 0) -> Network:
    """G(n, p): every link exists with probability p. The paper's RNG."""
    _check_size("n", n)
    check_range("p", p, 0, 1, "Choose a link probability such as p=0.1.")
    check_fits("er", n, p * n * n / 2)
    negligible = p < 1e-12  # too small for the logarithm in NetworkX
    return _joined(nx.fast_gnp_random_graph(n, 0 if negligible else p, seed=seed), seed)


def barabasi_albert(n: int, m: int = 1, seed: int = 0) -> Network:
    """Preferential attachment to m earlier, well-linked devices; the paper's PrefA."""
    _check_size("n", n)
    check_range("m", m, 1, max(n - 1, 1), "m is the number of links of a new device.")
    check_fits("ba", n, m * n)
    return _joined(nx.barabasi_albert_graph(n, m, seed=seed) if n > 1 else nx.empty_graph(1), seed)


def random_geometric(n: int, radius: float = 0.2, seed: int = 0) -> Network:
    """Devices at random positions in a unit square, linked within a radius. The paper's RGeo."""
    _check_size("n", n)
    check_range("radius", radius, 0, remedy="The square has side 1; choose radius=0.2 or so.")
    check_fits("rgeo", n, min(np.pi * min(radius, 1.0) ** 2, 1.0) * n * n / 2)
    return _joined(nx.random_geometric_graph(n, radius, seed=seed), seed)


def watts_strogatz(n: int, k: int = 4, p: float = 0.2, seed: int = 0) -> Network:
    """Small world: a ring of k nearest neighbours each, whose links are rewired with probability p.

    An odd k counts as k − 1, so the paper's k = 3 is a rewired ring with k = 2.
    """
    _check_size("n", n)
    check_range("k", k, 0, n - 1, "k counts the neighbours on the ring.")
    check_range("p", p, 0, 1, "p is the probability that a link is rewired.")
    check_fits("ws", n, k * n / 2)
    return _joined(nx.watts_strogatz_graph(n, k, p, seed=seed), seed)


def complete(n: int) -> Network:
    """All devices are linked to each other. The paper's Comp."""
    _check_size("n", n)
    check_fits("complete", n, n * (n - 1) / 2)
    return from_networkx(nx.complete_graph(n))


def ring(n: int) -> Network:
    """A cycle of n devices."""
    _check_size("n", n)
    check_fits("ring", n, n)
    return from_networkx(nx.cycle_graph(n))


def path(n: int) -> Network:
    """A line of n devices."""
    _check_size("n", n)
    check_fits("path", n, n)
    return from_networkx(nx.path_graph(n))


def star(n: int) -> Network:
    """Device 0 in the middle of n − 1 others."""
    _check_size("n", n)
    check_fits("star", n, n)
    return from_networkx(nx.star_graph(n - 1))


def grid(rows: int, cols: int) -> Network:
    """A rectangular lattice."""
    return _lattice(rows, cols, periodic=False)


def torus(rows: int, cols: int) -> Network:
    """A rectangular lattice whose opposite sides are glued together."""
    return _lattice(rows, cols, periodic=True)


def _lattice(rows: int, cols: int, periodic: bool) -> Network:
    _check_size("rows", rows)
    _check_size("cols", cols)
    check_fits("lattice", rows * cols, 2 * rows * cols)
    graph = nx.grid_2d_graph(rows, cols, periodic=periodic)
    nx.set_node_attributes(graph, {(r, c): (c, -r) for r, c in graph}, "pos")
    return from_networkx(nx.convert_node_labels_to_integers(graph, ordering="sorted"))


def stochastic_block(
    blocks: int, size: int, p_in: float = 0.5, p_out: float = 0.02, seed: int = 0
) -> Network:
    """Blocks of equal size: links inside with probability p_in, between them with p_out."""
    _check_size("blocks", blocks)
    _check_size("size", size)
    check_range("p_in", p_in, 0, 1)
    check_range("p_out", p_out, 0, 1)
    check_fits("sbm", blocks * size, (p_in / blocks + p_out) * (blocks * size) ** 2 / 2 + blocks**2)
    chances = np.full((blocks, blocks), p_out)
    np.fill_diagonal(chances, p_in)
    drawn = nx.stochastic_block_model([size] * blocks, chances.tolist(), seed=seed)
    graph = nx.empty_graph(blocks * size)
    graph.add_edges_from(drawn.edges)
    return _joined(graph, seed)


def barbell(size: int, bridge: int = 0) -> Network:
    """Two cliques of equal size, joined by one link or by a path over ``bridge`` devices."""
    check_range("size", size, 2, remedy="A clique of a barbell has at least 2 devices.")
    check_range("bridge", bridge, 0)
    check_fits("barbell", 2 * size + bridge, size * (size - 1) + bridge)
    graph = nx.empty_graph(2 * size + bridge)
    graph.add_edges_from(nx.barbell_graph(size, bridge).edges)
    return from_networkx(graph)


def ring_of_cliques(cliques: int, size: int) -> Network:
    """Cliques in a ring, one link from each to the next."""
    check_range("cliques", cliques, 2, remedy="A ring has at least 2 cliques.")
    check_range("size", size, 2, remedy="A clique has at least 2 devices.")
    check_fits("cliques", cliques * size, cliques * size * (size - 1) / 2)
    return from_networkx(nx.ring_of_cliques(cliques, size))


def two_tier_sites(
    sites: int,
    size: int,
    density: float = 1.0,
    links: int = 1,
    slowdown: float = 10.0,
    seed: int = 0,
) -> Network:
    """Dense sites in a ring, joined by a few links that are ``slowdown`` times slower.

    Inside a site any two devices are linked with probability ``density``; ``links`` random pairs of
    devices join each site to the next. Site s holds the devices s·size … (s + 1)·size − 1.
    """
    _check_size("sites", sites)
    _check_size("size", size)
    check_range("density", density, 0, 1)
    check_range(
        "links", links, 1, size * size, "It counts the links between two neighbouring sites."
    )
    check_range(
        "slowdown", slowdown, 1, remedy="It says how many times slower a link between sites is."
    )
    check_fits("sites", sites * size, sites * (density * size * (size - 1) / 2 + links))
    inside, added = _links_of_sites(sites, size, density, seed)
    across = _links_between_sites(sites, size, links, seed)
    slower = np.concatenate([np.ones(len(inside)), np.full(len(across), float(slowdown))])
    return make_network(
        sites * size,
        np.concatenate([inside, across]),
        latency_s=DEFAULT_LATENCY_S * slower,
        bandwidth_Bps=DEFAULT_BANDWIDTH_BPS / slower,
        positions=np.array(_places_of_sites(sites, size)),
        added_links=added,
    )


def _links_of_sites(
    sites: int, size: int, density: float, seed: int
) -> tuple[IntArray, list[tuple[int, int]]]:
    """(L, 2) the links inside all sites, and those of them that were added to connect a site."""
    if density == 1:
        first, second = np.triu_indices(size, 1)
        pairs = np.stack([first, second], axis=1)
        return (size * np.arange(sites)[:, None, None] + pairs).reshape(-1, 2), []
    links: list[tuple[int, int]] = []
    added: list[tuple[int, int]] = []
    for site in range(sites):
        one = _site(size, density, int(generator(seed, "site", site).integers(2**31)))
        links += [(site * size + i, site * size + j) for i, j in one.edges]
        new = [(i, j) for i, j, data in one.edges(data=True) if data.get("added")]
        added += [(site * size + i, site * size + j) for i, j in new]
    return np.array(links, dtype=np.int64).reshape(-1, 2), added


def _site(size: int, density: float, seed: int) -> Graph:
    """The devices 0 … size − 1 of a site, connected."""
    graph: Graph = nx.gnp_random_graph(size, density, seed=seed)
    graph.add_edges_from(missing_links(graph, seed), added=True)
    return graph


def _links_between_sites(sites: int, size: int, links: int, seed: int) -> IntArray:
    """(L, 2) random links from each site to the next."""
    rng = generator(seed, "sites")
    found = []
    for a, b in _pairs_in_a_ring(sites):
        drawn = rng.choice(size * size, size=links, replace=False)
        found.append(np.stack([a * size + drawn // size, b * size + drawn % size], axis=1))
    return np.concatenate([np.empty((0, 2), dtype=np.int64), *found])


def _pairs_in_a_ring(number: int) -> list[tuple[int, int]]:
    """Neighbours on a ring of 0 … number − 1."""
    pairs = list(pairwise(range(number)))
    return [*pairs, (0, number - 1)] if number > 2 else pairs


def _places_of_sites(sites: int, size: int) -> list[tuple[float, float]]:
    """Small circles of devices on a large circle of sites."""
    radius = 0.36 * np.sin(np.pi / max(sites, 3))
    places = []
    for device in range(sites * size):
        around = 2 * np.pi * (device // size) / sites
        within = around + 2 * np.pi * (device % size + 0.35) / size
        places.append(
            (
                float(np.cos(around) + 2 * radius * np.cos(within)),
                float(np.sin(around) + 2 * radius * np.sin(within)),
            )
        )
    return places


def _joined(graph: Graph, seed: int) -> Network:
    added = missing_links(graph, seed)
    graph.add_edges_from(added, added=True)
    return from_networkx(graph)


def _check_size(what: str, value: int) -> None:
    check_range(what, value, 1, remedy=f"Choose {what} of at least 1.")


TOPOLOGIES: dict[str, Callable[..., Network]] = {
    "er": erdos_renyi,
    "ba": barabasi_albert,
    "rgeo": random_geometric,
    "ws": watts_strogatz,
    "complete": complete,
    "ring": ring,
    "path": path,
    "star": star,
    "grid": grid,
    "torus": torus,
    "sbm": stochastic_block,
    "barbell": barbell,
    "cliques": ring_of_cliques,
    "sites": two_tier_sites,
    "gaia": gaia,
}
