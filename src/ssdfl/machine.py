"""What this machine offers."""

from __future__ import annotations

import os


def cores() -> int:
    """How many cores this process may use; where the system does not tell, how many there are."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
