"""Curves: a quantity against what it cost, mean and band over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.records.record import METRICS, Metric
from ssdfl.records.tables import Row, is_measured


@dataclass(frozen=True, eq=False)
class Curve:
    """A quantity of one method wherever it was recorded: (P,) arrays.

    Attributes:
        costs: since the start, mean over seeds, by the names of costs.
        mean, low, high: over the seeds that have the cycle; in a run that goes on some are ahead.
    """

    costs: dict[str, FloatArray]
    mean: FloatArray
    low: FloatArray
    high: FloatArray


def curve(rows: Sequence[Row], quantity: str, costs: Sequence[str] | None = None) -> Curve:
    """The curve of one method's records of all seeds; cycles where the quantity is NaN are left out.

    Args:
        costs: by default all that the records have.

    Examples:
        >>> rows = [{"cycle": 1, "seed": s, "loss": v} for s, v in ((0, 2.0), (1, 4.0))]
        >>> curve(rows, "loss", ["cycle"]).mean.tolist()
        [3.0]
    """
    if costs is None:
        costs = [metric.name for metric in shown_metrics(rows) if metric.axis]
    cycles = _by_cycle(row for row in rows if is_measured(row, quantity))
    values = [_values(of_cycle, quantity) for of_cycle in cycles]
    return Curve(
        costs={name: np.array([_values(of_cycle, name).mean() for of_cycle in cycles]) for name in costs},
        mean=np.array([of_cycle.mean() for of_cycle in values]),
        low=np.array([of_cycle.min() for of_cycle in values]),
        high=np.array([of_cycle.max() for of_cycle in values]),
    )


def _by_cycle(rows: Iterable[Row]) -> list[list[Row]]:
    groups: dict[int, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["cycle"], []).append(row)
    return [groups[cycle] for cycle in sorted(groups)]


def _values(rows: Sequence[Row], name: str) -> FloatArray:
    return np.array([row[name] for row in rows], dtype=float)


def shown_metrics(rows: Sequence[Row]) -> list[Metric]:
    """The metrics that every run has, and those optional ones that some of these records have."""
    return [
        metric
        for metric in METRICS.values()
        if not metric.optional or any(is_measured(row, metric.name) for row in rows)
    ]


def evenly_spaced(length: int, most: int) -> list[int]:
    """At most so many positions of ``range(length)``, evenly spaced, with the first and the last.

    Examples:
        >>> evenly_spaced(5, 3), evenly_spaced(2, 3)
        ([0, 2, 4], [0, 1])
    """
    if length <= most:
        return list(range(length))
    return sorted({round(k * (length - 1) / max(most - 1, 1)) for k in range(max(most, 2))})
