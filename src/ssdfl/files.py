"""Files that are either whole or not there, whatever ends a process or a machine."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_READABLE_DEVICES = 20_000
_TEMPORARY = re.compile(r"\..*\.(\d+)\.tmp(\..*)?")
"""``.name.pid.tmp.ending``: a file that the process ``pid`` was writing."""


@contextmanager
def atomic_path(path: Path | str, durable: bool = True) -> Iterator[Path]:
    """A temporary sibling that replaces ``path`` on success and vanishes on failure.

    What killed processes left of the same file is removed.

    Args:
        durable: the new file survives a power cut once the block has ended, and the old one until
            then. That waits for the disk: leave it out for what is written often or made again
            easily.

    Raises:
        OSError: of the block, with the name of the file if it has none: a full disk names no file.
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
    """A name in which `glob` takes no character for a wildcard."""
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
    """Remove what killed processes left of `atomic_path` in a folder and below.

    For a process that starts: temporaries of its own number are older than itself, too.
    """
    _remove_stale(folder.rglob(".*.tmp*"), own=True)


def _remove_stale(paths: Iterable[Path], own: bool = False) -> None:
    """Remove temporaries of processes that have ended, and perhaps those of this one's number."""
    for path in list(paths):
        found = _TEMPORARY.fullmatch(path.name)
        if found is None:
            continue
        process = int(found[1])
        ended = own if process == os.getpid() else not _runs(process)
        if ended:
            with suppress(OSError):  # another start may remove it, too
                path.unlink()


def _runs(process: int) -> bool:
    """Whether a process of that number runs on this machine."""
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
    """How far JSON about devices is indented: for people to read, unless there are very many."""
    return 1 if num_devices <= _READABLE_DEVICES else None


def write_text(path: Path | str, text: str, durable: bool = True) -> None:
    """Write a text file atomically."""
    with atomic_path(path, durable) as temporary:
        temporary.write_text(text, encoding="utf-8")
