"""The results of `ssdfl bounds`, row by row and in summary; needs no torch."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

FORMS = ("published", "rigorous")


@dataclass(frozen=True)
class BoundRow:
    """One quantity of one cycle, with its bounds.

    Attributes:
        statement: ``Lemma 1``, ``Lemma 2`` or ``Theorem 1``.
        cluster: the number of the cluster; −1 for the whole network.
        measured: the value in the run.
        published, rigorous: the bounds; infinite if their condition on η fails.
    """

    seed: int
    method: str
    cycle: int
    statement: str
    cluster: int
    measured: float
    published: float
    rigorous: float


@dataclass(frozen=True)
class BoundSummary:
    """A statement over all cycles and clusters of a method: how often it fails, how tight it is.

    Attributes:
        silent: for each form, the share of rows whose condition fails, so there is no bound.
        violated: for each form, the share of rows whose measured value exceeds the bound.
        ratio: for each form, the median of measured over bound; NaN if there is no bound.
    """

    method: str
    statement: str
    rows: int
    silent: dict[str, float]
    violated: dict[str, float]
    ratio: dict[str, float]


def summarise_bounds(rows: list[BoundRow]) -> list[BoundSummary]:
    """One summary for every method and statement."""
    grouped: dict[tuple[str, str], list[BoundRow]] = defaultdict(list)
    for row in rows:
        grouped[row.method, row.statement].append(row)
    return [_summary(*key, group) for key, group in grouped.items()]


def _summary(method: str, statement: str, rows: list[BoundRow]) -> BoundSummary:
    measured = np.array([row.measured for row in rows])
    silent, violated, ratio = {}, {}, {}
    for name in FORMS:
        bound = np.array([getattr(row, name) for row in rows])
        said = np.isfinite(bound)
        silent[name] = float((~said).mean())
        violated[name] = float((measured > bound * (1 + 1e-6) + 1e-6).mean())
        known = said & (bound > 0)
        ratio[name] = float(np.median(measured[known] / bound[known])) if known.any() else math.nan
    return BoundSummary(method, statement, len(rows), silent, violated, ratio)
