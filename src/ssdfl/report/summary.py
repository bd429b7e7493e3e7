"""One line per method: how good, how soon, at what cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from ssdfl.experiments.store import Row, RunFolder


@dataclass(frozen=True)
class MethodSummary:
    """A method's results over seeds.

    Attributes:
        accuracy, accuracy_std: final mean test accuracy over devices: mean and deviation over seeds.
        accuracy_worst: the same of the worst device, mean over seeds.
        seeds_at_target: how many seeds reached the target accuracy.
        cycles_to_target, bytes_to_target, seconds_to_target: mean over the seeds that reached it.
        transmissions, sent_bytes, time_s: of the whole run, mean over seeds.
        cycles: how many were run, mean over seeds.
    """

    method: str
    seeds: int
    accuracy: float
    accuracy_std: float
    accuracy_worst: float
    seeds_at_target: int
    cycles_to_target: float | None
    bytes_to_target: float | None
    seconds_to_target: float | None
    transmissions: float
    sent_bytes: float
    time_s: float
    cycles: float


def summarise(folder: RunFolder) -> list[MethodSummary]:
    """Summaries of all methods of a run, in the experiment's order."""
    experiment = folder.experiment()
    rows = [row for row in folder.all_rows() if row["method"] in experiment.methods]
    return summarise_rows(rows, experiment.evaluate.target_accuracy)


def summarise_rows(rows: Sequence[Row], target: float) -> list[MethodSummary]:
    """Summaries of the methods that have tested at least once, in the order of their records."""
    by_method: dict[str, dict[int, list[Row]]] = {}
    for row in rows:
        by_method.setdefault(row["method"], {}).setdefault(row["seed"], []).append(row)
    tested = {
        method: [run for run in runs.values() if any(row["accuracy"] == row["accuracy"] for row in run)]
        for method, runs in by_method.items()
    }
    return [summarise_method(method, runs, target) for method, runs in tested.items() if runs]


def summarise_method(method: str, runs: Sequence[Sequence[Row]], target: float) -> MethodSummary:
    """One method's summary, of the records of each seed."""
    final = [[row for row in run if not math.isnan(row["accuracy"])][-1] for run in runs]
    reached = [row for run in runs if (row := first_at(run, target)) is not None]
    return MethodSummary(
        method=method,
        seeds=len(runs),
        accuracy=fmean(row["accuracy"] for row in final),
        accuracy_std=pstdev(row["accuracy"] for row in final),
        accuracy_worst=fmean(row["accuracy_worst"] for row in final),
        seeds_at_target=len(reached),
        cycles_to_target=_mean(reached, "cycle"),
        bytes_to_target=_mean(reached, "sent_bytes"),
        seconds_to_target=_mean(reached, "time_s"),
        transmissions=fmean(run[-1]["transmissions"] for run in runs),
        sent_bytes=fmean(run[-1]["sent_bytes"] for run in runs),
        time_s=fmean(run[-1]["time_s"] for run in runs),
        cycles=fmean(run[-1]["cycle"] for run in runs),
    )


def first_at(run: Sequence[Row], target: float) -> Row | None:
    """The first record whose accuracy is at least the target.

    Examples:
        >>> first_at([{"cycle": 1, "accuracy": 0.4}, {"cycle": 2, "accuracy": 0.6}], 0.5)
        {'cycle': 2, 'accuracy': 0.6}
    """
    return next((row for row in run if row["accuracy"] >= target), None)


def _mean(rows: Sequence[Row], key: str) -> float | None:
    return fmean(row[key] for row in rows) if rows else None


def cells(summary: MethodSummary) -> list[str]:
    """A summary as the cells of a table, in the order of `headers`."""
    share = (
        "" if summary.seeds_at_target == summary.seeds else f" ({summary.seeds_at_target}/{summary.seeds})"
    )
    return [
        summary.method,
        f"{100 * summary.accuracy:.1f}"
        + (f" ±{100 * summary.accuracy_std:.1f}" if summary.seeds > 1 else ""),
        f"{100 * summary.accuracy_worst:.1f}",
        _number(summary.cycles_to_target, 1, share),
        _number(summary.bytes_to_target, 1e6, share),
        _number(summary.seconds_to_target, 1, share, digits=2),
        f"{summary.sent_bytes / 1e6:.1f}",
        f"{summary.time_s:.2f}",
    ]


def headers(target: float) -> list[str]:
    """The titles of the table's columns."""
    goal = f"to {100 * target:g}%"
    return [
        "method",
        "accuracy %",
        "worst %",
        f"cycles {goal}",
        f"MB {goal}",
        f"sim. s {goal}",
        "MB",
        "sim. s",
    ]


def cost_cells(summary: MethodSummary, cheapest: MethodSummary) -> list[str]:
    """What a method cost, in all and a cycle, as the cells of a table in the order of `COST_HEADERS`."""
    cycles = summary.cycles
    return [
        summary.method,
        f"{summary.transmissions:,.0f}",
        f"{summary.transmissions / cycles:,.0f}",
        f"{summary.sent_bytes / 1e6:,.1f}",
        f"{summary.sent_bytes / cycles / 1e6:.3g}",
        f"{_ratio(summary.sent_bytes, cheapest.sent_bytes)}",
        f"{summary.time_s:,.2f}",
        f"{summary.time_s / cycles:.3g}",
    ]


COST_HEADERS = (
    "method",
    "messages",
    "messages a cycle",
    "MB",
    "MB a cycle",
    "times the least MB",
    "sim. s",
    "sim. s a cycle",
)


def _ratio(value: float, least: float) -> str:
    return f"{value / least:.2f}" if least > 0 else "–"


def _number(value: float | None, unit: float, share: str, digits: int = 1) -> str:
    return "–" if value is None else f"{value / unit:.{digits}f}{share}"
