"""A change of a mesh's membership: who is in it from some cycle on, signed by the authority.

Changes form a chain. Each has a version, one more than the change before, and the digest of that
change's text; the first has the digest of ``network.json``. So devices that
pass a change on need not be trusted: the authority signed it, it is complete, and the order is
fixed.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from ssdfl.errors import InputError, unfit_value
from ssdfl.graph import Network, from_json
from ssdfl.graph.files import check_connected
from ssdfl.mesh.certificates import authority_key, sign, signed
from ssdfl.mesh.names import check_names

MAX_CHANGE_BYTES = 1 << 26
_SIGNATURE = "signature"


class BadChangeError(Exception):
    """A change that must not be used."""


@dataclass(frozen=True)
class Newcomer:
    """What is known of a device that joins.

    Attributes:
        optimizer: its own, as `ssdfl.learning.parse_optimizer` reads it.
        facts: what it would tell of its data, as JSON of a `Descriptor`; empty if unknown.
        samples: how many training samples it has; 0 if unknown.
    """

    optimizer: str
    facts: dict[str, Any] = field(default_factory=dict)
    samples: int = 0


@dataclass(frozen=True)
class Change:
    """A mesh's membership from a cycle on.

    Attributes:
        version: 1, 2, …
        previous: SHA-256 of the text of the change before, or of ``network.json``.
        cycle: how many cycles are done when it takes effect.
        network: the network from then on, as node-link JSON; newcomers come last.
        addresses: ``host:port`` of every device, or empty if it cannot be dialled.
        joins: the newcomers, by name.
    """

    version: int
    previous: str
    cycle: int
    network: str
    addresses: dict[str, str]
    joins: dict[str, Newcomer] = field(default_factory=dict)

    __pydantic_config__ = ConfigDict(extra="forbid")

    def to_text(self) -> str:
        """What is signed: always the same characters."""
        return json.dumps(_CHANGE.dump_python(self), sort_keys=True, separators=(",", ":"))

    @cached_property
    def devices(self) -> Network:
        """The network from then on."""
        return from_json(self.network, title=f"change {self.version}")


_CHANGE = TypeAdapter(Change)


@dataclass(frozen=True)
class SignedChange:
    """A change with the text of its file."""

    change: Change
    text: str

    @property
    def digest(self) -> str:
        """Of its text, for the change that follows it."""
        return text_digest(self.text)


def text_digest(text: str) -> str:
    """SHA-256 of a text.

    Examples:
        >>> text_digest("network")[:12]
        '3009be769fb8'
    """
    return sha256(text.encode()).hexdigest()


def signed_change(change: Change, key: bytes) -> SignedChange:
    """A change signed by the authority's key, in PEM."""
    return SignedChange(change, _signed_text(change, sign(key, _statement(change.to_text()))))


def read_change(text: str, authority: bytes) -> SignedChange:
    """The change in a file's text.

    Args:
        authority: the certificate of the mesh's authority, in PEM.

    Raises:
        BadChangeError: no change, not signed by the authority, or an impossible network.
    """
    change, signature = _parsed(text)
    key = authority_key(authority)
    if key is None or not signed(key, _statement(change.to_text()), signature):
        raise BadChangeError(f"change {change.version}, which the mesh's authority has not signed")
    if _signed_text(change, signature) != text:
        raise BadChangeError(f"change {change.version}, written otherwise than it was signed")
    return SignedChange(_checked(change), text)


def _signed_text(change: Change, signature: bytes) -> str:
    """The text of a change's file."""
    body = json.loads(change.to_text())
    shown = base64.b64encode(signature).decode()
    return json.dumps({**body, _SIGNATURE: shown}, sort_keys=True, indent=1) + "\n"


def _statement(body: str) -> bytes:
    """What is signed: for this purpose, the change."""
    return f"ssdfl membership\0{body}".encode()


def _parsed(text: str) -> tuple[Change, bytes]:
    """A change and its signature, before anything is known of them."""
    if len(text) > MAX_CHANGE_BYTES:
        raise BadChangeError("too large a change of membership")
    try:
        found = json.loads(text)
        signature = base64.b64decode(found.pop(_SIGNATURE), validate=True)
        return _CHANGE.validate_json(json.dumps(found), strict=True), signature
    except ValidationError as error:
        unfit = unfit_value(error.errors()[0], "change of membership", "")
        raise BadChangeError(str(unfit)) from None
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
        binascii.Error,
    ) as error:
        raise BadChangeError(f"no change of membership ({type(error).__name__})") from None


def _checked(change: Change) -> Change:
    """The change, if its network is one; the authority may be mistaken, too."""
    _check_network(change)
    names = set(change.devices.names)
    if (
        change.joins.keys() - names
        or change.addresses.keys() != names
        or min(change.version, change.cycle) < 1
    ):
        raise BadChangeError(f"change {change.version}, which contradicts itself")
    return change


def _check_network(change: Change) -> None:
    try:
        check_names(change.devices.names)
        check_connected(change.devices, f"network of change {change.version}")
    except InputError as error:
        raise BadChangeError(str(error)) from None
    except Exception as error:  # whatever an impossible network makes the parser raise
        raise BadChangeError(f"a network that cannot be read ({error})") from None


def check_follows(found: SignedChange, known: Sequence[SignedChange], base: str) -> None:
    """Refuse a change that does not come next.

    Args:
        known: the changes before it.
        base: digest of ``network.json``.

    Raises:
        BadChangeError: it is older, later, or of another chain.
    """
    version, expected = found.change.version, len(known) + 1
    if version != expected:
        raise BadChangeError(f"change {version} instead of {expected}")
    before = known[-1].digest if known else base
    if found.change.previous != before:
        raise BadChangeError(f"change {version}, which follows others than this device knows")
    if known and found.change.cycle <= known[-1].change.cycle:
        raise BadChangeError(f"change {version}, which takes effect before the one before it")
