"""Signing for this device, and checking what others have signed.

Every device has a key and a certificate by the mesh's authority. Anyone can pass on what it signs,
but not change it.
"""

from __future__ import annotations

from typing import Any

from ssdfl.mesh.certificates import certified_key, sign, signed
from ssdfl.mesh.mesh_pb2 import Signature
from ssdfl.mesh.transport import Credentials

MOST_KEYS = 4096
"""Certificates whose check is remembered."""


class Signer:
    """Signs for one device, and checks others' signatures.

    Args:
        credentials: this device's own.
    """

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._keys: dict[bytes, tuple[str, Any]] = {}

    def sign(self, statement: bytes) -> Signature:
        """A statement's signature by this device, with its certificate."""
        signature = sign(self._credentials.key, statement)
        return Signature(signature=signature, certificate=self._credentials.certificate)

    def has_signed(self, device: str, statement: bytes, signature: Signature) -> bool:
        """Whether a signature of a statement is by a certain device of this mesh."""
        found = self._key_of(signature.certificate)
        return (
            found is not None
            and found[0] == device
            and signed(found[1], statement, signature.signature)
        )

    def _key_of(self, certificate: bytes) -> tuple[str, Any] | None:
        """The device of a certificate and its key; None if the authority has not signed it."""
        known = self._keys.get(certificate)
        if known is None:
            known = certified_key(certificate, self._credentials.authority)
            if known is not None:
                self._remember(certificate, known)
        return known

    def _remember(self, certificate: bytes, key: tuple[str, Any]) -> None:
        if len(self._keys) >= MOST_KEYS:
            self._keys.clear()
        self._keys[certificate] = key
