"""The numbers of the paper's tables and figures, from our runs, with the paper's beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, stdev

from scipy.stats import t as student

from ssdfl.records.artefacts import Artefact, CaseKey
from ssdfl.records.folder import Row, measured
from ssdfl.report.figures import AXES, UNIT

Runs = Mapping[CaseKey, Sequence[Sequence[Row]]]
"""Records of every seed, by panel, point and series."""


@dataclass(frozen=True)
class Cell:
    """One number of a table or figure.

    Attributes:
        threshold: the accuracy whose first cycle is reported, or empty where it is the final accuracy.
        value: mean over seeds; None where a seed did not reach the threshold.
        half_width: of its 95 % confidence interval; None for one seed.
        of_mean: when the mean over seeds reaches the threshold, which also has a value where a seed does not.
        values: of each seed, so that methods can be compared seed by seed; a dash where there is none.
        reached: how many of the seeds have a value.
        clusters: how many SSD-FL had, mean over seeds; None for other methods.
        paper: what the paper reports: a number, a dash, or empty where it gives none.
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


def cells(artefact: Artefact, runs: Runs) -> list[Cell]:
    """All numbers of an artefact, in its order."""
    told = {
        (row["panel"], row["point"], row["series"], row["threshold"]): row["value"] or "–"
        for row in artefact.expected
    }
    return [
        _cell(artefact, key, runs[key], threshold, along, told)
        for panel, point, series in product(artefact.panels, artefact.points, artefact.series)
        for key in [(panel.name, point.name, series.name)]
        for threshold, along in product(panel.thresholds or (None,), _axes(artefact))
    ]


def _cell(
    artefact: Artefact,
    key: CaseKey,
    of_seeds: Sequence[Sequence[Row]],
    threshold: float | None,
    along: str,
    told: Mapping[tuple[str, str, str, str], str],
) -> Cell:
    panel, point, series = key
    point = AXES[along] if artefact.kind == "costs" else point
    goal = "" if threshold is None else f"{threshold:g}"
    values = [_value(artefact, run, threshold, along) for run in of_seeds]
    there = [value for value in values if value is not None]
    whole = bool(there) and len(there) == len(values)
    clusters = [run[-1]["clusters"] for run in of_seeds if artefact.kind != "bound" and run[-1]["clusters"]]
    return Cell(
        panel=panel,
        point=point,
        series=series,
        threshold=goal,
        value=fmean(there) if whole else None,
        half_width=half_width(there) if whole else None,
        of_mean=_of_mean(of_seeds, threshold, artefact.reading, along),
        values=" ".join("–" if value is None else f"{value:.5g}" for value in values),
        reached=len(there),
        seeds=len(values),
        clusters=fmean(clusters) if clusters else None,
        paper=told.get((panel, point, series, goal), ""),
    )


def _of_mean(
    of_seeds: Sequence[Sequence[Row]], threshold: float | None, reading: str, along: str
) -> float | None:
    if threshold is None:
        return None
    mean = [
        {key: fmean(row[key] for row in rows) for key in (reading, along)}
        for rows in zip(*of_seeds, strict=True)
    ]
    return cost_to(mean, threshold, reading, along)


def _axes(artefact: Artefact) -> tuple[str, ...]:
    """What a threshold's cost is counted in."""
    return ("cycle", "transmissions", "sent_bytes", "time_s") if artefact.kind == "costs" else ("cycle",)


def _value(artefact: Artefact, run: Sequence[Row], threshold: float | None, along: str) -> float | None:
    if artefact.kind == "bound":
        finite = [row for row in run if math.isfinite(row["score"])]
        return float(min(finite, key=lambda row: row["score"])["clusters"]) if finite else None
    if threshold is None:
        return final(run, artefact.reading)
    return cost_to(run, threshold, artefact.reading, along)


def cost_to(
    run: Sequence[Row], threshold: float, reading: str = "accuracy", along: str = "cycle"
) -> float | None:
    """When accuracy first reaches a threshold, interpolated between tests; None if it does not.

    Args:
        reading: the record that is taken for accuracy.
        along: cycles, messages, bytes or simulated seconds.

    Examples:
        >>> cost_to([{"cycle": 1, "accuracy": 0.4}, {"cycle": 2, "accuracy": 0.6}], 0.5)
        1.5
    """
    before_cost, before = 0.0, 0.0
    for row in run:
        if not measured(row, reading):
            continue
        value = row[reading]
        if value >= threshold:
            share = (threshold - before) / (value - before) if value > before else 1.0
            return float(before_cost + max(share, 0.0) * (row[along] - before_cost)) / UNIT.get(along, 1)
        before_cost, before = row[along], value
    return None


def final(run: Sequence[Row], reading: str) -> float | None:
    """The last value of a record."""
    return next((float(row[reading]) for row in reversed(run) if measured(row, reading)), None)


def half_width(values: Sequence[float]) -> float | None:
    """Of the 95 % confidence interval of a mean (Student's t); None for one value.

    Examples:
        >>> round(half_width([1.0, 2.0, 3.0]), 2)
        2.48
    """
    if len(values) < 2:
        return None
    return float(student.ppf(0.975, len(values) - 1) * stdev(values) / math.sqrt(len(values)))
