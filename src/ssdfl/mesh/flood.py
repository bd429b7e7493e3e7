"""Initialisation with no coordinator: what devices tell about themselves floods the network.

Each device pulls from its neighbours the facts that it lacks until it has everyone's. Samples cross only the
link between two neighbours, which turn them into one number; labels, optimizers and such numbers go further.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.clusters import Device, energy_distance, label_divergence
from ssdfl.errors import InputError
from ssdfl.learning import DeviceConstants
from ssdfl.mesh.mesh_pb2 import Descriptor, Facts, Gossip, LinkFact, Request, Response, SampleRequest
from ssdfl.mesh.node import Node, StoppedError
from ssdfl.mesh.transport import UnreachableError
from ssdfl.mesh.wire import BadMessageError, pack_samples, unpack_samples

ASK_S = 5.0
ROUND_S = 0.1

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What every device knows after the flood.

    Attributes:
        devices: descriptors of all devices, without samples.
        data_distance: (L,) of the network's links, in their order.
        measured: by index, of the devices that measured.
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
        measured: what it measured, if it was its turn to.
    """

    node: Node
    own: Device
    measured: DeviceConstants | None = None
    descriptors: dict[str, Descriptor] = field(default_factory=dict)
    links: dict[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        network = self.node.network
        names = self.node.names
        self._links = [(names[a], names[b]) for a, b in network.links.tolist()]
        name = names[self.node.index]
        descriptor = Descriptor(
            device=name, labels=self.own.labels.tolist(), rho=self.own.rho, mu=self.own.mu
        )
        if self.measured is not None:
            descriptor.measured = True
            descriptor.gradient_bound = self.measured.gradient_bound
            descriptor.initial_loss = self.measured.initial_loss
            descriptor.smoothness = self.measured.smoothness
        self.descriptors[name] = descriptor
        self.node.answers["gossip"] = self._tell
        self.node.answers["samples"] = self._show

    def gather(self, timeout_s: float) -> Knowledge:
        """Everyone's facts.

        Raises:
            InputError: some have not come in time; it names them.
        """
        deadline = time.monotonic() + timeout_s
        while not self._complete():
            if self.node.stopped:
                raise StoppedError
            for neighbour in self.node.neighbours.alive:
                self._learn(neighbour)
            self._compare_data()
            if time.monotonic() > deadline:
                missing = [name for name in self.node.names if name not in self.descriptors]
                missing += [f"{a} – {b}" for a, b in self._links if (a, b) not in self.links]
                expected = f"all within {timeout_s:g} s"
                remedy = f"Start {', '.join(missing[:5])}, and check addresses and firewalls."
                raise InputError("facts of devices and links missing", len(missing), expected, remedy)
            time.sleep(ROUND_S)
        return self._knowledge()

    def _complete(self) -> bool:
        return len(self.descriptors) == len(self.node.names) and len(self.links) == len(self._links)

    def _learn(self, neighbour: str) -> None:
        known = [*self.descriptors, *(f"{a}|{b}" for a, b in list(self.links))]
        try:
            answer = self.node.transport.ask(neighbour, Request(gossip=Gossip(known=known)), ASK_S)
        except UnreachableError:
            return
        for fact in (*answer.facts.descriptors, *answer.facts.links):
            try:
                self._keep(fact)
            except (BadMessageError, InputError) as error:
                self.node.bad_messages[neighbour] += 1
                log.warning("%s told %s: dropped", neighbour, error)

    def _keep(self, fact: Descriptor | LinkFact) -> None:
        """Remember a fact, the first that is told of a device or link."""
        if isinstance(fact, Descriptor):
            _device(fact, self.own.labels.shape[0], self.node.names)
            self.descriptors.setdefault(fact.device, fact)
            return
        if (fact.a, fact.b) not in self._links or not 0 <= fact.distance < math.inf:
            raise BadMessageError(f"distance {fact.distance:g} of {fact.a} – {fact.b}")
        self.links.setdefault((fact.a, fact.b), fact.distance)

    def _compare_data(self) -> None:
        """The numbers of this device's links, each computed by the end that comes first."""
        name = self.node.names[self.node.index]
        for a, b in self._links:
            if a != name or (a, b) in self.links or b not in self.descriptors:
                continue
            try:
                answer = self.node.transport.ask(b, Request(samples=SampleRequest()), ASK_S)
                assert self.own.samples is not None
                theirs = unpack_samples(answer.sample_batch, self.own.samples.shape[1])
            except UnreachableError:
                continue
            except BadMessageError as error:
                self.node.bad_messages[b] += 1
                log.warning("%s sent %s: dropped", b, error)
                continue
            other = _device(self.descriptors[b], self.own.labels.shape[0], self.node.names)
            energy = energy_distance(self.own.samples, theirs) / theirs.shape[1]
            self.links[a, b] = label_divergence(self.own, other) + max(energy, 0.0)

    def facts(self) -> Facts:
        """All that is known so far."""
        links = [LinkFact(a=a, b=b, distance=distance) for (a, b), distance in list(self.links.items())]
        return Facts(descriptors=list(self.descriptors.values()), links=links)

    def _tell(self, request: Request) -> Response:
        return lacking(self.facts(), request)

    def _show(self, request: Request) -> Response:
        assert self.own.samples is not None
        return Response(sample_batch=pack_samples(self.own.samples))

    def _knowledge(self) -> Knowledge:
        told = [self.descriptors[name] for name in self.node.names]
        classes = self.own.labels.shape[0]
        return Knowledge(
            tuple(_device(descriptor, classes, self.node.names) for descriptor in told),
            np.array([self.links[link] for link in self._links]),
            {
                index: DeviceConstants(d.gradient_bound, d.initial_loss, d.smoothness)
                for index, d in enumerate(told)
                if d.measured
            },
        )


def lacking(facts: Facts, request: Request) -> Response:
    """The facts that a neighbour does not have yet."""
    known = set(request.gossip.known)
    return Response(
        facts=Facts(
            descriptors=[told for told in facts.descriptors if told.device not in known],
            links=[told for told in facts.links if f"{told.a}|{told.b}" not in known],
        )
    )


def _device(descriptor: Descriptor, classes: int, names: Sequence[str]) -> Device:
    """A device from what it told, checked."""
    if descriptor.device not in names:
        raise BadMessageError(f"a fact of no device, {descriptor.device!r}")
    if len(descriptor.labels) != classes:
        raise BadMessageError(f"{len(descriptor.labels)} labels of {descriptor.device} instead of {classes}")
    measured = (descriptor.gradient_bound, descriptor.initial_loss, descriptor.smoothness)
    if not all(math.isfinite(value) and value >= 0 for value in measured):
        raise BadMessageError(f"constants {measured} of {descriptor.device}")
    return Device(np.array(descriptor.labels), descriptor.rho, descriptor.mu)
