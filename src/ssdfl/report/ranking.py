"""What of one run or several can be held against each other; `central` is a reference, not a contender."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ssdfl.records.config import Experiment
from ssdfl.records.folder import Row
from ssdfl.report.leads import verdict
from ssdfl.report.summary import MethodSummary, summarise_rows

REFERENCE = "central"
NOT_RANKED = f"The reference {REFERENCE} is not ranked."


@dataclass(frozen=True)
class Side:
    """A run, or one of several that are compared: its experiment, its records, and what it is called."""

    experiment: Experiment
    rows: Sequence[Row]
    name: str = ""

    @property
    def missing(self) -> str:
        """What a side that is not finished lacks; empty if nothing."""
        total = self.experiment.all_cycles
        return f"{len(self.rows)} of {total} cycles are recorded" if len(self.rows) < total else ""

    def summaries(self, target: float) -> list[MethodSummary]:
        """A summary of each method that has tested."""
        return summarise_rows(self.rows, self.experiment.cycles, len(self.experiment.seeds), target)


def ranked(sides: Sequence[Side], target: float) -> list[MethodSummary]:
    """Summaries that can be held against each other, without the reference unless there is nobody else.

    Of a side that is not finished these are the methods that have whole runs, on the seeds that all of
    these have completed; or, if it has no whole run, how far each method is.
    """
    of_sides = [[row for row in side.rows if row["method"] != REFERENCE] for side in sides]
    if not any(of_sides):
        of_sides = [list(side.rows) for side in sides]
    found = []
    for side, rows in zip(sides, of_sides, strict=True):
        whole: dict[str, set[int]] = {}
        for row in rows:
            if row["cycle"] == side.experiment.cycles:
                whole.setdefault(row["method"], set()).add(row["seed"])
        seeds = set.intersection(*whole.values()) if whole else set[int]()
        shared = [row for row in rows if row["method"] in whole and row["seed"] in seeds]
        for summary in summarise_rows(shared or rows, side.experiment.cycles, len(seeds), target):
            label = f"{summary.method} in {side.name}" if side.name else summary.method
            found.append(replace(summary, method=label))
    return found


def headline(sides: Sequence[Side], target: float) -> str:
    """Who won, that the reference is not ranked if it is there, and which sides are not finished."""
    field = ranked(sides, target)
    methods = {row["method"] for side in sides for row in side.rows}
    said = [verdict(field, target), *([NOT_RANKED] if REFERENCE in methods and len(methods) > 1 else [])]
    unfinished = [side for side in sides if side.missing]
    said += [f"{side.name} is unfinished: {side.missing}." for side in unfinished if side.name]
    said += [f"Unfinished: {side.missing}." for side in unfinished if not side.name]
    if unfinished and any(not summary.unfinished for summary in field):
        said.append("Ranked are whole runs, on the seeds that all ranked methods have completed.")
    return " ".join(said)
