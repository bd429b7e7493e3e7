"""How far devices have come, signed by each of them.

A device that was away continues where the others are. It must not believe a single neighbour that
claims to be far ahead: such a claim could end everyone's training. So every device signs its step,
neighbours pass signatures on, and a step counts as reached once two devices have signed it. A liar
can sign only for itself.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable

from ssdfl.mesh.mesh_pb2 import Signature, Witness
from ssdfl.mesh.signing import Signer
from ssdfl.mesh.wire import BadMessageError

NEEDED = 2
"""How many devices have to have signed a step."""
MOST_PASSED_ON = 4


class Evidence:
    """The furthest step that each device has signed.

    Args:
        name: of this device.
        names: of all devices.
        signer: signs for this device.
    """

    def __init__(self, name: str, names: Iterable[str], signer: Signer) -> None:
        self._name, self._names, self._signer = name, frozenset(names), signer
        self.fitting: Collection[str] = ()
        self._furthest: dict[str, Witness] = {}
        self._own = Witness()
        self._lock = threading.Lock()

    def know(self, names: Iterable[str]) -> None:
        """From now on these are all devices."""
        with self._lock:
            self._names = frozenset(names)
            self._furthest = {
                name: found for name, found in self._furthest.items() if name in self._names
            }

    def own(self, step: int, plan_digest: str) -> Witness:
        """This device's step, signed."""
        with self._lock:
            if (self._own.step, self._own.plan_digest) != (
                step,
                plan_digest,
            ) or not self._own.signature:
                self._own = Witness(device=self._name, step=step, plan_digest=plan_digest)
                by = self._signer.sign(_statement(self._own))
                self._own.signature, self._own.certificate = by.signature, by.certificate
            return self._own

    def take(self, witness: Witness, plan_digest: str) -> None:
        """Keep a newer signed step of the same plan, or of one before or after a change.

        Raises:
            BadMessageError: it is unsigned, or signed by another device than it names.
        """
        with self._lock:
            fitting = {plan_digest, *self.fitting} - {""}
            known = self._furthest.get(witness.device)
            is_news = known is None or witness.step > known.step or known.plan_digest not in fitting
            concerns = witness.plan_digest in fitting and not self._is_stranger(
                witness, plan_digest
            )
            if is_news and concerns:
                self._check(witness)
                self._furthest[witness.device] = witness

    def _is_stranger(self, witness: Witness, plan_digest: str) -> bool:
        """Whether a step is this device's own, or of a device known only under another plan."""
        unknown = witness.device not in self._names and witness.plan_digest != plan_digest
        return unknown or witness.device == self._name

    def _check(self, witness: Witness) -> None:
        if witness.device not in self._names:
            raise BadMessageError(f"a step of no device, {witness.device!r}")
        signature = Signature(signature=witness.signature, certificate=witness.certificate)
        if not self._signer.has_signed(witness.device, _statement(witness), signature):
            raise BadMessageError(
                f"step {witness.step} of {witness.device}, which has not signed it"
            )

    def passed_on(self) -> list[Witness]:
        """What others have signed, the furthest first, as far as it is worth passing on."""
        with self._lock:
            return self._sorted()[:MOST_PASSED_ON]

    def reached(self) -> int:
        """The furthest step that enough other devices have signed; 0 if too few signed any."""
        with self._lock:
            steps = [int(witness.step) for witness in self._sorted()]
        return steps[NEEDED - 1] if len(steps) >= NEEDED else 0

    def _sorted(self) -> list[Witness]:
        return sorted(self._furthest.values(), key=lambda one: (-one.step, one.device))


def _statement(witness: Witness) -> bytes:
    """What is signed: for this purpose, of this plan, by this device, the step."""
    parts = ("ssdfl step", witness.plan_digest, witness.device, str(witness.step))
    return "\0".join(parts).encode()
