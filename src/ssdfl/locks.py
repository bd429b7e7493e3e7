"""Lock files, which one process at a time may hold."""

from __future__ import annotations

import datetime
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_LONGEST_NOTE = 200

if sys.platform == "win32":
    import msvcrt

    _PLACE = 1 << 20  # behind the note, since other processes cannot read locked bytes

    def _lock(file: IO[bytes]) -> None:
        file.seek(_PLACE)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

    def _unlock(file: IO[bytes]) -> None:
        file.seek(_PLACE)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Hold a lock file for the block. The file names its holder, and stays on disk, empty.

    The operating system frees the lock when its process ends in any way.

    Raises:
        BlockingIOError: another process or this one already holds it; the message names it.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, locked(f"{folder}/lock"):
        ...     with locked(f"{folder}/lock"):
        ...         pass
        Traceback (most recent call last):
        BlockingIOError: ...
    """
    with Path(path).open("ab+") as file:
        try:
            _lock(file)
        except (BlockingIOError, PermissionError) as error:  # Windows raises the second
            raise BlockingIOError(
                error.errno, f"{_holder(file)} holds the lock", str(path)
            ) from error
        try:
            _write_note(file, _own_name())
            yield
        finally:
            _write_note(file, "")
            _unlock(file)


def is_held(path: Path) -> bool:
    """Whether a process holds a lock file.

    If none does, this takes the lock for an instant, so processes that want it should retry.
    """
    if not path.exists():
        return False
    try:
        with locked(path):
            return False
    except BlockingIOError:
        return True


def _own_name() -> str:
    """A description by which others can find this process."""
    now = datetime.datetime.now().astimezone()
    return f"process {os.getpid()} on {platform.node()} since {now:%Y-%m-%d %H:%M:%S}"


def _write_note(file: IO[bytes], note: str) -> None:
    with suppress(OSError):  # the lock also works on a full disk
        file.truncate(0)
        file.write(note.encode())
        file.flush()


def _holder(file: IO[bytes]) -> str:
    """The holder of a lock, from its file."""
    file.seek(0)
    note = file.read(_LONGEST_NOTE).decode(errors="replace")
    return note if note.isprintable() and note else "another process"
