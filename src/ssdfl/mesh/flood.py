"""Initialisation without a coordinator: facts about devices and links flood the network.

Each device asks its neighbours for the facts it lacks until it has everyone's. Samples cross only
the link between two neighbours, which turn them into one number, the distance of their data. That
number, label counts and optimizers travel on to all devices, signed by the devices they are about.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from ssdfl.clusters import Device, data_divergence, energy_distance
from ssdfl.errors import NotYetError
from ssdfl.graph import Network
from ssdfl.learning import DeviceConstants
from ssdfl.mesh.facts import FactBook, checked_device, lacking, parsed
from ssdfl.mesh.gathering import ASK_S, gather
from ssdfl.mesh.knowledge import Knowledge, knowledge
from ssdfl.mesh.mesh_pb2 import (
    Descriptor,
    Fact,
    Facts,
    Gossip,
    LinkFact,
    Request,
    Response,
    SampleRequest,
    SignedFact,
)
from ssdfl.mesh.node import Node
from ssdfl.mesh.signing import Signer
from ssdfl.mesh.transport import UnreachableError
from ssdfl.mesh.wire import BadMessageError, pack_samples, unpack_samples

FACTS = "facts.binpb"
"""Where a device keeps what it has gathered."""
SETTLE_ROUNDS = 50
"""How often a device with all facts asks neighbours that know something else."""
ROUNDING = 1e-3
OWN_FACT = "own-fact.binpb"
"""Where a device keeps what it has signed about itself: two versions would make it a liar."""
SAME_DISTANCE = 1e-6
"""Up to which relative difference the two ends of a link have computed the same."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Told:
    """A neighbour's last word on its facts: their digest, and whether its plan uses them."""

    digest: str
    final: bool


@dataclass(eq=False)
class Flood:
    """Gathers the facts of all devices.

    Args:
        node: this device, its transport started.
        own: its descriptor, with the few samples that its neighbours may see.
        signer: signs for this device.
        measured: its constants, if it is one of the devices that measure them.
        signed_before: what an earlier process of it has signed about it.
        network: as it was at the start, for a device that joins later: it only listens.
    """

    node: Node
    own: Device
    signer: Signer
    measured: DeviceConstants | None = None
    signed_before: Facts | None = None
    network: Network | None = None
    final: bool = False
    _told: dict[str, Told] = field(default_factory=dict)
    _proposals: dict[str, SignedFact] = field(default_factory=dict)
    _computed: dict[str, float] = field(default_factory=dict)
    _settling: int = 0

    def __post_init__(self) -> None:
        self._name = self.node.name
        listens = self.network is not None
        network = self.network or self.node.network
        names = network.names if listens else self.node.names
        links = [(names[a], names[b]) for a, b in network.links.tolist()]
        self._compares_with = [b for a, b in links if a == self._name and not listens]
        self.book = FactBook(names, links, self.own, self.signer)
        if not listens:
            self._tell()

    def _tell(self) -> None:
        """Begin to tell neighbours what this device knows."""
        self.book.take(self.own_fact())
        self.node.answers["gossip"] = self._answer_gossip
        self.node.answers["samples"] = self._answer_samples

    def own_fact(self) -> SignedFact:
        """What this device says about itself; the earlier text if only the last digits differ."""
        now = describe(self._name, self.own, self.measured)
        before = [] if self.signed_before is None else list(self.signed_before.facts)
        alike = [signed for signed in before if is_alike(parsed(signed).descriptor, now)]
        return alike[0] if alike else self.book.sign(Fact(descriptor=now))

    def gather(self, timeout_s: float) -> Knowledge:
        """Everyone's facts, or those of a majority if the others do not come in time.

        Raises:
            NotYetError: not even those of a majority have come; it names the missing ones.
            StoppedError: the device was asked to stop.
        """
        try:
            gather(
                self.node,
                "facts of devices and links",
                self._missing,
                self._ask_neighbours,
                timeout_s,
            )
        except NotYetError as error:
            if 2 * self._num_known() <= len(self.book.names):
                raise
            log.error("%s Forming a plan without them.", error)
        for key in self.book.contradicted:
            log.error("%s has signed two different facts: the plan is formed without them", key)
        self.final = True
        return knowledge(self.book, self.own)

    def _num_known(self) -> int:
        return sum(self.book.descriptor(name) is not None for name in self.book.names)

    def _missing(self) -> list[str]:
        """Devices and links without facts; then, for a while, neighbours that know more.

        A device that takes the facts of others' plans needs no more.
        """
        if self.final:
            return []
        missing = self.book.missing()
        if missing:
            return missing
        self._settling += 1
        return self._differing() if self._settling <= SETTLE_ROUNDS else []

    def _differing(self) -> list[str]:
        """Neighbours that know something else."""
        ours = self.book.digest
        told = {name: self._told.get(name) for name in self.node.neighbours.alive}
        return [name for name, one in told.items() if one is not None and one.digest != ours]

    def _ask_neighbours(self) -> None:
        for neighbour in self.node.neighbours.alive:
            self._learn(neighbour)
        self._compare_data()
        self._take_final()

    def _learn(self, neighbour: str) -> None:
        """Keep the facts that a neighbour has and this device lacks, up to the first bad one."""
        answer = self._ask_facts(neighbour, self.book.known())
        if answer is None:
            return
        self._told[neighbour] = Told(answer.digest, answer.final)
        try:
            for signed in answer.facts:
                self._keep(neighbour, signed)
        except BadMessageError as error:
            self._refuse(neighbour, error)

    def _ask_facts(self, neighbour: str, known: list[str]) -> Facts | None:
        try:
            answer = self.node.transport.ask(neighbour, Request(gossip=Gossip(known=known)), ASK_S)
        except UnreachableError:
            return None
        return answer.facts if answer.HasField("facts") else None

    def _keep(self, neighbour: str, signed: SignedFact) -> None:
        """Store a fact. A proposal about a link of this device is checked and countersigned."""
        fact = parsed(signed)
        is_proposal = fact.HasField("link") and len(signed.signatures) == 1
        if not is_proposal:
            self.book.take(signed)
        elif (fact.link.a, fact.link.b) == (neighbour, self._name):
            self._countersign(signed, fact.link)

    def _countersign(self, signed: SignedFact, link: LinkFact) -> None:
        """Sign what a neighbour has computed of the link to it, if this device computes the same.

        Only once: a second signature would make this device a liar.
        """
        if self.book.distance((link.a, link.b)) is not None:
            return
        self.book.check_link(link)
        self.book.check_signatures(signed, [link.a])
        computed = self._distance_to(link.a)
        if computed is None:
            return
        if abs(link.distance - computed) > SAME_DISTANCE * max(computed, 1.0):
            raise BadMessageError(
                f"distance {link.distance:g} to {link.a}, where {computed:g} is computed"
            )
        self.book.take(self.book.countersign(signed))

    def _refuse(self, neighbour: str, error: Exception) -> None:
        self.node.bad_messages[neighbour] += 1
        log.warning("%s sent %s: dropped", neighbour, error)

    def _compare_data(self) -> None:
        """Propose the distances of this device's links that are still unknown.

        Of the two ends of a link, the one that comes first in the network proposes its distance.
        """
        for neighbour in self._compares_with:
            if self.book.distance((self._name, neighbour)) is not None:
                self._proposals.pop(neighbour, None)
            elif neighbour not in self._proposals and self.book.descriptor(neighbour) is not None:
                self._propose(neighbour)

    def _propose(self, neighbour: str) -> None:
        try:
            distance = self._distance_to(neighbour)
        except BadMessageError as error:
            self._refuse(neighbour, error)
            return
        if distance is not None:
            link = LinkFact(a=self._name, b=neighbour, distance=distance)
            self._proposals[neighbour] = self.book.sign(Fact(link=link))

    def _distance_to(self, neighbour: str) -> float | None:
        """How different a neighbour's data are, computed once; None while it cannot be."""
        descriptor = self.book.descriptor(neighbour)
        if neighbour not in self._computed and descriptor is not None:
            try:
                energy = self._energy(neighbour)
            except UnreachableError:
                return None
            other = checked_device(descriptor, self.own, self.node.names)
            self._computed[neighbour] = data_divergence(self.own, other) + energy
        return self._computed.get(neighbour)

    def _energy(self, neighbour: str) -> float:
        """The energy distance per feature to a neighbour's samples; 0 if they are not numbers."""
        own = self.own.samples
        if own is None:
            return 0.0
        answer = self.node.transport.ask(neighbour, Request(samples=SampleRequest()), ASK_S)
        theirs = unpack_samples(answer.sample_batch, own.shape[1])
        return max(float(energy_distance(own, theirs)) / int(own.shape[1]), 0.0)

    def _take_final(self) -> None:
        """Take the facts from which most neighbours formed their plans, if they differ.

        So a late device forms the same plan. A single neighbour is believed only if there is no
        other: it might leave facts out.
        """
        finals = Counter(one.digest for one in self._told.values() if one.final)
        digest, count = next(iter(finals.most_common(1)), ("", 0))
        linked = len(self.node.neighbours.names)
        if count >= min(2, linked) and 2 * count >= linked and digest != self.book.digest:
            self._take_all(digest)

    def _take_all(self, digest: str) -> None:
        for neighbour in [name for name, one in self._told.items() if one == Told(digest, True)]:
            book = FactBook(self.book.names, self.book.links, self.own, self.signer)
            answer = self._ask_facts(neighbour, [])
            try:
                for signed in () if answer is None else answer.facts:
                    book.take(signed)
            except BadMessageError as error:
                self._refuse(neighbour, error)
            if book.digest == digest:
                log.warning("taking the facts that %s has formed its plan from", neighbour)
                self.book, self.final = book, True
                return

    def facts(self) -> Facts:
        """All that is known so far."""
        return self.book.facts(self.final)

    def _answer_gossip(self, request: Request) -> Response:
        answer = answer_gossip(self.facts(), request)
        answer.facts.facts.extend([] if self.final else list(self._proposals.values()))
        return answer

    def _answer_samples(self, request: Request) -> Response:
        samples = np.zeros((0, 0)) if self.own.samples is None else self.own.samples
        return Response(sample_batch=pack_samples(samples))


def answer_gossip(facts: Facts, request: Request) -> Response:
    """The facts that a neighbour does not have yet."""
    return Response(facts=lacking(facts, request.gossip.known))


def describe(name: str, device: Device, measured: DeviceConstants | None) -> Descriptor:
    """What a device tells about itself: never its samples."""
    descriptor = Descriptor(
        device=name, labels=device.labels.tolist(), rho=device.rho, mu=device.mu
    )
    if device.sketch is not None:
        descriptor.sketch.extend(device.sketch.tolist())
        descriptor.sketch_scale = device.sketch_scale
    if measured is not None:
        descriptor.measured = True
        descriptor.gradient_bound = measured.gradient_bound
        descriptor.initial_loss = measured.initial_loss
        descriptor.smoothness = measured.smoothness
    return descriptor


def is_alike(one: Descriptor, other: Descriptor) -> bool:
    """Whether two descriptions of a device differ in nothing but rounding."""
    if one.device != other.device or one.measured != other.measured:
        return False
    ours, theirs = np.array(_numbers(one)), np.array(_numbers(other))
    return ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=ROUNDING, atol=ROUNDING)


def _numbers(descriptor: Descriptor) -> list[float]:
    constants = (descriptor.gradient_bound, descriptor.initial_loss, descriptor.smoothness)
    scales = (descriptor.rho, descriptor.mu, descriptor.sketch_scale)
    return [*descriptor.labels, *descriptor.sketch, *constants, *scales]
