"""The facts that a device's plan was formed from, as a file with a checksum."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from google.protobuf.message import DecodeError

from ssdfl.errors import InputError
from ssdfl.files import atomic_path
from ssdfl.mesh.mesh_pb2 import Facts

_DIGEST_BYTES = 32


def write_facts(facts: Facts, path: Path) -> None:
    """Write facts behind a SHA-256 of them."""
    content = facts.SerializeToString()
    with atomic_path(path) as temporary:
        temporary.write_bytes(sha256(content).digest() + content)


def read_facts(path: Path) -> Facts:
    """The facts that `write_facts` wrote.

    Raises:
        InputError: they are damaged.
    """
    try:
        whole = path.read_bytes()
        checksum, content = whole[:_DIGEST_BYTES], whole[_DIGEST_BYTES:]
        if checksum != sha256(content).digest():
            raise ValueError("the checksum differs")
        facts: Facts = Facts.FromString(content)
    except (OSError, ValueError, DecodeError) as error:
        raise InputError("facts", str(path), "a whole file", f"({error}) Delete it.") from None
    return facts
