"""Networks from NetworkX graphs, and from what files list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.errors import InputError
from ssdfl.graph.attributes import (
    DEVICE_UNITS,
    LINK_UNITS,
    MS_PER_KM,
    MS_PER_LINK,
    Attributes,
    coordinates_of,
    great_circle_km,
    ignored,
    latency_of_distance,
    read_costs,
)
from ssdfl.graph.listing import Listing, listing_of
from ssdfl.graph.network import (
    DEFAULT_BANDWIDTH_BPS,
    DEFAULT_COMPUTE_S,
    DEFAULT_LATENCY_S,
    Graph,
    Network,
    make_network,
)
from ssdfl.lazy import LazyModule

if TYPE_CHECKING:
    import networkx as nx
else:
    nx = LazyModule("networkx")

_LINK_DEFAULTS = {"latency_s": DEFAULT_LATENCY_S, "bandwidth_Bps": DEFAULT_BANDWIDTH_BPS}
DEVICE_DEFAULTS = {"compute_s": DEFAULT_COMPUTE_S, "uplink_Bps": np.inf, "downlink_Bps": np.inf}


def from_networkx(graph: Graph, title: str = "network") -> Network:
    """A network from a NetworkX graph; nodes become devices 0, 1, … in their order in the graph.

    Reads the edge attributes ``latency_s``, ``bandwidth_Bps`` and ``added`` and the node attributes
    ``compute_s``, ``uplink_Bps``, ``downlink_Bps``, ``name``, and ``x, y`` or ``pos``; costs also
    in the units of `LINK_UNITS` and `DEVICE_UNITS`. A link without a latency gets it from
    ``distance`` in km, or else from the coordinates ``longitude, latitude`` of its devices. Missing
    costs get their defaults.

    Links have the same cost in both directions. So a directed graph must have every edge in both
    directions with the same costs, and a multigraph must have no parallel edges.

    Raises:
        InputError: a value is not a number, or an edge is not such a link.

    Examples:
        >>> from_networkx(nx.path_graph(3)).num_links
        2
        >>> from_networkx(nx.path_graph(3).to_directed()).num_links
        2
    """
    if graph.is_directed() or graph.is_multigraph():
        graph = _undirected(graph)
    return from_listing(listing_of(graph), title=title)


def from_listing(listing: Listing, title: str = "network") -> Network:
    """A network from listed devices and links, whose attributes are read as `from_networkx` does.

    Raises:
        InputError: a value that is not a number.
    """
    place = {key: i for i, key in enumerate(listing.devices)}
    links = [(place[u], place[v]) for u, v in listing.links]
    of_links = list(listing.links.values())
    added = [link for link, data in zip(links, of_links, strict=True) if data.get("added")]
    of_devices = list(listing.devices.values())
    names = [str(data.get("name", key)) for key, data in listing.devices.items()]
    coordinates = [coordinates_of(data) for data in of_devices]
    latency_s, bandwidth_Bps = _link_costs(links, of_links, coordinates)
    return make_network(
        len(place),
        links,
        latency_s=latency_s,
        bandwidth_Bps=bandwidth_Bps,
        **device_costs(names, of_devices),
        names=names,
        positions=_positions(of_devices, coordinates),
        geographic=_is_geographic(coordinates),
        added_links=added,
        title=title,
    )


def announcements(listing: Listing) -> list[str]:
    """Notes on a file that was read: ignored attributes, and costs that were derived."""
    of_links, of_devices = listing.links.values(), listing.devices.values()
    notes = [*ignored(of_links, LINK_UNITS, "link"), *ignored(of_devices, DEVICE_UNITS, "device")]
    located = [coordinates_of(data) for data in of_devices]
    missing = sum(place is None for place in located)
    if 0 < missing < len(located):
        notes.append(f"{missing} of {len(located)} devices have no coordinates, so there is no map")
    place = dict(zip(listing.devices, located, strict=True))
    sources = {
        _source_of_latency(data, place[u], place[v]) for (u, v), data in listing.links.items()
    }
    rule = f"{MS_PER_LINK:g} ms + {MS_PER_KM:g} ms/km"
    return [
        *notes,
        *(f"latency of links from {source}: {rule}" for source in sorted(sources - {""})),
    ]


Place = tuple[float, float] | None


def _source_of_latency(attributes: Attributes, here: Place, there: Place) -> str:
    """The source of a link's latency, as text; empty if it is given or assumed."""
    costs = read_costs(attributes, LINK_UNITS, "link")
    if "latency_s" in costs:
        return ""
    if "distance_km" in costs:
        return "their distance in km"
    return "the coordinates of their ends" if here is not None and there is not None else ""


def _link_costs(
    links: Sequence[tuple[int, int]], attributes: Sequence[Attributes], coordinates: Sequence[Place]
) -> tuple[list[float], list[float]]:
    """Latency and bandwidth of every link."""
    costs = [
        {**_LINK_DEFAULTS, **_derived(data, coordinates[i], coordinates[j], f"link {i}-{j}")}
        for (i, j), data in zip(links, attributes, strict=True)
    ]
    return [one["latency_s"] for one in costs], [one["bandwidth_Bps"] for one in costs]


def _derived(attributes: Attributes, here: Place, there: Place, where: str) -> dict[str, float]:
    """A link's costs; if it has only a length, its latency is derived from it."""
    costs = read_costs(attributes, LINK_UNITS, where)
    if "latency_s" in costs:
        return costs
    if "distance_km" not in costs and here is not None and there is not None:
        costs["distance_km"] = great_circle_km(here, there)
    if "distance_km" in costs:
        costs["latency_s"] = latency_of_distance(costs["distance_km"])
    return costs


def device_costs(names: Sequence[str], attributes: Sequence[Attributes]) -> dict[str, FloatArray]:
    """(N,) values of each cost of devices, by its name in `Network`."""
    costs = [
        {**DEVICE_DEFAULTS, **read_costs(data, DEVICE_UNITS, f"device {name}")}
        for name, data in zip(names, attributes, strict=True)
    ]
    return {name: np.array([one[name] for one in costs]) for name in DEVICE_DEFAULTS}


def _undirected(graph: Graph) -> Graph:
    """The simple graph of the same links, if every edge is one link in both directions."""
    for source, target in graph.edges():
        if source == target:
            continue
        if graph.number_of_edges(source, target) > 1:
            remedy = (
                "Merge its edges into one, with the latency and bandwidth that they have together."
            )
            raise InputError(
                "link", f"{source}-{target}", "one edge, not several in parallel", remedy
            )
        if graph.is_directed():
            _check_both_ways(graph, source, target)
    return nx.Graph(graph)


def _check_both_ways(graph: Graph, source: Any, target: Any) -> None:
    if not graph.has_edge(target, source):
        remedy = (
            f"Add the edge {target} → {source}, "
            "or pass graph.to_undirected() if links go both ways."
        )
        raise InputError("link", f"{source} → {target}", "a link in both directions", remedy)
    there, back = _edge_data(graph, source, target), _edge_data(graph, target, source)
    where = f"link {source}-{target}"
    forth, again = (
        {**_LINK_DEFAULTS, **_derived(data, None, None, where)} for data in (there, back)
    )
    for key in _LINK_DEFAULTS:
        if forth[key] != again[key]:
            got = f"{forth[key]:g} one way and {again[key]:g} the other"
            remedy = "Choose one cost for the link, for instance that of the slower direction."
            raise InputError(f"{key} of {where}", got, "the same in both directions", remedy)


def _edge_data(graph: Graph, source: Any, target: Any) -> Attributes:
    """The attributes of the only edge from one node to another."""
    data: Attributes = graph.get_edge_data(source, target)
    return next(iter(data.values())) if graph.is_multigraph() else data


def _is_geographic(coordinates: Sequence[Place]) -> bool:
    return bool(coordinates) and None not in coordinates


def _positions(devices: Sequence[Attributes], coordinates: Sequence[Place]) -> FloatArray | None:
    """(N, 2) positions, if every device has one."""
    if _is_geographic(coordinates):
        return np.array(coordinates, dtype=float)
    if _all_have(devices, "pos"):
        return np.array([data["pos"] for data in devices], dtype=float)
    if _all_have(devices, "x") and _all_have(devices, "y"):
        return np.array([[_axis(data, axis) for axis in "xy"] for data in devices])
    return None


def _axis(attributes: Attributes, axis: str) -> float:
    try:
        return float(attributes[axis])
    except (TypeError, ValueError):
        remedy = "Correct it or leave it out."
        raise InputError(f"{axis} of a device", attributes[axis], "a number", remedy) from None


def _all_have(devices: Sequence[Attributes], key: str) -> bool:
    return bool(devices) and all(key in data for data in devices)
