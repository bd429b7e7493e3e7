"""How much of the computing time that was asked for is left."""

from __future__ import annotations

import time


class Timer:
    """Seconds of this thread's computing, so that a busy machine proves as much as an idle one."""

    def __init__(self, seconds: float) -> None:
        self._end = time.thread_time() + seconds

    @property
    def left_s(self) -> float:
        """Seconds that are left, 0 if none are."""
        return max(0.0, self._end - time.thread_time())

    def share(self, parts: int) -> Timer:
        """A timer for one of several equal parts of what is left."""
        return Timer(self.left_s / parts)
