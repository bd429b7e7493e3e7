"""The cost of reaching a target, as tables, pages and the paper's artefacts define it."""

from __future__ import annotations

from collections.abc import Sequence

from ssdfl.records.tables import Row, is_measured


def cost_to_target(
    run: Sequence[Row],
    target: float,
    cost: str = "cycle",
    quantity: str = "score",
    *,
    better: str = "higher",
    interpolate: bool = False,
    start: float = 0.0,
) -> float | None:
    """The cost at which a run's quantity first reached a target, or None if it never did.

    Summaries, headlines and sweeps do not interpolate. They give the cost of the first test at the
    target or better, which is the price of stopping there. The paper's tables have fractions of
    cycles, so the artefacts of `ssdfl reproduce` interpolate linearly between that test and the one
    before it.

    Args:
        run: one seed's records, in order; cycles without a test are skipped.
        cost: the name of a cost, such as ``sent_bytes``; the answer is in the unit of the records.
        quantity: the metric that has to reach the target.
        better: ``lower`` if the quantity has to fall to the target.
        start: the assumed value at cost 0, for interpolation before the first test.

    Examples:
        >>> run = [{"cycle": 1, "score": 0.4}, {"cycle": 2, "score": 0.6}]
        >>> cost_to_target(run, 0.5), cost_to_target(run, 0.5, interpolate=True)
        (2.0, 1.5)
    """
    before: Row = {cost: 0.0, quantity: start}
    sign = 1 if better == "higher" else -1
    for row in run:
        if sign * row[quantity] >= sign * target and is_measured(row, cost):
            return (
                _interpolated(before, row, target, cost, quantity)
                if interpolate
                else float(row[cost])
            )
        before = row if is_measured(row, quantity) else before
    return None


def _interpolated(before: Row, after: Row, target: float, cost: str, quantity: str) -> float:
    rise = after[quantity] - before[quantity]
    share = (target - before[quantity]) / rise if rise else 1.0
    return float(before[cost] + max(share, 0.0) * (after[cost] - before[cost]))
