"""What devices have told for formation, kept while devices join and leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.clusters import Device, data_divergence
from ssdfl.errors import InputError
from ssdfl.graph import Network
from ssdfl.lazy import LazyModule
from ssdfl.learning import Optimizer
from ssdfl.mesh.change import Newcomer
from ssdfl.mesh.facts import parsed
from ssdfl.mesh.knowledge import average_device
from ssdfl.mesh.mesh_pb2 import Descriptor, Fact, Facts

if TYPE_CHECKING:
    import google.protobuf.json_format as json_format
else:
    json_format = LazyModule("google.protobuf.json_format")

Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Descriptions:
    """What is known of devices by name, and how different the data at links are.

    Attributes:
        extra: what samples add on average to two devices' distance by labels or sketches.
    """

    devices: Mapping[str, Device]
    distances: Mapping[Pair, float]
    extra: float

    @classmethod
    def at_start(cls, facts: Facts, names: Sequence[str]) -> Descriptions:
        """What devices told before the first plan; silent ones and liars count as average."""
        told = _undisputed(facts)
        known = {
            one.descriptor.device: device_of(one.descriptor)
            for one in told
            if not one.HasField("link")
        }
        average = average_device(list(known.values()))
        devices = {name: known.get(name, average) for name in names}
        distances = _distances(told, known)
        extras = [
            one - data_divergence(devices[a], devices[b]) for (a, b), one in distances.items()
        ]
        return cls(devices, distances, float(np.mean(extras or [0.0])))

    def with_newcomers(
        self, joins: Mapping[str, Newcomer], optimizers: Mapping[str, Optimizer]
    ) -> Descriptions:
        """The same with devices that join; one that told nothing counts as the average of all."""
        average = average_device(list(self.devices.values()))
        found = {
            name: _newcomer(one.facts, average, optimizers[name]) for name, one in joins.items()
        }
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


def device_of(descriptor: Descriptor) -> Device:
    """A device from what it told about itself.

    Raises:
        InputError: impossible label counts or optimizer.
    """
    sketch = np.array(descriptor.sketch) if descriptor.sketch else None
    labels = np.array(descriptor.labels)
    return Device(labels, descriptor.rho, descriptor.mu, None, sketch, descriptor.sketch_scale)


def _undisputed(facts: Facts) -> list[Fact]:
    """Facts with a single version, in an order that does not depend on how they arrived."""
    found = {one.fact: parsed(one) for one in facts.facts}
    subjects = Counter(map(_subject, found.values()))
    return [found[content] for content in sorted(found) if subjects[_subject(found[content])] == 1]


def _distances(told: Sequence[Fact], known: Container[str]) -> dict[Pair, float]:
    """How different the data at links are, if both ends are known."""
    links = [one.link for one in told if one.HasField("link")]
    return {pair(one.a, one.b): one.distance for one in links if one.a in known and one.b in known}


def _subject(fact: Fact) -> Pair:
    """The link or device that a fact is about."""
    return (fact.link.a, fact.link.b) if fact.HasField("link") else (fact.descriptor.device, "")


def _newcomer(facts: dict[str, object], average: Device, optimizer: Optimizer) -> Device:
    """A newcomer from what a change says of it; what is not like others' facts says nothing."""
    found = _described(facts) if facts else average
    fits = found is not None and _form(found) == _form(average)
    return replace(
        found if found is not None and fits else average, rho=optimizer.rho, mu=optimizer.mu
    )


def _described(facts: dict[str, object]) -> Device | None:
    try:
        return device_of(json_format.ParseDict(facts, Descriptor()))
    except (json_format.ParseError, InputError):
        return None


def _form(device: Device) -> tuple[int, int]:
    """How many numbers describe a device's labels and its gradient."""
    return len(device.labels), 0 if device.sketch is None else len(device.sketch)
