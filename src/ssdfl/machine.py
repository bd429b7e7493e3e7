"""The resources of this machine."""

from __future__ import annotations

import os
from pathlib import Path

_MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")


def cores() -> int:
    """The number of cores this process may use or, if unknown, the number of cores."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """The most memory this process may use: the machine's, or a container's limit."""
    pages = (
        os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**63 // 4096
    )  # not on Windows
    machine = pages * (os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096)
    limit = _MEMORY_LIMIT.read_text(encoding="utf-8").strip() if _MEMORY_LIMIT.exists() else "max"
    return min(machine, int(limit)) if limit.isdecimal() else machine
