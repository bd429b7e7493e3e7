"""Add devices to a network, and remove them."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.errors import InputError
from ssdfl.graph.files import check_connected
from ssdfl.graph.network import Network, make_network


def joined(network: Network, additions: Network) -> Network:
    """A network with more devices and links; existing devices keep their numbers.

    Args:
        additions: links between new and old devices, matched by name. An existing link gets its
            costs from here.

    Raises:
        InputError: a new device is not connected to the old ones.

    Examples:
        >>> line = make_network(3, [(0, 1), (1, 2)], names=["a", "b", "c"])
        >>> joined(line, make_network(2, [(0, 1)], names=["d", "b"])).links.tolist()
        [[0, 1], [1, 2], [1, 3]]
    """
    new = [k for k, name in enumerate(additions.names) if name not in network.names]
    names = (*network.names, *(additions.names[k] for k in new))
    place = np.array([names.index(name) for name in additions.names])
    both = make_network(
        len(names),
        np.concatenate(
            [place[additions.links], network.links]
        ),  # for a link named twice, the first entry counts
        latency_s=np.concatenate([additions.latency_s, network.latency_s]),
        bandwidth_Bps=np.concatenate([additions.bandwidth_Bps, network.bandwidth_Bps]),
        compute_s=np.concatenate([network.compute_s, additions.compute_s[new]]),
        uplink_Bps=np.concatenate([network.uplink_Bps, additions.uplink_Bps[new]]),
        downlink_Bps=np.concatenate([network.downlink_Bps, additions.downlink_Bps[new]]),
        names=names,
        positions=_positions(network, additions, new),
        geographic=network.geographic,
        title=network.title,
    )
    check_connected(both, "network with its new devices")
    return both


def _positions(network: Network, additions: Network, new: list[int]) -> FloatArray | None:
    """The positions of all devices, if all have them."""
    if network.positions is None or additions.positions is None:
        return None
    if network.geographic != additions.geographic:
        return None
    return np.concatenate([network.positions, additions.positions[new]])


def without(network: Network, names: Collection[str]) -> Network:
    """A network without some of its devices; the others keep their order.

    Raises:
        InputError: it does not have one of the devices, or the rest is not connected.

    Examples:
        >>> ring = make_network(4, [(0, 1), (1, 2), (2, 3), (0, 3)], names=["a", "b", "c", "d"])
        >>> without(ring, ["b"]).links.tolist()
        [[0, 2], [1, 2]]
    """
    _check_known(network, names)
    kept = np.array(
        [k for k, name in enumerate(network.names) if name not in names], dtype=np.int64
    )
    if len(kept) == 0:
        raise InputError("devices left", 0, "at least 1", "Keep one.")
    rest = network.of_devices(kept)
    check_connected(rest, "network without them")
    return rest


def _check_known(network: Network, names: Collection[str]) -> None:
    for name in names:
        if name not in network.names:
            expected = f"one of {', '.join(network.names[:8])}"
            raise InputError("device to remove", name, expected, "Check its name.")
