"""A device's log, bounded whatever others send: one line a record, no repeats, rotated."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path

LOG = "device.log"
MOST_BYTES = 4 << 20
OLD_FILES = 2
WINDOW_S = 10.0
MOST_ALIKE = 20
"""Lines with the same wording in a window."""
LONGEST_LINE = 2000


@contextmanager
def logging_to(folder: Path) -> Iterator[None]:
    """Write what the package logs into a device's folder for the block."""
    handler = _Handler(folder / LOG, maxBytes=MOST_BYTES, backupCount=OLD_FILES, encoding="utf-8")
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(message)s"))
    handler.addFilter(Throttle())
    root = logging.getLogger("ssdfl")
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.setLevel(before)
        root.removeHandler(handler)
        handler.close()


class _Handler(RotatingFileHandler):
    """Rotates; a line that a full disk does not take is lost and no reason to write elsewhere."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Do without the line."""


class OneLine(logging.Formatter):
    """Formats a record as one line of limited length.

    Messages may quote what others send: with a line break, they could forge lines of the log.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, with control characters escaped."""
        return one_line(super().format(record))


def one_line(text: str) -> str:
    r"""A text without control characters, cut if it is very long.

    Examples:
        >>> print(one_line("a\nERROR b\x1b[2J"))
        a\nERROR b\x1b[2J
    """
    shown = text if text.isprintable() else "".join(map(_shown, text))
    return shown if len(shown) <= LONGEST_LINE else f"{shown[:LONGEST_LINE]} …"


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


@dataclass
class _Window:
    """Lines of one wording since a moment."""

    since_s: float
    lines: int = 0


class Throttle(logging.Filter):
    """Passes a few lines of each wording in a while; the next one says how many were dropped."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._windows: dict[tuple[str, str], _Window] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        key = (record.name, str(record.msg))  # the wording, not what fills it: there are few
        window = self._windows.setdefault(key, _Window(self._now()))
        left_out = max(0, window.lines - MOST_ALIKE)
        if self._now() - window.since_s > WINDOW_S:
            self._windows[key] = window = _Window(self._now())
            if left_out:
                record.msg = f"{record.msg} ({left_out} more like this were left out)"
        window.lines += 1
        return window.lines <= MOST_ALIKE
