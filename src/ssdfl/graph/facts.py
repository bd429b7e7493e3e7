"""The basic facts about a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ssdfl.graph.conductance import Conductance, conductance
from ssdfl.graph.mixing import MIXINGS
from ssdfl.graph.network import Network
from ssdfl.graph.spectrum import spectrum
from ssdfl.lazy import LazyModule

if TYPE_CHECKING:
    import scipy.sparse.csgraph as csgraph
else:
    csgraph = LazyModule("scipy.sparse.csgraph")

DIAMETER_LIMIT = 3000


def describe(
    network: Network, mixing: str = "metropolis", known: Conductance | None = None
) -> dict[str, Any]:
    """Size, degrees, diameter, spectrum and costs for JSON; ``known`` is the conductance.

    The diameter is None above 3,000 devices, where it takes long. Ranges of uplinks and downlinks
    cover the limited ones, and are None if there are none.

    Examples:
        >>> facts = describe(__import__("ssdfl").load_network("ring:n=4"))
        >>> facts["links"], facts["diameter_hops"], round(facts["lambda_2"], 4)
        (4, 2, 0.3333)
    """
    degree = np.bincount(network.links.ravel(), minlength=network.num_devices)
    W = MIXINGS[mixing](network.adjacency)
    ends, cut = spectrum(W), known or conductance(W)
    diameter = None
    if network.num_devices <= DIAMETER_LIMIT:
        diameter = _diameter(network)
    return {
        "network": network.title,
        "devices": network.num_devices,
        "links": network.num_links,
        "added_links": [list(link) for link in network.added_links],
        "degree_min": int(degree.min()),
        "degree_mean": float(degree.mean()),
        "degree_max": int(degree.max()),
        "diameter_hops": diameter,
        "mixing": mixing,
        "lambda_2": ends.lambda_2,
        "lambda_N": ends.lambda_N,
        "spectral_gap": ends.gap,
        "positive_definite": ends.positive_definite,
        "conductance": [cut.lower, cut.upper],
        "conductance_exact": cut.exact,
        "latency_s": _range(network.latency_s),
        "bandwidth_Bps": _range(network.bandwidth_Bps),
        "compute_s": _range(network.compute_s),
        "uplink_Bps": _range(network.uplink_Bps[np.isfinite(network.uplink_Bps)]),
        "downlink_Bps": _range(network.downlink_Bps[np.isfinite(network.downlink_Bps)]),
    }


def _diameter(network: Network) -> int:
    """The most links between any two devices."""
    hops = csgraph.shortest_path(network.adjacency, directed=False, unweighted=True)
    return int(hops.max())


def _range(values: np.ndarray[Any, Any]) -> list[float] | None:
    return [float(values.min()), float(values.max())] if len(values) else None
