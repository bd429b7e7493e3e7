"""What devices have told for formation, kept while devices join and leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from google.protobuf.json_format import ParseDict, ParseError

from ssdfl.arrays import FloatArray
from ssdfl.clusters import Device, data_divergence
from ssdfl.errors import InputError
from ssdfl.graph import Network
from ssdfl.learning import Optimizer
from ssdfl.mesh.change import Newcomer
from ssdfl.mesh.flood import device_of
from ssdfl.mesh.mesh_pb2 import Descriptor, Facts

Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Told:
    """What is known of devices by name, and how different the data at links are.

    Attributes:
        extra: what samples add to the distance of two devices that their labels or sketches have, on average.
    """

    devices: Mapping[str, Device]
    distances: Mapping[Pair, float]
    extra: float

    @classmethod
    def at_start(cls, facts: Facts) -> Told:
        """What devices told before the first plan."""
        devices = {one.device: device_of(one) for one in facts.descriptors}
        distances = {pair(link.a, link.b): link.distance for link in facts.links}
        extras = [found - data_divergence(devices[a], devices[b]) for (a, b), found in distances.items()]
        return cls(devices, distances, float(np.mean(extras)) if extras else 0.0)

    def with_newcomers(self, joins: Mapping[str, Newcomer], optimizers: Mapping[str, Optimizer]) -> Told:
        """The same with devices that join; of one that told nothing, the average of all others is assumed."""
        average = average_device(self.devices)
        found = {name: _newcomer(one.facts, average, optimizers[name]) for name, one in joins.items()}
        old = {ends: one for ends, one in self.distances.items() if found.keys().isdisjoint(ends)}
        return replace(self, devices={**self.devices, **found}, distances=old)

    def of_network(self, network: Network) -> tuple[tuple[Device, ...], FloatArray]:
        """(N,) devices and (L,) distances of their data at links, in a network's order."""
        devices = tuple(self.devices[name] for name in network.names)
        return devices, np.array([self._distance(network, a, b) for a, b in network.links.tolist()])

    def _distance(self, network: Network, a: int, b: int) -> float:
        ends = pair(network.names[a], network.names[b])
        if ends in self.distances:
            return self.distances[ends]
        return max(data_divergence(*map(self.devices.__getitem__, ends)) + self.extra, 0.0)


def pair(a: str, b: str) -> Pair:
    """Two names in alphabetical order."""
    return (a, b) if a < b else (b, a)


def average_device(devices: Mapping[str, Device]) -> Device:
    """What devices hold on average.

    Examples:
        >>> average_device({"a": Device(np.array([3.0, 1.0])), "b": Device(np.array([1.0, 3.0]))}).labels
        array([2., 2.])
    """
    known = list(devices.values())
    sketches = [one.sketch for one in known if one.sketch is not None]
    return Device(
        labels=np.mean([one.labels for one in known], axis=0),
        sketch=np.mean(sketches, axis=0) if sketches else None,
        sketch_scale=float(np.mean([one.sketch_scale for one in known])),
    )


def _newcomer(facts: dict[str, object], average: Device, optimizer: Optimizer) -> Device:
    """A newcomer from what a change says of it; what is not like others' facts says nothing."""
    found = _described(facts) if facts else average
    fits = found is not None and _form(found) == _form(average)
    return replace(found if found is not None and fits else average, rho=optimizer.rho, mu=optimizer.mu)


def _described(facts: dict[str, object]) -> Device | None:
    try:
        return device_of(ParseDict(facts, Descriptor()))
    except (ParseError, InputError):
        return None


def _form(device: Device) -> tuple[int, int]:
    """How many numbers describe a device's labels and its gradient."""
    return len(device.labels), 0 if device.sketch is None else len(device.sketch)
