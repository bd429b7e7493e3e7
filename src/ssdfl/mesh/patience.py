"""How long a device waits for neighbours that are there but do not deliver.

Each unsuccessful wait halves the next, so one that never delivers costs at most twice the full
time. But then an honest neighbour that is slower than the others would never be heard again. So
from time to time it gets a longer wait: a second, then two, four, and so on, at intervals that keep
the total below a share of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

FIRST_S = 1.0
SHARE = 0.1
"""Of the time may go to waiting for one neighbour that never delivers."""


@dataclass
class _Record:
    """Of one neighbour.

    Attributes:
        in_vain: consecutive unsuccessful waits.
        again_s: when to wait for longer again.
        longer_s: for how long then.
        waits_longer: whether that is being done.
    """

    again_s: float
    in_vain: int = 0
    longer_s: float = FIRST_S
    waits_longer: bool = False


class Patience:
    """The time that each neighbour gets.

    Args:
        full_s: of a neighbour that delivered the last time.
        now: a clock.
    """

    def __init__(self, full_s: float, now: Callable[[], float]) -> None:
        self._full_s, self._now = full_s, now
        self._records: dict[str, _Record] = {}

    def has_waited_in_vain(self, name: str) -> bool:
        """Whether the last wait for a neighbour was unsuccessful."""
        return name in self._records

    def left(self, name: str) -> float:
        """The share of the full time that a neighbour gets now."""
        record = self._records.get(name)
        if record is None:
            return 1.0
        halved = 0.5**record.in_vain
        record.waits_longer |= self._now() >= record.again_s
        return (
            min(1.0, max(halved, record.longer_s / self._full_s)) if record.waits_longer else halved
        )

    def in_vain(self, name: str) -> None:
        """A wait for a neighbour was unsuccessful."""
        record = self._records.setdefault(name, _Record(self._now() + FIRST_S / SHARE))
        record.in_vain += 1
        if record.waits_longer:
            record.longer_s = min(2 * record.longer_s, max(self._full_s, FIRST_S))
            record.again_s = self._now() + record.longer_s / SHARE
            record.waits_longer = False

    def heard(self, name: str) -> None:
        """A neighbour has delivered."""
        self._records.pop(name, None)
