"""Curves: a quantity against its cost, as mean and band over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.records.record import METRICS, Metric
from ssdfl.records.tables import Row, is_measured
from ssdfl.report.grouping import group_by


@dataclass(frozen=True, eq=False)
class Curve:
    """A quantity of one method at each recorded cycle, as (P,) arrays.

    Attributes:
        costs: the costs since the start, mean over seeds, by name.
        mean, low, high: over the seeds that have the cycle; during a run some seeds are ahead.
    """

    costs: dict[str, FloatArray]
    mean: FloatArray
    low: FloatArray
    high: FloatArray


def curve(rows: Sequence[Row], quantity: str, costs: Sequence[str] | None = None) -> Curve:
    """One method's curve over all seeds; cycles where the quantity is NaN are left out.

    Args:
        costs: by default all that the records have.

    Examples:
        >>> rows = [{"cycle": 1, "seed": s, "loss": v} for s, v in ((0, 2.0), (1, 4.0))]
        >>> curve(rows, "loss", ["cycle"]).mean.tolist()
        [3.0]
    """
    costs = costs or names_of_costs(rows)
    measured = [row for row in rows if is_measured(row, quantity)]
    by_cycle = group_by(sorted(measured, key=itemgetter("cycle")), itemgetter("cycle"))
    cycles = list(by_cycle.values())
    return Curve(
        costs={name: _reduced(np.mean, cycles, name) for name in costs},
        mean=_reduced(np.mean, cycles, quantity),
        low=_reduced(np.min, cycles, quantity),
        high=_reduced(np.max, cycles, quantity),
    )


def _reduced(
    reduce: Callable[[FloatArray], Any], cycles: Sequence[Sequence[Row]], name: str
) -> FloatArray:
    """(P,) a metric reduced over the seeds of each cycle."""
    return np.array([reduce(_values(of_cycle, name)) for of_cycle in cycles])


def _values(rows: Sequence[Row], name: str) -> FloatArray:
    return np.array([row[name] for row in rows], dtype=float)


def shown_metrics(rows: Sequence[Row], metrics: Mapping[str, Metric] = METRICS) -> list[Metric]:
    """The metrics that every run has, and the optional ones that some of these records have."""
    return [metric for metric in metrics.values() if not metric.optional or _any_has(rows, metric)]


def _any_has(rows: Sequence[Row], metric: Metric) -> bool:
    return any(is_measured(row, metric.name) for row in rows)


def names_of_costs(rows: Sequence[Row]) -> list[str]:
    """The costs that can be the x-axis of these records' curves."""
    return [metric.name for metric in shown_metrics(rows) if metric.axis]


def names_of_ranked_costs(rows: Sequence[Row]) -> list[str]:
    """The costs of these records by which methods are ranked."""
    return [name for name in names_of_costs(rows) if METRICS[name].ranked]


def names_of_quantities(rows: Sequence[Row]) -> list[str]:
    """The metrics of these records that curves can show."""
    return [metric.name for metric in shown_metrics(rows) if not metric.axis]


def evenly_spaced(length: int, most: int) -> list[int]:
    """At most ``most`` positions of ``range(length)``, evenly spaced, with the first and the last.

    Examples:
        >>> evenly_spaced(5, 3), evenly_spaced(2, 3)
        ([0, 2, 4], [0, 1])
    """
    if length <= most:
        return list(range(length))
    steps = max(most - 1, 1)
    return sorted({round(k * (length - 1) / steps) for k in range(steps + 1)})
