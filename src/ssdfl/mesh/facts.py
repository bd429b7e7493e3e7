"""What is known of devices and links, each fact signed by the devices that it is about.

Facts reach a device through others, which can withhold them but not change them. A device that
signs two different facts about the same thing has lied: the two versions together prove it, no
matter who passes them on, and the plan is formed without either. So knowledge of a thing only ever
goes from nothing to one version to a proven contradiction. Devices that exchange all they have end
up knowing the same.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections.abc import Iterable, Sequence

import numpy as np
from google.protobuf.message import DecodeError

from ssdfl.arrays import FloatArray
from ssdfl.clusters import Device
from ssdfl.errors import InputError
from ssdfl.mesh.mesh_pb2 import Descriptor, Fact, Facts, LinkFact, SignedFact
from ssdfl.mesh.signing import Signer
from ssdfl.mesh.wire import BadMessageError

LARGEST = 1e12
"""A limit far above any constant or distance of an honest device."""
_PURPOSE = b"ssdfl fact\0"
_CONTRADICTED = "*"

Link = tuple[str, str]


class FactBook:
    """The signed facts that a device has.

    Args:
        names: of all devices.
        links: of the network, by names, in its order.
        like: this device's own descriptor, which others' have to resemble.
        signer: checks signatures, and signs for this device.
    """

    def __init__(
        self, names: Sequence[str], links: Sequence[Link], like: Device, signer: Signer
    ) -> None:
        self.names, self.links, self._like, self._signer = tuple(names), tuple(links), like, signer
        self._versions: dict[str, dict[str, SignedFact]] = {}
        self._content: dict[str, Fact] = {}
        self._lock = threading.Lock()

    def sign(self, fact: Fact) -> SignedFact:
        """A fact with this device's signature."""
        content = fact.SerializeToString(deterministic=True)
        return SignedFact(fact=content, signatures=[self._signer.sign(_PURPOSE + content)])

    def countersign(self, proposed: SignedFact) -> SignedFact:
        """A proposed fact with this device's signature after the first."""
        own = self._signer.sign(_PURPOSE + proposed.fact)
        return SignedFact(fact=proposed.fact, signatures=[*proposed.signatures, own])

    def take(self, signed: SignedFact) -> None:
        """Keep a fact; a second version of one is kept, too, as the proof that its signers lie.

        Raises:
            BadMessageError: it is impossible, or not signed by those whom it is about.
        """
        digest = _digest_of(signed.fact)
        if self._has(digest):
            return
        fact = parsed(signed)
        key, signers = self._checked(fact)
        if len(signed.signatures) != len(signers):
            raise BadMessageError(f"a fact of {key} with {len(signed.signatures)} signatures")
        self.check_signatures(signed, signers)
        with self._lock:
            versions = self._versions.setdefault(key, {})
            if len(versions) < 2:  # two versions prove the lie
                versions[digest] = signed
                self._content[digest] = fact

    def _has(self, digest: str) -> bool:
        with self._lock:
            return digest in self._content

    def check_signatures(self, signed: SignedFact, signers: Sequence[str]) -> None:
        """Refuse a fact unless the first of its signatures are by these devices.

        Raises:
            BadMessageError: one is not.
        """
        for device, signature in zip(signers, signed.signatures, strict=False):
            if not self._signer.has_signed(device, _PURPOSE + signed.fact, signature):
                raise BadMessageError(f"a fact that {device} has not signed")

    def _checked(self, fact: Fact) -> tuple[str, tuple[str, ...]]:
        """What a fact is about, and who has to have signed it."""
        if fact.HasField("link"):
            self.check_link(fact.link)
            ends = (fact.link.a, fact.link.b)
            return _key(ends), ends
        checked_device(fact.descriptor, self._like, self.names)
        return fact.descriptor.device, (fact.descriptor.device,)

    def check_link(self, fact: LinkFact) -> None:
        """Refuse the distance of no link, or an impossible one.

        Raises:
            BadMessageError: with the reason.
        """
        is_link = (fact.a, fact.b) in self.links
        is_distance = 0 <= fact.distance <= LARGEST  # NaN is not
        if not (is_link and is_distance):
            raise BadMessageError(f"distance {fact.distance:g} of {fact.a!r} – {fact.b!r}")

    def descriptor(self, name: str) -> Descriptor | None:
        """What a device has signed about itself; None if nothing, or if it contradicts itself."""
        fact = self._only(name)
        return None if fact is None else fact.descriptor

    def distance(self, link: Link) -> float | None:
        """What both ends of a link have signed; None if they have not, or contradict themselves."""
        fact = self._only(_key(link))
        return None if fact is None or self._is_void(link) else float(fact.link.distance)

    def _only(self, key: str) -> Fact | None:
        with self._lock:
            versions = list(self._versions.get(key, ()))
            return self._content[versions[0]] if len(versions) == 1 else None

    @property
    def contradicted(self) -> list[str]:
        """Devices, and links as "a|b", of which there are two signed versions."""
        with self._lock:
            return [key for key, versions in self._versions.items() if len(versions) > 1]

    def _is_void(self, link: Link) -> bool:
        """Whether an end of a link contradicts itself: then the link's fact counts no more."""
        return not set(self.contradicted).isdisjoint(link)

    def missing(self) -> list[str]:
        """Devices and links of which nothing is known yet."""
        devices = [name for name in self.names if name not in self._versions]
        links = [link for link in self.links if _key(link) not in self._versions]
        void = set(self.contradicted)
        return devices + [f"{a} – {b}" for a, b in links if void.isdisjoint((a, b))]

    def known(self) -> list[str]:
        """How this device names what it has when it asks for more."""
        with self._lock:
            return [one for key in self._versions for one in self._known_versions(key)]

    def _known_versions(self, key: str) -> list[str]:
        versions = self._versions[key]
        return [f"{key}={_CONTRADICTED if len(versions) > 1 else next(iter(versions))}"]

    def facts(self, final: bool = False) -> Facts:
        """All of them; final if this device's plan is formed from them."""
        digest = self.digest
        with self._lock:
            known = [signed for versions in self._versions.values() for signed in versions.values()]
        return Facts(facts=known, digest=digest, final=final)

    @property
    def digest(self) -> str:
        """SHA-256 of what counts: one version of each fact, or that there are two."""
        void = set(self.contradicted)
        with self._lock:
            known = sorted(one for key in self._versions for one in self._known_versions(key))
        of_void = {_key(link) for link in self.links if not void.isdisjoint(link)}
        counts = [one for one in known if one.rpartition("=")[0] not in of_void]
        return hashlib.sha256(json.dumps(counts).encode()).hexdigest()


def lacking(facts: Facts, known: Iterable[str]) -> Facts:
    """The facts that a neighbour with certain others does not have."""
    theirs = set(known)
    news = [signed for signed in facts.facts if theirs.isdisjoint(_known_as(signed))]
    return Facts(facts=news, digest=facts.digest, final=facts.final)


def _known_as(signed: SignedFact) -> tuple[str, str]:
    """How a neighbour names a fact that it need not be sent: this version, or a contradiction."""
    fact = parsed(signed)
    key = _key((fact.link.a, fact.link.b)) if fact.HasField("link") else fact.descriptor.device
    return f"{key}={_digest_of(signed.fact)}", f"{key}={_CONTRADICTED}"


def _key(link: Link) -> str:
    """How gossip names a link."""
    return f"{link[0]}|{link[1]}"


def _digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def parsed(signed: SignedFact) -> Fact:
    """What was signed.

    Raises:
        BadMessageError: no fact.
    """
    try:
        fact: Fact = Fact.FromString(signed.fact)
    except DecodeError:
        raise BadMessageError("a fact that cannot be decoded") from None
    return fact


def checked_device(descriptor: Descriptor, like: Device, names: Sequence[str]) -> Device:
    """A device from what it says about itself.

    Raises:
        BadMessageError: no device of the mesh, another number of classes, or impossible numbers.
    """
    if descriptor.device not in names:
        raise BadMessageError(f"a fact of no device, {descriptor.device!r}")
    num_labels = len(descriptor.labels)
    if num_labels != len(like.labels):
        raise BadMessageError(
            f"{num_labels} labels of {descriptor.device} instead of {len(like.labels)}"
        )
    sketch = _checked_sketch(descriptor, like.sketch)
    constants = (descriptor.gradient_bound, descriptor.initial_loss, descriptor.smoothness)
    if not all(0 <= value <= LARGEST for value in constants):  # NaN is not
        raise BadMessageError(f"constants {constants} of {descriptor.device}")
    labels = np.array(descriptor.labels)
    try:
        return Device(labels, descriptor.rho, descriptor.mu, None, sketch, descriptor.sketch_scale)
    except InputError as error:
        raise BadMessageError(f"{error} of {descriptor.device}") from None


def _checked_sketch(descriptor: Descriptor, like: FloatArray | None) -> FloatArray | None:
    """A device's sketch, if it is as long as one's own; None if devices have none."""
    length = 0 if like is None else len(like)
    numbers = np.array(descriptor.sketch)
    if len(numbers) != length or not (np.abs(numbers) <= LARGEST).all():
        raise BadMessageError(f"a sketch of {len(numbers)} numbers of {descriptor.device}")
    if not math.fabs(descriptor.sketch_scale) <= LARGEST:
        raise BadMessageError(f"sketch_scale {descriptor.sketch_scale:g} of {descriptor.device}")
    return numbers if length else None
