"""One line per method: how good, how soon, at what cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from ssdfl.records.folder import Row, RunFolder, measured
from ssdfl.report.numbers import number


@dataclass(frozen=True)
class MethodSummary:
    """A method's results over seeds.

    Attributes:
        accuracy, accuracy_std: final mean test accuracy over devices: mean and deviation over seeds.
        accuracy_worst: the same of the worst device, mean over seeds.
        seeds_at_target: how many seeds reached the target accuracy.
        cycles_to_target, bytes_to_target, seconds_to_target: mean over the seeds that reached it.
        transmissions, sent_bytes, time_s: of the whole run, mean over seeds.
        cycles: how many were run.
        unfinished: what there is, such as ``1 of 2 seeds`` or ``after cycle 3``; empty if all is there.
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
    cycles: int
    unfinished: str = ""


def summarise(folder: RunFolder) -> list[MethodSummary]:
    """Summaries of all methods of a run, in the experiment's order."""
    experiment = folder.experiment()
    rows = [row for row in folder.all_rows() if row["method"] in experiment.methods]
    return summarise_rows(rows, experiment.cycles, len(experiment.seeds), experiment.evaluate.target_accuracy)


def summarise_rows(rows: Sequence[Row], cycles: int, seeds: int, target: float) -> list[MethodSummary]:
    """Summaries of the methods that have tested at least once, in the order of their records.

    A method that has not finished is summarised over the seeds that have, or, if none has, over all that
    have tested, up to the last cycle that all of them have tested.

    Args:
        cycles, seeds: how many there are once all is done.
    """
    by_method: dict[str, dict[int, list[Row]]] = {}
    for row in rows:
        by_method.setdefault(row["method"], {}).setdefault(row["seed"], []).append(row)
    summaries = []
    for method, of_seeds in by_method.items():
        tested = [run for run in of_seeds.values() if any(map(measured, run))]
        whole = [run for run in tested if run[-1]["cycle"] == cycles]
        if whole:
            summaries.append(summarise_method(method, whole, target, seeds_done(len(whole), seeds)))
        elif tested:
            last = min(max(row["cycle"] for row in run if measured(row)) for run in tested)
            runs = [[row for row in run if row["cycle"] <= last] for run in tested]
            summaries.append(summarise_method(method, runs, target, f"after cycle {last}"))
    return summaries


def seeds_done(done: int, seeds: int) -> str:
    """How many seeds have finished, if not all have."""
    return f"{done} of {seeds} seeds" if done < seeds else ""


def summarise_method(
    method: str, runs: Sequence[Sequence[Row]], target: float, unfinished: str = ""
) -> MethodSummary:
    """One method's summary, of the records of each seed up to the same cycle."""
    final = [[row for row in run if measured(row)][-1] for run in runs]
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
        cycles=runs[0][-1]["cycle"],
        unfinished=unfinished,
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
        _name(summary),
        f"{100 * summary.accuracy:.1f}"
        + (f" ±{100 * summary.accuracy_std:.1f}" if summary.seeds > 1 else ""),
        f"{100 * summary.accuracy_worst:.1f}",
        _cost(summary.cycles_to_target, 1, share),
        _cost(summary.bytes_to_target, 1e6, share),
        _cost(summary.seconds_to_target, 1, share),
        number(summary.sent_bytes / 1e6),
        number(summary.time_s),
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


def cost_rows(summaries: Sequence[MethodSummary]) -> list[list[str]]:
    """What methods cost, in all and a cycle, as the rows of a table with `COST_HEADERS`."""
    least = min((summary.sent_bytes / summary.cycles for summary in summaries), default=0.0)
    return [
        [
            _name(summary),
            number(summary.transmissions),
            number(summary.transmissions / summary.cycles),
            number(summary.sent_bytes / 1e6),
            number(summary.sent_bytes / summary.cycles / 1e6),
            f"{summary.sent_bytes / summary.cycles / least:,.2f}" if least > 0 else "–",
            number(summary.time_s),
            number(summary.time_s / summary.cycles),
        ]
        for summary in summaries
    ]


COST_HEADERS = (
    "method",
    "messages",
    "messages a cycle",
    "MB",
    "MB a cycle",
    "times the least MB a cycle",
    "sim. s",
    "sim. s a cycle",
)


def _name(summary: MethodSummary) -> str:
    return f"{summary.method} ({summary.unfinished})" if summary.unfinished else summary.method


def _cost(value: float | None, unit: float, share: str) -> str:
    return "–" if value is None else f"{number(value / unit)}{share}"
