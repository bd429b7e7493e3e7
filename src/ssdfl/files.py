"""Write files atomically: even if a process or machine dies, a file is complete or missing."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_READABLE_DEVICES = 20_000
_TEMPORARY = re.compile(r"\..*\.(\d+)\.tmp(\..*)?")
"""``.name.pid.tmp.suffix``: a file that the process ``pid`` was writing."""


@contextmanager
def atomic_path(path: Path | str, durable: bool = True) -> Iterator[Path]:
    """A temporary sibling that replaces ``path`` on success and is removed on failure.

    Temporaries of the same file that killed processes left behind are removed.

    Args:
        durable: the new file survives a power cut once the block has ended, and the old one until
            then. This waits for the disk, so turn it off for files that are written often or are
            easily made again.

    Raises:
        OSError: raised by the block. If it names no file, as for a full disk, the name is added.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale(path.parent.glob(f".{_literal(path.stem)}.*.tmp{_literal(path.suffix)}"))
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    try:
        yield temporary
        if durable:
            _sync(temporary)
        temporary.replace(path)
        if durable:
            _sync_folder(path.parent)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _literal(name: str) -> str:
    """A name with its `glob` wildcards escaped."""
    return re.sub(r"([*?[])", r"[\1]", name)


def _sync(path: Path) -> None:
    """Wait until a file's content is on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Wait until a folder's entries are on the disk; Windows has no such call."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_temporaries(folder: Path) -> None:
    """Remove temporaries of `atomic_path` that killed processes left in a folder and below.

    Call it when a process starts: temporaries with its own number are then stale, too.
    """
    _remove_stale(folder.rglob(".*.tmp*"), own=True)


def _remove_stale(paths: Iterable[Path], own: bool = False) -> None:
    """Remove temporaries of processes that have ended, and those of this process if ``own``."""
    for path in list(paths):
        found = _TEMPORARY.fullmatch(path.name)
        if found is None:
            continue
        process = int(found[1])
        ended = own if process == os.getpid() else not _runs(process)
        if ended:
            with suppress(OSError):  # another process may remove it at the same time
                path.unlink()


def _runs(process: int) -> bool:
    """Whether a process with this number runs on this machine."""
    if sys.platform == "win32":
        return False  # an open file cannot be removed there
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def is_there(path: Path) -> bool:
    """Whether a file or folder exists; False for texts that cannot be file names.

    Examples:
        >>> is_there(Path(".")), is_there(Path("a" * 1000))
        (True, False)
    """
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def indentation(num_devices: int) -> int | None:
    """The indentation of JSON about devices: readable, unless there are very many."""
    return 1 if num_devices <= _READABLE_DEVICES else None


def write_text(path: Path | str, text: str, durable: bool = True) -> None:
    """Write a text file atomically."""
    with atomic_path(path, durable) as temporary:
        temporary.write_text(text, encoding="utf-8")
