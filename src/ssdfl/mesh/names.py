"""Device names as folders and in certificates: the network's own, refused where impossible."""

from __future__ import annotations

import ipaddress
import string
import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ssdfl.errors import InputError

LONGEST = 64
"""Characters of a common name, by X.509."""
RESERVED = ("ca", "changes", "run")
"""Folders of a mesh that are no device's."""
_LETTERS = frozenset(string.ascii_letters.encode() + string.digits.encode() + b"-")
_FORBIDDEN = frozenset('/\\:*?"<>|%')
_REMEDY = "Rename it in the network's file."


class _Rule(NamedTuple):
    """What makes a name unfit, and what is expected instead."""

    broken: Callable[[str], bool]
    expected: str


_RULES = (
    _Rule(lambda name: not name.strip(), "a name"),
    _Rule(lambda name: len(name) > LONGEST, f"at most {LONGEST} characters, as certificates have"),
    _Rule(
        lambda name: not _FORBIDDEN.isdisjoint(name),
        r'one without / \ : * ? " < > | %, to be a folder',
    ),
    _Rule(lambda name: not name.isprintable(), "printable characters, to be a folder"),
    _Rule(
        lambda name: name.strip(" .") != name,
        "one that neither begins nor ends with a space or dot",
    ),
    _Rule(lambda name: name.startswith("-"), "one that does not begin with -, as options do"),
    _Rule(
        lambda name: name.lower() in RESERVED,
        f"none of {', '.join(RESERVED)}, folders of the mesh's",
    ),
)


def check_names(names: Sequence[str]) -> None:
    """Refuse names that cannot be folders and certificates, and two that would be the same one.

    Raises:
        InputError: it says which name, and why.

    Examples:
        >>> check_names(["Dublin", "São Paulo", "rack-1.host-2", "7"])
    """
    for name in names:
        for rule in _RULES:
            if rule.broken(name):
                raise InputError("device's name", name or "none", rule.expected, _REMEDY)
    _check_distinct(names)


def _check_distinct(names: Sequence[str]) -> None:
    """Some file systems equate names that differ only in case or in composed letters."""
    found: dict[str, str] = {}
    for name in names:
        key = certificate_name(unicodedata.normalize("NFC", name)).lower()
        if key in found:
            got = f"{found[key]} and {name}"
            raise InputError("names of two devices", got, "different also in lower case", _REMEDY)
        found[key] = name


def certificate_name(name: str) -> str:
    """The DNS name in a device's certificate: its name, with `-xHH` for bytes DNS does not allow.

    A name that looks like an address is encoded, too: TLS would look for that address instead.

    Examples:
        >>> [certificate_name(name) for name in ("rack-1.host-2", "New York", "10.0.0.1")]
        ['rack-1.host-2', 'New-x20York', '10-x2e0-x2e0-x2e1']
    """
    kept = _LETTERS if _is_address(name) else _LETTERS | frozenset(b"._")
    return "".join(chr(byte) if byte in kept else f"-x{byte:02x}" for byte in name.encode())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
