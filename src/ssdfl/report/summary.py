"""One line per method: its score, its cost to the target and its total cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from statistics import fmean, pstdev
from typing import Any

from ssdfl.records.folder import RunFolder
from ssdfl.records.record import COSTS, RANKED_COSTS
from ssdfl.records.scores import ACCURACY, READINGS, Goal
from ssdfl.records.tables import Row, is_measured
from ssdfl.report.grouping import group_by
from ssdfl.report.target import cost_to_target

Seeds = Mapping[int, Sequence[Row]]
"""The records of each seed of a method."""

_FLAT_NAMES = {"cycle": "cycles", "sent_bytes": "bytes", "time_s": "seconds"}


@dataclass(frozen=True)
class MethodSummary:
    """A method's results over seeds.

    Attributes:
        score, score_std: final score of honest devices in the column `reading`: mean and deviation
            over seeds.
        score_worst: final score of the worst device, mean over seeds; NaN if devices were not
            tested.
        seeds_at_target: how many seeds reached the target; 0 if there is none.
        to_target: the cost of reaching the target, by the name of a ranked cost: the mean over the
            seeds that reached it. A cost that no seed has is left out.
        totals: the cost of the whole run, by the name of a cost: the mean over seeds. A cost that
            was not measured, such as real seconds in a simulation, is left out.
        metric: the name of the score.
        liar_score: final score of the devices that lie; None if there are none.
        unfinished: the progress so far, such as ``1 of 2 seeds`` or ``after cycle 3``; empty if the
            run is complete.
        reading: the column of records that is ranked, and that has to reach the target.
    """

    method: str
    seeds: int
    score: float
    score_std: float
    score_worst: float
    seeds_at_target: int
    to_target: Mapping[str, float]
    totals: Mapping[str, float]
    unfinished: str = ""
    metric: str = ACCURACY.name
    reading: str = READINGS[0]
    liar_score: float | None = None

    @property
    def lied_to(self) -> bool:
        """Whether some devices lied."""
        return self.liar_score is not None

    @property
    def finished(self) -> bool:
        """Whether all cycles and seeds are done."""
        return not self.unfinished

    @property
    def reached_target(self) -> bool:
        """Whether every seed reached the target."""
        return self.seeds_at_target == self.seeds

    @property
    def cycles(self) -> int:
        """The number of cycles run."""
        return int(self.totals["cycle"])

    @property
    def transmissions(self) -> float:
        """Messages of the whole run."""
        return self.totals["transmissions"]

    @property
    def sent_bytes(self) -> float:
        """Bytes of the whole run."""
        return self.totals["sent_bytes"]

    @property
    def time_s(self) -> float:
        """Simulated seconds of the whole run."""
        return self.totals["time_s"]

    @property
    def cycles_to_target(self) -> float | None:
        """Cycles until the target was reached, if it was."""
        return self.to_target.get("cycle")

    @property
    def bytes_to_target(self) -> float | None:
        """Bytes until the target was reached, if it was."""
        return self.to_target.get("sent_bytes")

    @property
    def seconds_to_target(self) -> float | None:
        """Simulated seconds until the target was reached, if it was."""
        return self.to_target.get("time_s")

    def flat(self) -> dict[str, Any]:
        """All values by name, for JSON and CSV: ``bytes_to_target``, ``sent_bytes`` and so on."""
        ranked = [name for name in RANKED_COSTS if name in self.totals]
        to_target = {
            f"{_FLAT_NAMES.get(name, name)}_to_target": self.to_target.get(name) for name in ranked
        }
        totals = dict(self.totals)
        cycles = int(totals.pop("cycle"))
        return {
            "method": self.method,
            "seeds": self.seeds,
            "metric": self.metric,
            "score": self.score,
            "score_std": self.score_std,
            "score_worst": None if math.isnan(self.score_worst) else self.score_worst,
            "reading": self.reading,
            **({"liar_score": self.liar_score} if self.lied_to else {}),
            "seeds_at_target": self.seeds_at_target,
            **to_target,
            **totals,
            "cycles": cycles,
            "unfinished": self.unfinished,
        }


def flat_columns(
    summaries: Sequence[MethodSummary],
) -> tuple[list[str], list[list[Any]]]:
    """The names of all values of summaries, and each summary's values; None if it lacks one."""
    flat = [summary.flat() for summary in summaries]
    columns = list(dict.fromkeys(chain.from_iterable(flat)))
    return columns, [[values.get(column) for column in columns] for values in flat]


def summarise(folder: RunFolder) -> list[MethodSummary]:
    """Summaries of all methods of a run, in the experiment's order."""
    experiment = folder.experiment()
    rows = [row for row in folder.all_rows() if row["method"] in experiment.methods]
    return summarise_rows(rows, experiment.cycles, len(experiment.seeds), folder.goal(experiment))


def summarise_rows(rows: Iterable[Row], cycles: int, seeds: int, goal: Goal) -> list[MethodSummary]:
    """Summaries of the methods that were tested at least once, in the order of their records.

    An unfinished method is summarised over its finished seeds. If there are none, it is summarised
    over all tested seeds, up to the last cycle that was tested on all of them.

    Args:
        cycles, seeds: their numbers in the complete run.
    """
    summaries = []
    for method, of_seeds in rows_by_method(rows).items():
        runs, unfinished = _comparable_runs(of_seeds, cycles, seeds, goal.reading)
        if runs:
            summaries.append(summarise_method(method, runs, goal, unfinished))
    return summaries


def rows_by_method(rows: Iterable[Row]) -> dict[str, dict[int, list[Row]]]:
    """Records by method and seed, in their original order."""
    by_method = group_by(rows, itemgetter("method"))
    return {method: group_by(own, itemgetter("seed")) for method, own in by_method.items()}


def _comparable_runs(
    of_seeds: Seeds, cycles: int, seeds: int, reading: str
) -> tuple[list[Sequence[Row]], str]:
    """Runs of equal length over the seeds, as long as possible, and a note on what is missing."""
    tested = [run for run in of_seeds.values() if _has_test(run, reading)]
    if not tested:
        return [], ""
    whole = [run for run in tested if run[-1]["cycle"] == cycles]
    if whole:
        return whole, seeds_done(len(whole), seeds)
    return _up_to_shared_test(tested, reading)


def _up_to_shared_test(
    runs: Sequence[Sequence[Row]], reading: str
) -> tuple[list[Sequence[Row]], str]:
    """Runs up to the last cycle that was tested in all of them."""
    last = min(_last_test(run, reading)["cycle"] for run in runs)
    return [_until(run, last) for run in runs], f"after cycle {last}"


def _has_test(run: Sequence[Row], reading: str) -> bool:
    return any(is_measured(row, reading) for row in run)


def _until(run: Sequence[Row], cycle: int) -> list[Row]:
    return [row for row in run if row["cycle"] <= cycle]


def _last_test(run: Sequence[Row], reading: str) -> Row:
    return next(row for row in reversed(run) if is_measured(row, reading))


def seeds_done(done: int, seeds: int) -> str:
    """The number of finished seeds, if not all have finished."""
    return f"{done} of {seeds} seeds" if done < seeds else ""


def summarise_method(
    method: str, runs: Sequence[Sequence[Row]], goal: Goal, unfinished: str = ""
) -> MethodSummary:
    """Summarise one method from the records of each seed up to the same cycle."""
    tests = [_last_test(run, goal.reading) for run in runs]
    scores, worst = _values(tests, goal.reading), _values(tests, "score_worst")
    reached = {name: _costs_to_target(runs, goal, name) for name in RANKED_COSTS}
    return MethodSummary(
        method=method,
        seeds=len(runs),
        score=fmean(scores),
        score_std=pstdev(scores),
        score_worst=fmean(worst) if worst else math.nan,
        seeds_at_target=len(reached["cycle"]),
        to_target=_means(reached),
        totals=_means({name: _values([run[-1] for run in runs], name) for name in COSTS}),
        unfinished=unfinished,
        metric=goal.score.name,
        reading=goal.reading,
        liar_score=_means({"liars": _values(tests, "liar_score")}).get("liars"),
    )


def _costs_to_target(runs: Sequence[Sequence[Row]], goal: Goal, name: str) -> list[float]:
    """The costs of the seeds that reached the target, if there is a target."""
    if goal.target is None:
        return []
    costs = (
        cost_to_target(run, goal.target, name, goal.reading, better=goal.score.better)
        for run in runs
    )
    return [cost for cost in costs if cost is not None]


def _values(rows: Sequence[Row], name: str) -> list[float]:
    """The measured values of a metric."""
    return [row[name] for row in rows if is_measured(row, name)]


def _means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Means by name; names without a value are left out."""
    return {name: fmean(known) for name, known in values.items() if known}
