"""The threads and the clock of a device, behind one interface.

Everything here that waits, sleeps or starts a thread uses a `Runtime`, so that tests can run a
whole mesh in one process on simulated time (``tests/mesh/simulated``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor


class Runtime:
    """Real threads and the monotonic clock, which a clock set forward or back does not change."""

    def now(self) -> float:
        """Seconds since some moment in the past."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def event(self) -> threading.Event:
        """A flag to wait for."""
        return threading.Event()

    def condition(self) -> threading.Condition:
        """A lock whose holders can wait for news."""
        return threading.Condition()

    def start(self, task: Callable[[], None], name: str) -> None:
        """Begin a task that ends with the process at the latest."""
        threading.Thread(target=task, daemon=True, name=name).start()

    def pool(self, threads: int, name: str) -> Executor:
        """Threads that wait for work."""
        return ThreadPoolExecutor(threads, thread_name_prefix=name)


REAL = Runtime()
