"""How long a neighbour usually takes to answer, and so how long silence means that it is gone."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_S = 0.4
"""The least deadline, however quick a neighbour is: a busy host may pause a process for as long."""
DEVIATIONS = 8
KNOWN_AFTER = 4
"""Answers that are needed before a usual time is known."""


@dataclass
class ReplyTimes:
    """Mean and mean deviation of one neighbour's replies, smoothed as TCP's are (RFC 6298).

    Args:
        most_s: the deadline while little is known, and the longest.

    Examples:
        >>> usual = ReplyTimes(1.5)
        >>> for _ in range(20):
        ...     usual.heard(0.1)
        >>> usual.deadline_s < 0.45
        True
        >>> usual.missed()
        >>> usual.deadline_s > 0.7
        True
    """

    most_s: float
    count: int = 0
    mean_s: float = 0.0
    deviation_s: float = 0.0
    misses: int = 0

    def heard(self, seconds: float) -> None:
        """A reply took so long."""
        if self.count == 0:
            self.mean_s, self.deviation_s = seconds, seconds / 2
        else:
            self.deviation_s += (abs(seconds - self.mean_s) - self.deviation_s) / 4
            self.mean_s += (seconds - self.mean_s) / 8
        self.count, self.misses = self.count + 1, 0

    def missed(self) -> None:
        """No reply came in time; the next may take twice as long, so that slower ones are heard."""
        self.misses += 1

    @property
    def deadline_s(self) -> float:
        """How soon the next reply has to come."""
        if self.count < KNOWN_AFTER:
            return self.most_s
        usual_s = max(LEAST_S, self.mean_s + DEVIATIONS * self.deviation_s)
        return min(self.most_s, usual_s * 2.0 ** min(self.misses, 10))
