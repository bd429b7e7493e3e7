"""How a device notices that it was away itself: its process was stopped, or has just started.

By then others have moved on. If it continued where it was, devices that see it there would wait
for it.
"""

from __future__ import annotations

from ssdfl.mesh.runtime import REAL, Runtime

BEAT_S = 0.1
AWAY_S = 0.5
"""A longer time without a beat means that the device was away; a busy host causes shorter ones."""


class Absence:
    """Detects pauses of its own process by a regular beat.

    Args:
        watched: whether the device looks for its own absence at all.

    Attributes:
        is_on: whether the device has been away, and has not caught up.
    """

    def __init__(self, watched: bool, runtime: Runtime = REAL) -> None:
        self._watched, self._runtime = watched, runtime
        self._ended = runtime.event()
        self._beat_s, self._beats = runtime.now(), False
        self.is_on = False

    def watch(self) -> None:
        """Begin to beat."""
        self._beat_s = self._runtime.now()
        if self._watched and not self._beats:
            self._beats = True
            self._runtime.start(self._beat, "pulse")

    def begin(self) -> None:
        """The device has been away: it has just started."""
        self.is_on = self._watched

    def check(self) -> bool:
        """Whether the device has been away."""
        late_s = self._runtime.now() - self._beat_s
        self.is_on |= self._watched and late_s > AWAY_S
        return self.is_on

    def over(self) -> None:
        """The device has caught up."""
        self.is_on, self._beat_s = False, self._runtime.now()

    def stop(self) -> None:
        """End the pulse."""
        self._ended.set()

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_S):
            self.check()
            self._beat_s = self._runtime.now()
