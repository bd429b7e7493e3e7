"""Curves: a quantity against what it cost, mean and band over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.records.folder import Row, measured

COSTS = ("cycle", "transmissions", "sent_bytes", "time_s")
QUANTITIES = (
    "accuracy",
    "accuracy_worst",
    "average_model_accuracy",
    "loss",
    "consensus_distance",
)


@dataclass(frozen=True, eq=False)
class Curve:
    """A quantity of one method wherever it was recorded: (P,) arrays.

    Attributes:
        costs: since the start, mean over seeds, by the names of `COSTS`.
        mean, low, high: over the seeds that have the cycle; in a run that goes on some are ahead.
    """

    costs: dict[str, FloatArray]
    mean: FloatArray
    low: FloatArray
    high: FloatArray


def curve(rows: Sequence[Row], quantity: str, costs: Sequence[str] = COSTS) -> Curve:
    """The curve of one method's records of all seeds; cycles where the quantity is NaN are left out.

    Examples:
        >>> rows = [{"cycle": 1, "seed": s, "loss": v} for s, v in ((0, 2.0), (1, 4.0))]
        >>> curve(rows, "loss", ["cycle"]).mean.tolist()
        [3.0]
    """
    by_cycle: dict[int, list[Row]] = {}
    for row in rows:
        if measured(row, quantity):
            by_cycle.setdefault(row["cycle"], []).append(row)
    groups = [by_cycle[cycle] for cycle in sorted(by_cycle)]
    values = [[row[quantity] for row in group] for group in groups]
    return Curve(
        costs={key: np.array([np.mean([row[key] for row in group]) for group in groups]) for key in costs},
        mean=np.array([np.mean(of_cycle) for of_cycle in values]),
        low=np.array([min(of_cycle) for of_cycle in values]),
        high=np.array([max(of_cycle) for of_cycle in values]),
    )


def spread(length: int, most: int) -> list[int]:
    """At most so many positions of ``range(length)``, evenly spread, with the first and the last.

    Examples:
        >>> spread(5, 3), spread(2, 3)
        ([0, 2, 4], [0, 1])
    """
    if length <= most:
        return list(range(length))
    return sorted({round(k * (length - 1) / max(most - 1, 1)) for k in range(max(most, 2))})
