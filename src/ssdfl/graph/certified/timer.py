"""A timer for the remaining computing time."""

from __future__ import annotations

import time


class Timer:
    """Counts this thread's CPU seconds, so that a busy machine proves as much as an idle one."""

    def __init__(self, seconds: float) -> None:
        self._end = time.thread_time() + seconds

    @property
    def left_s(self) -> float:
        """The remaining seconds, at least 0."""
        return max(0.0, self._end - time.thread_time())

    def share(self, parts: int) -> Timer:
        """A timer for one of several equal parts of the remaining time."""
        return Timer(self.left_s / parts)
