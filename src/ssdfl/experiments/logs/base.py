"""The interface of logs, and the names of metrics in them."""

from __future__ import annotations

import sys
from typing import Literal, Protocol

from ssdfl.records.record import METRICS
from ssdfl.records.tables import Row, is_measured

Outcome = Literal["FINISHED", "KILLED", "FAILED"]
"""How a run ended, in MLflow's terms."""

ALWAYS_MEASURED = "transmissions"
"""A metric that every record has; its last step is the last cycle in a log."""
STEP = "cycle"
"""The metric on the x-axis of all others."""


class Log(Protocol):
    """A destination for records in addition to the run's folder."""

    def last(self, seed: int, method: str) -> int:
        """The last cycle that was written before this run was resumed; 0 if none was."""

    def write(self, seed: int, method: str, row: Row) -> None:
        """Add one cycle's record."""

    def close(self, outcome: Outcome) -> None:
        """End the log."""


def scalars(row: Row) -> dict[str, float]:
    """A record's metrics without the cycle; metrics not measured in this cycle are left out.

    Examples:
        >>> scalars({"cycle": 1, "loss": 0.5, "score": float("nan")})
        {'loss': 0.5}
    """
    return {name: float(row[name]) for name in METRICS if name != STEP and is_measured(row, name)}


def warn(text: str) -> None:
    """Print one line that does not end the run."""
    sys.stderr.write(f"ssdfl: {' '.join(text.split())}\n")
