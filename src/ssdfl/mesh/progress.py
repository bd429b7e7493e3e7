"""How a mesh is doing, as lines of a file: what a live table shows, for those who come later."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

PROGRESS = "progress.log"
EVERY_S = 10.0

Status = dict[str, Any]


def progress_line(statuses: Sequence[Status]) -> str:
    """Where devices are, in one line.

    Examples:
        >>> one = {"device": "a", "step": 12, "cycle": 2, "neighbours": "1/2", "received": 3}
        >>> progress_line([one, {"device": "b", "failed": 2}])
        'cycle 0, steps 0 to 12, 3 messages; missing a neighbour: a; failed: b'
    """
    steps = [status.get("step", 0) for status in statuses]
    cycle = min(status.get("cycle", 0) for status in statuses)
    received = sum(status.get("received", 0) for status in statuses)
    parts = [
        f"cycle {cycle}",
        f"steps {min(steps)} to {max(steps)}",
        *_scores(statuses),
        f"{received} messages",
    ]
    return "; ".join([", ".join(parts), *_troubles(statuses)])


def _scores(statuses: Sequence[Status]) -> list[str]:
    known = [status["score"] for status in statuses if status.get("score") is not None]
    return (
        [f"scores {min(known):.4g} to {max(known):.4g}, mean {np.mean(known):.4g}"] if known else []
    )


def _troubles(statuses: Sequence[Status]) -> list[str]:
    found = {
        "missing a neighbour": [status["device"] for status in statuses if _misses_one(status)],
        "failed": [status["device"] for status in statuses if "failed" in status],
    }
    return [f"{trouble}: {', '.join(names)}" for trouble, names in found.items() if names]


def _misses_one(status: Status) -> bool:
    """Whether some neighbours of a device that has not finished do not answer."""
    alive, _, linked = status.get("neighbours", "").partition("/")
    return alive != linked and not status.get("done", False)


class ProgressFile:
    """Appends a line when all devices finish a cycle, when trouble changes, and every 10 s."""

    def __init__(self, mesh: Path) -> None:
        self.path = mesh / PROGRESS
        self._last: tuple[Any, ...] = ()
        self._written_s = float("-inf")

    def note(self, statuses: Sequence[Status], always: bool = False) -> None:
        """Write where devices are, if there is news."""
        news = (min(status.get("cycle", 0) for status in statuses), _troubles(statuses))
        due = time.monotonic() - self._written_s > EVERY_S
        if not always and news == self._last and not due:
            return
        self._last, self._written_s = news, time.monotonic()
        self._write(progress_line(statuses))

    def _write(self, text: str) -> None:
        """Append a line with the time; a full disk stops nothing."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        try:
            with self.path.open("a", encoding="utf-8") as lines:
                lines.write(f"{stamp} {text}\n")
        except OSError:
            return
