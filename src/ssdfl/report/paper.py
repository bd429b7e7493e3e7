"""The numbers of the paper's tables and figures from our runs, next to the paper's own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import attrgetter
from statistics import fmean, stdev

from scipy.stats import t as student

from ssdfl.records.artefacts import Artefact, CaseKey
from ssdfl.records.record import METRICS
from ssdfl.records.scores import READINGS
from ssdfl.records.tables import Row, is_measured
from ssdfl.report.grouping import group_by
from ssdfl.report.series import names_of_costs
from ssdfl.report.target import cost_to_target

Runs = Mapping[CaseKey, Sequence[Sequence[Row]]]
"""Records of every seed, by panel, point and series."""
NONE = "–"
ACCURACIES = dict(zip(READINGS, ("the mean over devices", "the averaged model's"), strict=True))
"""What is reported as accuracy, in words."""


def accuracy_sentence(artefact: Artefact) -> str:
    """A sentence that says what accuracy means here; empty for a bound, which has none."""
    return "" if artefact.kind == "bound" else f"Accuracy is {ACCURACIES[artefact.reading]}."


@dataclass(frozen=True)
class Entry:
    """One number of a table or figure.

    Attributes:
        threshold: the accuracy whose cost is reported; empty if the final accuracy is reported.
        value: the mean over seeds; None if some seed did not reach the threshold.
        half_width: half the width of its 95 % confidence interval; None for one seed.
        of_mean: when the mean over seeds reaches the threshold; it may do so even if some seed
            does not.
        values: the value of each seed, so that methods can be compared seed by seed; a dash if a
            seed has none.
        reached: how many seeds have a value.
        clusters: the number of clusters of SSD-FL, mean over seeds; None for other methods.
        paper: the paper's value: a number, a dash, or empty if it gives none.
    """

    panel: str
    point: str
    series: str
    threshold: str
    value: float | None
    half_width: float | None
    of_mean: float | None
    values: str
    reached: int
    seeds: int
    clusters: float | None
    paper: str


@dataclass(frozen=True)
class CurvePoint:
    """The accuracy of one run after a cycle."""

    panel: str
    point: str
    series: str
    seed: int
    cycle: int
    accuracy: float


def curve_points(artefact: Artefact, runs: Runs) -> list[CurvePoint]:
    """Every tested cycle of every run, in the artefact's order."""
    return [
        CurvePoint(*case.key, seed, row["cycle"], row[artefact.reading])
        for case in artefact.cases
        for seed, run in zip(case.experiment.seeds, runs[case.key], strict=True)
        for row in run
        if is_measured(row, artefact.reading)
    ]


@dataclass(frozen=True)
class _Question:
    """A question about the runs of a case.

    Attributes:
        threshold: the accuracy to reach; None asks for the final accuracy.
        cost: the metric that counts the cost of reaching it.
    """

    kind: str
    reading: str
    threshold: float | None
    cost: str

    @property
    def goal(self) -> str:
        """The threshold as a text; empty without one."""
        return "" if self.threshold is None else f"{self.threshold:g}"

    def answer(self, run: Sequence[Row]) -> float | None:
        """The number of one seed, if it has one."""
        if self.kind == "bound":
            return best_number_of_clusters(run)
        if self.threshold is None:
            return final(run, self.reading)
        return self._cost_to(self.threshold, run)

    def answer_of_mean(self, runs: Sequence[Sequence[Row]]) -> float | None:
        """When the mean over seeds reaches the threshold, if there is one."""
        if self.threshold is None:
            return None
        names = (self.reading, self.cost)
        means = [_mean_row(rows, names) for rows in zip(*runs, strict=True)]
        return self._cost_to(self.threshold, means)

    def _cost_to(self, threshold: float, run: Sequence[Row]) -> float | None:
        """The cost in its unit, interpolated, since the paper gives fractions of cycles."""
        cost = cost_to_target(run, threshold, self.cost, self.reading, interpolate=True)
        return None if cost is None else cost / METRICS[self.cost].scale


def _mean_row(rows: Sequence[Row], names: Sequence[str]) -> Row:
    """Some metrics of a cycle, as means over seeds."""
    return {name: fmean(row[name] for row in rows) for name in names}


def entries(artefact: Artefact, runs: Runs) -> list[Entry]:
    """All numbers of an artefact, in its order."""
    expected = {_identity(row): row["value"] or NONE for row in artefact.expected}
    thresholds = {panel.name: panel.thresholds for panel in artefact.panels}
    in_paper = {series.name: series.paper or series.name for series in artefact.series}
    found = []
    for case in artefact.cases:
        own = runs[case.key]
        questions = _questions(artefact, thresholds[case.panel], own)
        told = _told(expected, (case.panel, case.point, in_paper[case.series]))
        found += [_entry(case.key, question, own, told) for question in questions]
    return found


def by_series(artefact: Artefact, numbers: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Entries by series, in the artefact's order, whichever case comes first."""
    groups = group_by(numbers, attrgetter("series"))
    return {one.name: groups[one.name] for one in artefact.series if one.name in groups}


def _told(expected: Mapping[tuple[str, str, str, str], str], case: CaseKey) -> dict[str, str]:
    """The paper's values for a case, by threshold."""
    return {identity[-1]: value for identity, value in expected.items() if identity[:-1] == case}


def _questions(
    artefact: Artefact, thresholds: Sequence[float], runs: Sequence[Sequence[Row]]
) -> list[_Question]:
    """The questions about a panel's case: each threshold in each cost, or the final accuracy."""
    asked = product(thresholds or (None,), _costs(artefact, runs))
    return [
        _Question(artefact.kind, artefact.reading, threshold, cost) for threshold, cost in asked
    ]


def _identity(row: Mapping[str, str]) -> tuple[str, str, str, str]:
    """The key that identifies a number of the paper."""
    return row["panel"], row["point"], row["series"], row["threshold"]


def _costs(artefact: Artefact, runs: Sequence[Sequence[Row]]) -> list[str]:
    """The metrics that count the cost of a threshold."""
    if artefact.kind != "costs":
        return ["cycle"]
    return names_of_costs([row for run in runs for row in run])


def _entry(
    key: CaseKey,
    question: _Question,
    runs: Sequence[Sequence[Row]],
    told: Mapping[str, str],
) -> Entry:
    panel, point, series = key
    point = METRICS[question.cost].label if question.kind == "costs" else point
    answers = [question.answer(run) for run in runs]
    known = [answer for answer in answers if answer is not None]
    of_all = known if len(known) == len(answers) else []
    return Entry(
        panel=panel,
        point=point,
        series=series,
        threshold=question.goal,
        value=_mean(of_all),
        half_width=half_width(of_all),
        of_mean=question.answer_of_mean(runs),
        values=" ".join(map(_shown, answers)),
        reached=len(known),
        seeds=len(answers),
        clusters=_mean_clusters(question.kind, runs),
        paper=told.get(question.goal, ""),
    )


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _shown(value: float | None) -> str:
    return NONE if value is None else f"{value:.5g}"


def _mean_clusters(kind: str, runs: Sequence[Sequence[Row]]) -> float | None:
    """The number of clusters of SSD-FL, mean over seeds; None for other methods and for bounds."""
    if kind == "bound":
        return None
    numbers = [run[-1]["clusters"] for run in runs]
    return _mean([number for number in numbers if number])


def best_number_of_clusters(rows: Sequence[Row]) -> float | None:
    """The number of clusters with the lowest score; None if every score is infinite."""
    finite = [row for row in rows if math.isfinite(row["score"])]
    return float(min(finite, key=lambda row: row["score"])["clusters"]) if finite else None


def final(run: Sequence[Row], reading: str) -> float | None:
    """The last value of a record."""
    return next((float(row[reading]) for row in reversed(run) if is_measured(row, reading)), None)


def half_width(values: Sequence[float]) -> float | None:
    """Half the width of the 95 % confidence interval of a mean (Student's t); None for one value.

    Examples:
        >>> round(half_width([1.0, 2.0, 3.0]), 2)
        2.48
    """
    if len(values) < 2:
        return None
    return float(student.ppf(0.975, len(values) - 1) * stdev(values) / math.sqrt(len(values)))
