"""What it costs to reach a target: the one definition that tables, pages and the paper's artefacts share."""

from __future__ import annotations

from collections.abc import Sequence

from ssdfl.records.tables import Row, is_measured


def cost_to_target(
    run: Sequence[Row],
    target: float,
    cost: str = "cycle",
    quantity: str = "accuracy",
    *,
    interpolate: bool = False,
) -> float | None:
    """What a run had spent when a quantity first reached a target; None if it never did.

    Summaries, headlines and sweeps do not interpolate: they give the cost of the first test at or above the
    target, which is what somebody who stops there has paid. The paper's tables have fractions of cycles, so
    the artefacts of `ssdfl reproduce` interpolate linearly between that test and the one before it; a run
    starts at cost 0 with 0.

    Args:
        run: one seed's records, in order; cycles without a test are skipped.
        cost: the name of a cost, such as ``sent_bytes``; the answer is in what records store.
        quantity: the metric that has to reach the target.

    Examples:
        >>> run = [{"cycle": 1, "accuracy": 0.4}, {"cycle": 2, "accuracy": 0.6}]
        >>> cost_to_target(run, 0.5), cost_to_target(run, 0.5, interpolate=True)
        (2.0, 1.5)
    """
    tests = [row for row in run if is_measured(row, quantity) and is_measured(row, cost)]
    first = next((k for k, row in enumerate(tests) if row[quantity] >= target), None)
    if first is None:
        return None
    if not interpolate:
        return float(tests[first][cost])
    start: Row = {cost: 0.0, quantity: 0.0}
    before = tests[first - 1] if first else start
    return _interpolated(before, tests[first], target, cost, quantity)


def _interpolated(before: Row, after: Row, target: float, cost: str, quantity: str) -> float:
    rise = after[quantity] - before[quantity]
    share = (target - before[quantity]) / rise if rise > 0 else 1.0
    return float(before[cost] + max(share, 0.0) * (after[cost] - before[cost]))
