"""What neighbours may still ask for: this device's messages of recent steps."""

from __future__ import annotations

from collections.abc import Callable

from ssdfl.mesh.mesh_pb2 import Absent, Parameters, Response, Wait
from ssdfl.mesh.runtime import REAL, Runtime
from ssdfl.mesh.transport import Answer

POLL_S = 8.0
"""Longer than most steps, since a neighbour's next request may queue behind its messages."""
MOST_KEPT = 64
MOST_KEPT_BYTES = 64 << 20
LEAST_KEPT = 4
"""Messages, however large: a neighbour that stays behind costs no more."""


class Outbox:
    """Keeps a device's messages until its neighbours have passed their steps.

    Attributes:
        first_step: the first step of the device's present stretch.
    """

    def __init__(self, runtime: Runtime = REAL) -> None:
        self._runtime = runtime
        self._messages: dict[int, bytes] = {}
        self._changed = runtime.condition()
        self.first_step = 0
        self._closed = False

    def close(self) -> None:
        """Let nobody wait any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def publish(self, step: int, message: Parameters | None, needed_from: int) -> None:
        """Offer the message of a step, if anyone needs it; older ones are dropped."""
        ready = Response(parameters=message).SerializeToString() if message is not None else None
        with self._changed:
            if ready is not None:
                self._messages[step] = ready
            self._drop_before(min(needed_from, step))
            self._changed.notify_all()

    def _drop_before(self, step: int) -> None:
        known = sorted(self._messages)
        too_old = [old for old in known if old < step]
        too_many = known[: max(0, len(known) - self._room())]
        for old in {*too_old, *too_many}:
            del self._messages[old]

    def _room(self) -> int:
        """How many messages of the size of the largest are kept."""
        largest = max(map(len, self._messages.values()), default=1)
        return max(LEAST_KEPT, min(MOST_KEPT, MOST_KEPT_BYTES // largest))

    def jump(self, step: int) -> None:
        """The device takes part from this step on."""
        with self._changed:
            self.first_step = step
            self._messages.clear()
            self._changed.notify_all()

    def answer(self, step: int, current: Callable[[], int]) -> Answer:
        """The message of a step; waits a little if the device is not there yet."""
        deadline = self._runtime.now() + POLL_S
        with self._changed:
            while step not in self._messages:
                left_s = deadline - self._runtime.now()
                if step < self.first_step or step < current():
                    return Response(absent=Absent())
                if left_s <= 0 or self._closed:
                    return Response(wait=Wait())
                self._changed.wait(left_s)
            return self._messages[step]
