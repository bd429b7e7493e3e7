"""How many connections a device accepts, so that files can always be opened.

Anyone who reaches its port can open connections, with or without a certificate. If these took all
of the process's file descriptors, no checkpoint could be written.
"""

from __future__ import annotations

KEPT_FOR_FILES = 256
MOST_CONNECTIONS = 1024
LEAST_CONNECTIONS = 32


def allow_more_files() -> None:
    """Let the process open as many files as the system allows it to."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # some systems say that there is no limit, and have one
        return


def connections_allowed() -> int:
    """How many connections others may have to this process at a time."""
    try:
        import resource
    except ImportError:
        return MOST_CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return share_of_files(soft)


def share_of_files(limit: int) -> int:
    """Half of the files that may be open beside those that a device needs itself.

    Examples:
        >>> [share_of_files(limit) for limit in (256, 1024, 1 << 20)]
        [32, 384, 1024]
    """
    free = (limit - KEPT_FOR_FILES) // 2
    return max(LEAST_CONNECTIONS, min(MOST_CONNECTIONS, free))
