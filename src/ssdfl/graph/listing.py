"""Devices and links as files list them, before units and defaults make a network of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from ssdfl.errors import InputError
from ssdfl.graph.attributes import LINK_UNITS, Attributes, read_costs
from ssdfl.graph.network import Graph
from ssdfl.mappings import without

Key = Hashable
"""What a file calls a device in its links."""


@dataclass(frozen=True)
class Listing:
    """Devices and links with their attributes.

    Attributes:
        devices: attributes by the device's key, in order.
        links: attributes by the keys of both ends, each link once.

    Examples:
        >>> listing = Listing()
        >>> listing.add_link("a", "b", {"latency_s": 0.5})
        >>> listing.devices, listing.links
        ({'a': {}, 'b': {}}, {('a', 'b'): {'latency_s': 0.5}})
    """

    devices: dict[Key, Attributes] = field(default_factory=dict)
    links: dict[tuple[Key, Key], Attributes] = field(default_factory=dict)
    _listed: set[tuple[Key, Key]] = field(default_factory=set)

    def add_device(self, key: Key, attributes: Attributes) -> None:
        """Add a device; one that was listed before gets more attributes."""
        self.devices[key] = {**self.devices.get(key, {}), **attributes}

    def add_link(self, source: Key, target: Key, attributes: Attributes) -> None:
        """Add a link, listed once, or once in each direction with the same costs.

        Raises:
            InputError: it was listed before, or has other costs in the other direction.
        """
        self._check_new(source, target)
        for key in (source, target):
            self.devices.setdefault(key, {})
        back = self.links.get((target, source))
        if back is None:
            self.links[source, target] = attributes
            return
        if _costs(back) != _costs(attributes):
            where = f"{source}-{target}"
            raise InputError("link", where, "one set of costs for it", "Keep one of its entries.")
        self.links[target, source] = {**back, **attributes}

    def _check_new(self, source: Key, target: Key) -> None:
        if (source, target) in self._listed:
            remedy = (
                "Merge its entries into one, with the latency and bandwidth "
                "that they have together."
            )
            expected = "one entry, not several in parallel"
            raise InputError("link", f"{source}-{target}", expected, remedy)
        self._listed.add((source, target))


def _costs(attributes: Attributes) -> dict[str, float]:
    return read_costs(attributes, LINK_UNITS, "a link")


def listing_of(graph: Graph) -> Listing:
    """The nodes and edges of a NetworkX graph of any kind."""
    listing = Listing()
    for node, attributes in graph.nodes(data=True):
        listing.add_device(node, attributes)
    for source, target, attributes in graph.edges(data=True):
        listing.add_link(source, target, attributes)
    return listing


def from_node_link(data: Any) -> Listing:
    """What node-link JSON lists, in the format of NetworkX.

    Links without a direction are named in the order of their devices, so one that is listed both
    ways is listed twice.

    Raises:
        ValueError: not such an object.
        InputError: a link that is listed twice.
    """
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    listing = Listing()
    for place, device in enumerate(data["nodes"]):
        listing.add_device(_key(device.get("id", place)), without(device, ["id"]))
    order = {key: place for place, key in enumerate(listing.devices)}
    for link in data["edges" if "edges" in data else "links"]:
        ends = (_key(link["source"]), _key(link["target"]))
        if not data.get("directed"):
            ends = _in_order(ends, order)
        listing.add_link(*ends, without(link, ("source", "target", "key")))
    return listing


def _in_order(ends: tuple[Key, Key], order: dict[Key, int]) -> tuple[Key, Key]:
    """The ends of a link in the order of the devices; new ones come last."""
    source, target = ends
    places = [order.setdefault(key, len(order)) for key in ends]
    return (source, target) if places[0] <= places[1] else (target, source)


def _key(value: Any) -> Key:
    """A device's key; JSON has lists where NetworkX has tuples.

    Examples:
        >>> _key([1, [2, 3]])
        (1, (2, 3))
    """
    if value is None:
        raise ValueError("a device's id is null")
    if isinstance(value, list):
        return tuple(map(_key, value))
    key: Key = value
    return key
