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
        >>> progress_line([one, {"device": "c", "left": True}, {"device": "d", "joining": True}])
        'cycle 2, steps 12 to 12, 3 messages; missing a neighbour: a; joining: d; left: c'
    """
    present = _present(statuses)
    steps = [status.get("step", 0) for status in present]
    received = sum(status.get("received", 0) for status in statuses)
    parts = [
        f"cycle {_cycle(statuses)}",
        f"steps {min(steps)} to {max(steps)}",
        *_scores(present),
        f"{received} messages",
    ]
    return "; ".join([", ".join(parts), *_troubles(statuses)])


def _present(statuses: Sequence[Status]) -> list[Status]:
    """Of the devices that take part; all if none does."""
    found = [status for status in statuses if not ("left" in status or "joining" in status)]
    return found or list(statuses)


def _cycle(statuses: Sequence[Status]) -> int:
    """How many cycles all have finished that take part."""
    return min(int(status.get("cycle", 0)) for status in _present(statuses))


def _scores(statuses: Sequence[Status]) -> list[str]:
    known = [status["score"] for status in statuses if status.get("score") is not None]
    return (
        [f"scores {min(known):.4g} to {max(known):.4g}, mean {np.mean(known):.4g}"] if known else []
    )


def _troubles(statuses: Sequence[Status]) -> list[str]:
    found = {
        "missing a neighbour": list(filter(_misses_one, statuses)),
        **{
            kind: [one for one in statuses if kind in one] for kind in ("failed", "joining", "left")
        },
    }
    return [
        f"{trouble}: {', '.join(status['device'] for status in ones)}"
        for trouble, ones in found.items()
        if ones
    ]


def _misses_one(status: Status) -> bool:
    """Whether some neighbours of a device that has not finished do not answer."""
    alive, _, linked = status.get("neighbours", "").partition("/")
    return alive != linked and not (status.get("done") or "left" in status)


class ProgressFile:
    """Appends a line when there is news, and every 10 s.

    News is that all devices have finished another cycle, that trouble begins or ends, or that
    devices join or leave.
    """

    def __init__(self, mesh: Path) -> None:
        self.path = mesh / PROGRESS
        self._last: tuple[Any, ...] = ()
        self._written_s = float("-inf")

    def note(self, statuses: Sequence[Status], always: bool = False) -> None:
        """Write where devices are, if there is news."""
        news = (_cycle(statuses), _troubles(statuses))
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
