"""Networks of real places: cities of public cloud regions, by their coordinates."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from ssdfl.graph.conversion import from_networkx
from ssdfl.graph.network import Graph, Network
from ssdfl.lazy import LazyModule

if TYPE_CHECKING:
    import networkx as nx
else:
    nx = LazyModule("networkx")

GAIA = {
    "Virginia": (-77.5, 39.0),
    "California": (-121.9, 37.3),
    "Oregon": (-119.7, 45.8),
    "Dublin": (-6.3, 53.3),
    "Frankfurt": (8.7, 50.1),
    "Tokyo": (139.7, 35.7),
    "Seoul": (127.0, 37.6),
    "Singapore": (103.8, 1.35),
    "Sydney": (151.2, -33.9),
    "Mumbai": (72.9, 19.1),
    "São Paulo": (-46.6, -23.6),
}
"""Longitude and latitude in degrees, to a tenth."""
_CORE_BPS = 125e6


def gaia() -> Network:
    """Eleven cloud regions, all linked at 1 Gbit/s; latency by great-circle distance."""
    graph: Graph = nx.Graph()
    for city, (longitude, latitude) in GAIA.items():
        graph.add_node(city, longitude=longitude, latitude=latitude)
    graph.add_edges_from(combinations(GAIA, 2), bandwidth_Bps=_CORE_BPS)
    return from_networkx(graph)
