"""Initialisation with no coordinator: facts about devices and links flood the network.

Each device asks its neighbours for the facts that it lacks until it has everyone's. Samples cross only the
link between two neighbours, which turn them into one number, the distance of their data. That number, label
counts and optimizers travel on to all devices.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.clusters import Device, data_divergence, energy_distance
from ssdfl.errors import InputError
from ssdfl.graph import Network
from ssdfl.learning import DeviceConstants
from ssdfl.mesh.gathering import ASK_S, gather
from ssdfl.mesh.mesh_pb2 import Descriptor, Facts, Gossip, LinkFact, Request, Response, SampleRequest
from ssdfl.mesh.node import Node
from ssdfl.mesh.transport import UnreachableError
from ssdfl.mesh.wire import BadMessageError, pack_samples, unpack_samples

FACTS = "facts.binpb"
"""Where a device keeps what it has gathered."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What every device knows after the flood.

    Attributes:
        devices: descriptors of all devices, without samples.
        data_distance: (L,) for each link, in the network's order.
        measured: constants by index, of the devices that measured them.
    """

    devices: tuple[Device, ...]
    data_distance: FloatArray
    measured: Mapping[int, DeviceConstants]


@dataclass(eq=False)
class Flood:
    """Gathers the facts of all devices.

    Args:
        node: this device, its transport started.
        own: its descriptor, with the few samples that its neighbours may see.
        measured: its constants, if it is one of the devices that measure them.
        network: as it was at the start, for a device that joined later: it only listens.
    """

    node: Node
    own: Device
    measured: DeviceConstants | None = None
    network: Network | None = None
    descriptors: dict[str, Descriptor] = field(default_factory=dict)
    links: dict[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        network = self.network or self.node.network
        names = self._names = self.node.names if self.network is None else network.names
        self._name = self.node.name
        self._links = [(names[a], names[b]) for a, b in network.links.tolist()]
        self._compares_with = [b for a, b in self._links if a == self._name and self.network is None]
        if self.network is None:
            self._tell()

    def _tell(self) -> None:
        """Begin to tell neighbours what this device knows."""
        self.descriptors[self._name] = describe(self._name, self.own, self.measured)
        self.node.answers["gossip"] = self._answer_gossip
        self.node.answers["samples"] = self._answer_samples

    def gather(self, timeout_s: float) -> Knowledge:
        """Everyone's facts.

        Raises:
            InputError: some have not come in time; it names them.
            StoppedError: the device was asked to stop.
        """
        gather(self.node, "facts of devices and links", self._missing, self._ask_neighbours, timeout_s)
        return self._knowledge()

    def _missing(self) -> list[str]:
        """Devices and links of which nothing is known yet."""
        devices = [name for name in self._names if name not in self.descriptors]
        links = [f"{a} – {b}" for a, b in self._links if (a, b) not in self.links]
        return devices + links

    def _ask_neighbours(self) -> None:
        for neighbour in self.node.neighbours.alive:
            self._learn(neighbour)
        self._compare_data()

    def _learn(self, neighbour: str) -> None:
        """Keep the facts that a neighbour has and this device lacks."""
        for fact in self._ask_facts(neighbour):
            try:
                self._keep(fact)
            except (BadMessageError, InputError) as error:
                self._refuse(neighbour, error)

    def _ask_facts(self, neighbour: str) -> list[Descriptor | LinkFact]:
        known = [*self.descriptors, *(_link_key(a, b) for a, b in list(self.links))]
        try:
            answer = self.node.transport.ask(neighbour, Request(gossip=Gossip(known=known)), ASK_S)
        except UnreachableError:
            return []
        return [*answer.facts.descriptors, *answer.facts.links]

    def _keep(self, fact: Descriptor | LinkFact) -> None:
        """Remember a fact; the first about a device or link holds, and one that differs is refused."""
        if isinstance(fact, Descriptor):
            self._device(fact)  # checks it
            agrees = self.descriptors.setdefault(fact.device, fact) == fact
        else:
            self._check_link(fact)
            agrees = self.links.setdefault((fact.a, fact.b), fact.distance) == fact.distance
        if not agrees:
            raise BadMessageError(f"another fact than before: {' '.join(str(fact).split())}")

    def _check_link(self, fact: LinkFact) -> None:
        is_link = (fact.a, fact.b) in self._links
        is_distance = 0 <= fact.distance < math.inf  # NaN is not
        if not (is_link and is_distance):
            raise BadMessageError(f"distance {fact.distance:g} of {fact.a} – {fact.b}")

    def _refuse(self, neighbour: str, error: Exception) -> None:
        self.node.bad_messages[neighbour] += 1
        log.warning("%s sent %s: dropped", neighbour, error)

    def _compare_data(self) -> None:
        """Compute the distances of this device's links that are still unknown.

        Of the two ends of a link, the one that comes first in the network computes its distance.
        """
        for neighbour in self._compares_with:
            is_known = (self._name, neighbour) in self.links
            if not is_known and neighbour in self.descriptors:
                self._compare_with(neighbour)

    def _compare_with(self, neighbour: str) -> None:
        try:
            energy = self._energy(neighbour)
        except UnreachableError:
            return
        except BadMessageError as error:
            self._refuse(neighbour, error)
            return
        other = self._device(self.descriptors[neighbour])
        self.links[self._name, neighbour] = data_divergence(self.own, other) + energy

    def _energy(self, neighbour: str) -> float:
        """The energy distance to a neighbour's samples per feature; 0 of samples that are no numbers."""
        own = self.own.samples
        if own is None:
            return 0.0
        answer = self.node.transport.ask(neighbour, Request(samples=SampleRequest()), ASK_S)
        theirs = unpack_samples(answer.sample_batch, own.shape[1])
        return max(float(energy_distance(own, theirs)) / int(own.shape[1]), 0.0)

    def facts(self) -> Facts:
        """All that is known so far."""
        links = [LinkFact(a=a, b=b, distance=distance) for (a, b), distance in list(self.links.items())]
        return Facts(descriptors=list(self.descriptors.values()), links=links)

    def _answer_gossip(self, request: Request) -> Response:
        return lacking(self.facts(), request)

    def _answer_samples(self, request: Request) -> Response:
        samples = np.zeros((0, 0)) if self.own.samples is None else self.own.samples
        return Response(sample_batch=pack_samples(samples))

    def _device(self, descriptor: Descriptor) -> Device:
        return _checked_device(descriptor, self.own, self._names)

    def _knowledge(self) -> Knowledge:
        descriptors = [self.descriptors[name] for name in self._names]
        devices = tuple(map(self._device, descriptors))
        data_distance = np.array([self.links[link] for link in self._links])
        measured = {index: _constants(one) for index, one in enumerate(descriptors) if one.measured}
        return Knowledge(devices, data_distance, measured)


def lacking(facts: Facts, request: Request) -> Response:
    """The facts that a neighbour does not have yet."""
    known = set(request.gossip.known)
    descriptors = [fact for fact in facts.descriptors if fact.device not in known]
    links = [fact for fact in facts.links if _link_key(fact.a, fact.b) not in known]
    return Response(facts=Facts(descriptors=descriptors, links=links))


def _link_key(a: str, b: str) -> str:
    """How gossip names a link that is known."""
    return f"{a}|{b}"


def describe(name: str, device: Device, measured: DeviceConstants | None) -> Descriptor:
    """What a device tells about itself: never its samples."""
    descriptor = Descriptor(device=name, labels=device.labels.tolist(), rho=device.rho, mu=device.mu)
    if device.sketch is not None:
        descriptor.sketch.extend(device.sketch.tolist())
        descriptor.sketch_scale = device.sketch_scale
    if measured is not None:
        descriptor.measured = True
        descriptor.gradient_bound = measured.gradient_bound
        descriptor.initial_loss = measured.initial_loss
        descriptor.smoothness = measured.smoothness
    return descriptor


def _constants(descriptor: Descriptor) -> DeviceConstants:
    return DeviceConstants(descriptor.gradient_bound, descriptor.initial_loss, descriptor.smoothness)


def _check_sketch(descriptor: Descriptor, like: FloatArray | None) -> None:
    """Refuse a device's sketch that is not as long as one's own."""
    length = 0 if like is None else len(like)
    if len(descriptor.sketch) != length:
        raise BadMessageError(f"a sketch of {len(descriptor.sketch)} numbers of {descriptor.device}")


def _checked_device(descriptor: Descriptor, like: Device, names: Sequence[str]) -> Device:
    """A device from what it told about itself.

    Raises:
        BadMessageError: no device of the mesh, another number of classes, or impossible constants.
        InputError: impossible label counts or optimizer.
    """
    if descriptor.device not in names:
        raise BadMessageError(f"a fact of no device, {descriptor.device!r}")
    num_labels = len(descriptor.labels)
    if num_labels != len(like.labels):
        raise BadMessageError(f"{num_labels} labels of {descriptor.device} instead of {len(like.labels)}")
    _check_sketch(descriptor, like.sketch)
    constants = (descriptor.gradient_bound, descriptor.initial_loss, descriptor.smoothness)
    if not all(0 <= value < math.inf for value in constants):  # NaN is not
        raise BadMessageError(f"constants {constants} of {descriptor.device}")
    return device_of(descriptor)


def device_of(descriptor: Descriptor) -> Device:
    """A device from what it told about itself.

    Raises:
        InputError: impossible label counts or optimizer.
    """
    sketch = np.array(descriptor.sketch) if descriptor.sketch else None
    labels = np.array(descriptor.labels)
    return Device(labels, descriptor.rho, descriptor.mu, None, sketch, descriptor.sketch_scale)
