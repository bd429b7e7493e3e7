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
        sent_bytes, time_s: of the whole run, mean over seeds.
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
    sent_bytes: float
    time_s: float


def summarise(folder: RunFolder) -> list[MethodSummary]:
    """Summaries of all methods of a run, in the experiment's order."""
    experiment = folder.experiment()
    rows = folder.all_rows()
    target = experiment.evaluate.target_accuracy
    by_method = {
        method: [
            [r for r in rows if r["method"] == method and r["seed"] == seed] for seed in experiment.seeds
        ]
        for method in experiment.methods
    }
    return [
        summarise_method(method, [run for run in runs if run], target)
        for method, runs in by_method.items()
        if any(runs)
    ]


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
        sent_bytes=fmean(run[-1]["sent_bytes"] for run in runs),
        time_s=fmean(run[-1]["time_s"] for run in runs),
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


def _number(value: float | None, unit: float, share: str, digits: int = 1) -> str:
    return "–" if value is None else f"{value / unit:.{digits}f}{share}"
