"""Networks from NetworkX graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.errors import InputError
from ssdfl.graph.network import (
    DEFAULT_BANDWIDTH_BPS,
    DEFAULT_COMPUTE_S,
    DEFAULT_LATENCY_S,
    Graph,
    Network,
    make_network,
)

Attributes = Mapping[str, Any]

_LINK_DEFAULTS = {"latency_s": DEFAULT_LATENCY_S, "bandwidth_Bps": DEFAULT_BANDWIDTH_BPS}


def from_networkx(graph: Graph, title: str = "network") -> Network:
    """A network from a NetworkX graph; nodes become devices 0, 1, … in their order in the graph.

    Reads the edge attributes ``latency_s``, ``bandwidth_Bps`` and ``added`` and the node attributes
    ``compute_s``, ``name``, and ``x, y`` or ``pos``; what is missing gets the default cost.

    Links go both ways at one cost. So a directed graph must have every edge in both directions with
    the same costs, and a multigraph no parallel edges.

    Raises:
        InputError: a value that is not a number, or an edge that is not such a link.

    Examples:
        >>> from_networkx(nx.path_graph(3)).num_links
        2
        >>> from_networkx(nx.path_graph(3).to_directed()).num_links
        2
    """
    if graph.is_directed() or graph.is_multigraph():
        graph = _undirected(graph)
    device = {node: i for i, node in enumerate(graph)}
    links = [(device[u], device[v]) for u, v in graph.edges()]
    of_links = [data for _, _, data in graph.edges(data=True)]
    added = [link for link, data in zip(links, of_links, strict=True) if data.get("added")]
    link_names = [f"link {i}-{j}" for i, j in links]
    latency_s, bandwidth_Bps = (
        _numbers(key, default, of_links, link_names) for key, default in _LINK_DEFAULTS.items()
    )
    names, compute_s, positions = _devices(graph)
    return make_network(
        len(device),
        links,
        latency_s=latency_s,
        bandwidth_Bps=bandwidth_Bps,
        compute_s=compute_s,
        names=names,
        positions=positions,
        added_links=added,
        title=title,
    )


def _devices(graph: Graph) -> tuple[list[str], list[float], FloatArray | None]:
    """What the nodes are called, what a local step costs them, and where they are."""
    names = [str(data.get("name", node)) for node, data in graph.nodes(data=True)]
    attributes = [data for _, data in graph.nodes(data=True)]
    device_names = [f"device {name}" for name in names]
    compute_s = _numbers("compute_s", DEFAULT_COMPUTE_S, attributes, device_names)
    return names, compute_s, _positions(attributes)


def _undirected(graph: Graph) -> Graph:
    """The simple graph of the same links, if every edge is one link that goes both ways."""
    for source, target in graph.edges():
        if source == target:
            continue
        if graph.number_of_edges(source, target) > 1:
            remedy = "Merge its edges into one, with the latency and bandwidth that they have together."
            raise InputError("link", f"{source}-{target}", "one edge, not several in parallel", remedy)
        if graph.is_directed():
            _check_both_ways(graph, source, target)
    return nx.Graph(graph)


def _check_both_ways(graph: Graph, source: Any, target: Any) -> None:
    if not graph.has_edge(target, source):
        remedy = f"Add the edge {target} → {source}, or pass graph.to_undirected() if links go both ways."
        raise InputError("link", f"{source} → {target}", "a link in both directions", remedy)
    there, back = _edge_data(graph, source, target), _edge_data(graph, target, source)
    where = f"link {source}-{target}"
    for key, default in _LINK_DEFAULTS.items():
        forth_and_back = _numbers(key, default, (there, back), (where, where))
        if forth_and_back[0] != forth_and_back[1]:
            got = "{:g} one way and {:g} the other".format(*forth_and_back)
            remedy = "Choose one cost for the link, for instance that of the slower direction."
            raise InputError(f"{key} of {where}", got, "the same in both directions", remedy)


def _edge_data(graph: Graph, source: Any, target: Any) -> Attributes:
    """The attributes of the only edge from one node to another."""
    data: Attributes = graph.get_edge_data(source, target)
    return next(iter(data.values())) if graph.is_multigraph() else data


def _numbers(key: str, default: float, attributes: Sequence[Attributes], where: Sequence[str]) -> list[float]:
    """An attribute of every link or device; ``where`` names each in errors."""
    return [_number(data, key, default, place) for data, place in zip(attributes, where, strict=True)]


def _number(attributes: Attributes, key: str, default: float, where: str) -> float:
    try:
        return float(attributes.get(key, default))
    except (TypeError, ValueError):
        remedy = "Correct it or leave it out."
        raise InputError(f"{key} of {where}", attributes[key], "a number", remedy) from None


def _positions(devices: Sequence[Attributes]) -> FloatArray | None:
    """(N, 2) places, if every device has one."""
    if _all_have(devices, "pos"):
        return np.array([data["pos"] for data in devices], dtype=float)
    if _all_have(devices, "x") and _all_have(devices, "y"):
        return np.array([[_number(data, axis, 0.0, "a device") for axis in "xy"] for data in devices])
    return None


def _all_have(devices: Sequence[Attributes], key: str) -> bool:
    return bool(devices) and all(key in data for data in devices)
