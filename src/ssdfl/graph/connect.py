"""Join the components of a random graph, since the paper's sparse networks are rarely connected."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, cast

import numpy as np

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.graph.network import Graph, Link
from ssdfl.lazy import LazyModule
from ssdfl.rng import generator

if TYPE_CHECKING:
    import networkx as nx
    import scipy.spatial as spatial
else:
    nx = LazyModule("networkx")
    spatial = LazyModule("scipy.spatial")


def missing_links(graph: Graph, seed: int) -> list[Link]:
    """The fewest links that make a graph on 0 … N − 1 connected.

    If devices have positions (attribute ``pos``), components are joined by their closest pair,
    otherwise by a random pair.

    Examples:
        >>> missing_links(nx.path_graph(3), seed=0)
        []
        >>> len(missing_links(nx.empty_graph(4), seed=0))
        3
    """
    components = sorted(sorted(component) for component in nx.connected_components(graph))
    joined, *rest = components or [[]]
    coordinates = _coordinates(graph)
    rng = generator(seed, "join")
    links: list[Link] = []
    while rest:
        if coordinates is None:
            link = (int(rng.choice(joined)), int(rng.choice(rest[0])))
        else:
            link = _closest_pair(joined, list(chain.from_iterable(rest)), coordinates)
        links.append(link)
        newcomer = next(component for component in rest if link[1] in component)
        rest.remove(newcomer)
        joined = joined + newcomer
    return links


def _coordinates(graph: Graph) -> FloatArray | None:
    """(N, 2) the positions of devices, if they have any."""
    places = nx.get_node_attributes(graph, "pos")
    return np.array([places[i] for i in sorted(graph)]) if places else None


def _closest_pair(left: list[int], right: list[int], coordinates: FloatArray) -> Link:
    found = spatial.cKDTree(coordinates[right]).query(coordinates[left])
    gaps, nearest = cast(tuple[FloatArray, IntArray], found)  # scalars only for a single point
    i = int(gaps.argmin())
    return left[i], right[int(nearest[i])]
