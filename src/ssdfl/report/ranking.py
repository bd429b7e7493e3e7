"""Select the summaries that can be ranked, and name the winner in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ssdfl.errors import InputError
from ssdfl.methods import find_method
from ssdfl.records.config import Experiment
from ssdfl.records.scores import Goal
from ssdfl.records.tables import Row, is_measured
from ssdfl.report.numbers import listed
from ssdfl.report.summary import MethodSummary, rows_by_method, summarise_rows
from ssdfl.report.winners import verdict

ONLY_WHOLE_RUNS = "Only complete runs are ranked, on the seeds that every ranked method finished."


@dataclass(frozen=True)
class RunResults:
    """A run's experiment and records, and its name if several runs are compared."""

    experiment: Experiment
    rows: Sequence[Row]
    name: str = ""

    @property
    def missing(self) -> str:
        """What an unfinished run lacks; empty if the run is complete."""
        total = self.experiment.all_cycles
        return f"{len(self.rows)} of {total} cycles are recorded" if len(self.rows) < total else ""

    @property
    def methods(self) -> list[str]:
        """The methods that have records."""
        return list(dict.fromkeys(row["method"] for row in self.rows))

    @property
    def references(self) -> list[str]:
        """The methods with records that are only a reference."""
        return list(filter(is_reference, self.methods))

    @property
    def tested_devices(self) -> bool:
        """Whether every device's model was tested, rather than only their mean."""
        return any(map(is_measured, self.rows))

    def label(self, method: str) -> str:
        """The name of a method in a comparison of runs."""
        return f"{method} in {self.name}" if self.name else method

    def summaries(self, goal: Goal) -> list[MethodSummary]:
        """A summary of each method that has been tested."""
        return summarise_rows(self.rows, self.experiment.cycles, len(self.experiment.seeds), goal)

    def without_references(self) -> RunResults:
        """These results without the records of reference methods."""
        references = self.references
        rows = [row for row in self.rows if row["method"] not in references]
        return replace(self, rows=rows)

    def on_shared_seeds(self) -> RunResults:
        """Only complete methods, on the seeds that all of them finished."""
        last = [row for row in self.rows if row["cycle"] == self.experiment.cycles]
        finished = rows_by_method(last)
        seeds = set(self.experiment.seeds).intersection(*finished.values())
        rows = [row for row in self.rows if row["method"] in finished and row["seed"] in seeds]
        experiment = self.experiment.model_copy(update={"seeds": tuple(seeds)})
        return replace(self, experiment=experiment, rows=rows)


def is_reference(method: str) -> bool:
    """Whether a method is a reference that is not ranked.

    A user's own method counts as ranked if its module is not on this machine.
    """
    try:
        return find_method(method).reference
    except InputError:
        return False


def rankable(runs: Sequence[RunResults], goal: Goal) -> list[MethodSummary]:
    """Summaries that can be compared, without references unless there is nothing else.

    An unfinished run contributes its complete methods, on the seeds that all of them finished. If
    there is no such seed, it contributes the progress of each method.
    """
    contenders = [run.without_references() for run in runs]
    ranked = contenders if any(run.rows for run in contenders) else runs
    return list(chain.from_iterable(_rankable_of(run, goal) for run in ranked))


def _rankable_of(run: RunResults, goal: Goal) -> list[MethodSummary]:
    shared = run.on_shared_seeds()
    comparable = shared if shared.rows else run
    summaries = comparable.summaries(goal)
    return [replace(summary, method=run.label(summary.method)) for summary in summaries]


def headline(runs: Sequence[RunResults], goal: Goal) -> str:
    """The winner and its score, the references that are not ranked, and the unfinished runs."""
    summaries = rankable(runs, goal)
    unfinished = [_unfinished(run) for run in runs if run.missing]
    sentences = [verdict(summaries, goal), *_only_mean(runs, goal), *_not_ranked(runs), *unfinished]
    if unfinished and any(summary.finished for summary in summaries):
        sentences.append(ONLY_WHOLE_RUNS)
    return " ".join(sentences)


def _only_mean(runs: Sequence[RunResults], goal: Goal) -> list[str]:
    """A sentence on why scores are those of averaged models, if they are."""
    if not goal.averaged:
        return []
    without = [run.name for run in runs if not run.tested_devices]
    names = f" in {listed(without)}" if all(without) else ""
    why = f"single devices were not tested{names} (evaluate.models = mean)"
    return [f"Scores are those of averaged models: {why}."]


def _not_ranked(runs: Sequence[RunResults]) -> list[str]:
    """A sentence on references that are not ranked, unless there is nothing else to rank."""
    methods = dict.fromkeys(chain.from_iterable(run.methods for run in runs))
    references = list(filter(is_reference, methods))
    if len(references) in (0, len(methods)):
        return []
    if len(references) == 1:
        return [f"The reference {references[0]} is not ranked."]
    return [f"The references {listed(references)} are not ranked."]


def _unfinished(run: RunResults) -> str:
    return (
        f"{run.name} is unfinished: {run.missing}." if run.name else f"Unfinished: {run.missing}."
    )
