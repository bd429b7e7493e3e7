"""Files that one process at a time may hold."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

    def _unlock(file: IO[bytes]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Hold a lock file for the block; it stays on disk, empty.

    The operating system frees the lock when its process ends, however that ends.

    Raises:
        BlockingIOError: someone holds it already, another process or this one.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, locked(f"{folder}/lock"):
        ...     with locked(f"{folder}/lock"):
        ...         pass
        Traceback (most recent call last):
        BlockingIOError: ...
    """
    with Path(path).open("ab") as file:
        try:
            _lock(file)
        except (BlockingIOError, PermissionError) as error:  # the second is how Windows says it
            raise BlockingIOError(error.errno, "another process holds the lock", str(path)) from error
        try:
            yield
        finally:
            _unlock(file)


def is_held(path: Path) -> bool:
    """Whether someone holds a lock file.

    If nobody does, it is taken for an instant: whoever takes such a lock should try more than once.
    """
    if not path.exists():
        return False
    try:
        with locked(path):
            return False
    except BlockingIOError:
        return True
