"""How far devices have come, signed by each of them.

A device that was away continues where the others are. It must not believe one neighbour that claims to be far
ahead: whoever is believed can end everyone's training. So every device signs its step, neighbours pass
signatures on, and a step counts as reached once two devices have signed it. A liar can sign for itself only.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from ssdfl.mesh.certificates import certified_key, sign, signed
from ssdfl.mesh.mesh_pb2 import Witness
from ssdfl.mesh.transport import Credentials
from ssdfl.mesh.wire import BadMessageError

NEEDED = 2
"""How many devices have to have signed a step."""
MOST_PASSED_ON = 4


class Evidence:
    """The furthest step that each device has signed.

    Args:
        name: of this device.
        names: of all devices.
        credentials: this device's own.
    """

    def __init__(self, name: str, names: Iterable[str], credentials: Credentials) -> None:
        self._name, self._names, self._credentials = name, frozenset(names), credentials
        self._furthest: dict[str, Witness] = {}
        self._keys: dict[bytes, tuple[str, Any]] = {}
        self._own = Witness()
        self._lock = threading.Lock()

    def know(self, names: Iterable[str]) -> None:
        """From now on these are all devices."""
        with self._lock:
            self._names = frozenset(names)
            self._furthest = {name: found for name, found in self._furthest.items() if name in self._names}

    def own(self, step: int, plan_digest: str) -> Witness:
        """This device's step, signed."""
        with self._lock:
            if (self._own.step, self._own.plan_digest) != (step, plan_digest) or not self._own.signature:
                self._own = Witness(device=self._name, step=step, plan_digest=plan_digest)
                self._own.signature = sign(self._credentials.key, _statement(self._own))
                self._own.certificate = self._credentials.certificate
            return self._own

    def take(self, witness: Witness, plan_digest: str) -> None:
        """Keep what a device has signed, if it is news of the same plan.

        Raises:
            BadMessageError: it is signed by nobody, or by another than it says.
        """
        with self._lock:
            known = self._furthest.get(witness.device)
            is_news = known is None or witness.step > known.step or known.plan_digest != plan_digest
            is_other = witness.device != self._name and witness.plan_digest == plan_digest
            if plan_digest and is_news and is_other:
                self._check(witness)
                self._furthest[witness.device] = witness

    def _check(self, witness: Witness) -> None:
        if witness.device not in self._names:
            raise BadMessageError(f"a step of no device, {witness.device!r}")
        device, key = self._signer(witness.certificate)
        if device != witness.device or not signed(key, _statement(witness), witness.signature):
            raise BadMessageError(f"step {witness.step} of {witness.device}, which has not signed it")

    def _signer(self, certificate: bytes) -> tuple[str, Any]:
        """The device of a certificate and its key; an unknown one is checked against the authority."""
        if certificate not in self._keys:
            found = certified_key(certificate, self._credentials.authority)
            if found is None:
                raise BadMessageError("a certificate that the mesh's authority has not signed")
            if len(self._keys) > 2 * len(self._names):
                self._keys.clear()
            self._keys[certificate] = found
        return self._keys[certificate]

    def passed_on(self) -> list[Witness]:
        """What others have signed, the furthest first, as far as it is worth passing on."""
        with self._lock:
            return self._sorted()[:MOST_PASSED_ON]

    def reached(self) -> int:
        """The furthest step that enough other devices have come to; 0 if too few have signed any."""
        with self._lock:
            steps = [int(witness.step) for witness in self._sorted()]
        return steps[NEEDED - 1] if len(steps) >= NEEDED else 0

    def _sorted(self) -> list[Witness]:
        return sorted(self._furthest.values(), key=lambda one: (-one.step, one.device))


def _statement(witness: Witness) -> bytes:
    """What is signed: for this purpose, of this plan, by this device, the step."""
    parts = ("ssdfl step", witness.plan_digest, witness.device, str(witness.step))
    return "\0".join(parts).encode()
