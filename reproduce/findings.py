"""Our numbers beside the paper's, and the rule that makes a verdict of them."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from ssdfl.report.paper import half_width

OURS, STRONG = "SSD-FL", "sDFL"
BASELINES = ("pDFL", "STC", "cSTC")
"""The paper's; its sDFL is the weak one, which is pDFL."""
METHODS = (OURS, STRONG, *BASELINES)
LEVEL_POINTS = 1.0
CLOSE_POINTS = 5.0
LARGE = 0.5
ANY_SIZE = 1e-9
"""A lead of the paper of which only the sign is told."""
RULE = """\
A *lead* of SSD-FL over another method is the mean over seeds of their difference, seed by seed,
with its 95 % confidence interval (Student's t). "The best baseline" is the best of pDFL, STC and
cSTC; sDFL is the strong one.

| verdict | when |
|---|---|
| reproduced | the paper's sign, the interval leaves out 0, at least half the paper's size |
| in kind | the same, but smaller |
| level | the interval holds 0 |
| reversed | the other sign, and the interval leaves out 0 |
| not reached | fewer than two seeds in which both methods reach the accuracy |
| one seed | it was run with one seed only, which cannot tell a lead from noise |

Where the paper claims that methods are equal, a lead of at most 1 point reproduces it; that they
are close or stable, a spread of at most 5 points; how often SSD-FL is first, at least three
quarters of the paper's count; which methods reach an accuracy or where a bound is least, the same
answer. Otherwise such a claim is *not* reproduced. A row of savings is judged where the paper's is
largest. Where the paper gives no number, the sign decides. How rough a curve is, is the sum of its
falls from one cycle to the next, in points."""


@dataclass(frozen=True)
class Cell:
    """One number of ours.

    Attributes:
        values: of each seed, None where it did not reach the threshold.
        of_mean: cycles until the mean over seeds reaches the threshold, or the mean accuracy.
        paper: what the paper reports, if a number.
    """

    values: tuple[float | None, ...]
    of_mean: float | None
    clusters: float | None
    paper: float | None


@dataclass(frozen=True)
class Finding:
    """What we found of a claim, and what the rule makes of it."""

    ours: str
    verdict: str


def number(text: str) -> float | None:
    """A number of a CSV file; None where there is none."""
    return None if text in ("", "–") else float(text)


class NotRunError(LookupError):
    """A claim rests on an artefact, or a part of one, that has not been run."""


class Cells(dict[tuple[str, str, str, str], Cell]):
    """Cells by panel, point, series and threshold."""

    def __missing__(self, key: tuple[str, str, str, str]) -> Cell:
        raise NotRunError(" ".join(key))


Curve = list[float]
"""A run's accuracy after each cycle."""


class Results:
    """Our numbers of one profile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def cells(self, artefact: str) -> Cells:
        """Those of an artefact, of which a part may have been run.

        Raises:
            NotRunError: the artefact has not been run.
        """
        path = self.folder / f"{artefact}.csv"
        if not path.exists():
            raise NotRunError(artefact)
        with path.open(newline="", encoding="utf-8") as file:
            return Cells(map(_cell, csv.DictReader(file)))

    def cell(
        self, artefact: str, panel: str, series: str, *, point: str = "", threshold: str = ""
    ) -> Cell:
        """One of them.

        Raises:
            NotRunError: it has not been run.
        """
        return self.cells(artefact)[panel, point, series, threshold]

    def curves(self, artefact: str, panel: str, series: str) -> list[Curve]:
        """A method's curves in a panel of a figure, by seed.

        Raises:
            NotRunError: they have not been run.
        """
        path = self.folder / f"{artefact}-curves.csv"
        if not path.exists():
            raise NotRunError(artefact)
        of_seeds: dict[str, Curve] = {}
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if (row["panel"], row["series"]) == (panel, series):
                    of_seeds.setdefault(row["seed"], []).append(float(row["accuracy"]))
        if not of_seeds:
            raise NotRunError(f"{artefact} {panel} {series}")
        return list(of_seeds.values())


def _cell(row: dict[str, str]) -> tuple[tuple[str, str, str, str], Cell]:
    """A row of a CSV file: where it belongs, and its numbers."""
    cell = Cell(
        tuple(map(number, row["values"].split())),
        number(row["of_mean" if row["threshold"] else "value"]),
        number(row["clusters"]),
        number(row["paper"]),
    )
    return (row["panel"], row["point"], row["series"], row["threshold"]), cell


def interval(ours: Cell, other: Cell) -> tuple[float, float] | None:
    """The mean of other − ours over shared seeds, and half its interval; None below two seeds."""
    pairs = zip(ours.values, other.values, strict=False)  # of the seeds that both have
    differences = [b - a for a, b in pairs if a is not None and b is not None]
    half = half_width(differences)
    return None if half is None else (fmean(differences), half)


def judged(lead: float, half: float, paper: float) -> str:
    """The rule for leads.

    Examples:
        >>> [judged(mean, half, 9.0) for mean, half in ((4.0, 1.0), (5.0, 1.0), (1.0, 2.0))]
        ['in kind', 'reproduced', 'level']
        >>> judged(-3.0, 1.0, 9.0)
        'reversed'
        >>> judged(0.5, 2.0, 0.0)
        'reproduced'
    """
    if paper == 0:
        return (
            "reproduced" if abs(lead) <= LEVEL_POINTS else ("level" if abs(lead) <= half else "not")
        )
    if abs(lead) <= half:
        return "level"
    if (lead > 0) != (paper > 0):
        return "reversed"
    return "reproduced" if abs(lead) >= LARGE * abs(paper) else "in kind"


def saving(results: Results, artefact: str, panel: str, threshold: str, paper: float) -> Finding:
    """Cycles SSD-FL saves against the best of the paper's baselines and the strong sDFL."""
    cells = {
        name: results.cell(artefact, panel, name, threshold=threshold)
        for name in (OURS, *BASELINES, STRONG)
    }
    reached = {name: cell.of_mean for name, cell in cells.items() if cell.of_mean is not None}
    others = [name for name in BASELINES if name in reached]
    if OURS not in reached or not others:
        return Finding(f"reached by {', '.join(reached) or 'none'}", "not reached")
    best = min(others, key=lambda name: reached[name])
    shares = {name: 100 * (1 - reached[OURS] / value) for name, value in reached.items()}
    texts = [f"{shares[best]:+.0f} % ({reached[OURS]:.2f} against {best} {reached[best]:.2f})"]
    if STRONG in reached:
        texts.append(f"{shares[STRONG]:+.0f} % against {STRONG}")
    found = interval(cells[OURS], cells[best])
    if found is None:
        return Finding("; ".join(texts), "not reached")
    lead, half = found
    texts.append(f"{lead:+.2f} ± {half:.2f} cycles")
    return Finding("; ".join(texts), judged(lead, half, paper))


def lead(
    results: Results, artefact: str, panel: str, paper: float, point: str = "", over: str = ""
) -> Finding:
    """Points by which SSD-FL ends above another method, or the best of the paper's baselines.

    Some methods may have more seeds than others; those that all have count.
    """
    names = [over] if over else list(BASELINES)
    cells = {name: results.cell(artefact, panel, name, point=point) for name in (OURS, *names)}
    shared = min(len(cell.values) for cell in cells.values())
    accuracies = {
        name: 100 * fmean(value or 0.0 for value in cell.values[:shared])
        for name, cell in cells.items()
    }
    best = max(names, key=lambda name: accuracies[name])
    found = interval(cells[best], cells[OURS])
    ends = [accuracies[name] for name in (OURS, best)]
    means = f"{ends[0]:.1f} against {best} {ends[1]:.1f}"
    if found is None:
        return Finding(means, "one seed")
    points, half = 100 * found[0], 100 * found[1]
    return Finding(f"{points:+.1f} ± {half:.1f} ({means})", judged(points, half, paper))


def wins(results: Results, artefact: str, paper: int, of: int) -> Finding:
    """In how many cells of a table SSD-FL needs fewest cycles of the paper's five methods."""
    cells = results.cells(artefact)
    places = sorted({(panel, threshold) for panel, _, _, threshold in cells})
    if len(places) < of:
        raise NotRunError(f"{artefact}: {of - len(places)} cells")
    first = [_first(cells, *place) for place in places]
    won, counted = first.count(OURS), len(first) - first.count("")
    verdict = "reproduced" if won >= 0.75 * paper else "not"
    return Finding(f"{won} of {counted}", verdict)


def _first(cells: dict[tuple[str, str, str, str], Cell], panel: str, threshold: str) -> str:
    found = {name: cells[panel, "", name, threshold].of_mean for name in (OURS, *BASELINES)}
    reached = {name: value for name, value in found.items() if value is not None}
    return min(reached, key=lambda name: reached[name]) if reached else ""


def growing(
    results: Results, artefact: str, panel: str, thresholds: Sequence[str], paper: Sequence[float]
) -> Finding:
    """Cycles saved against pDFL by threshold, judged by the paper's largest saving."""
    ours = [results.cell(artefact, panel, OURS, threshold=one) for one in thresholds]
    theirs = [results.cell(artefact, panel, "pDFL", threshold=one) for one in thresholds]
    saved = [
        None if a.of_mean is None or b.of_mean is None else 1 - a.of_mean / b.of_mean
        for a, b in zip(ours, theirs, strict=True)
    ]
    shown = ", ".join("–" if one is None else f"{100 * one:.0f}" for one in saved) + " %"
    known = [(told, k) for k, told in enumerate(paper) if saved[k] is not None]
    if not known:
        return Finding(shown, "not reached")
    told, k = max(known)
    found = interval(ours[k], theirs[k])
    cycles = (theirs[k].paper or math.nan) * told / 100
    return Finding(shown, "not reached" if found is None else judged(*found, cycles))


def spread(results: Results, panel: str) -> Finding:
    """Between the best and the worst of the paper's methods."""
    finals = [
        100 * (results.cell("fmnist-taua", panel, name).of_mean or 0) for name in (OURS, *BASELINES)
    ]
    apart = max(finals) - min(finals)
    return Finding(f"{apart:.1f} points between best and worst", _close(apart))


def with_clusters(results: Results, panel: str) -> Finding:
    """On complete networks: SSD-FL beside sDFL, and its clusters."""
    found = lead(results, "fmnist-architecture", panel, 0.0, "Comp", STRONG)
    clusters = results.cell("fmnist-architecture", panel, OURS, point="Comp").clusters or 0.0
    return Finding(f"{found.ours}, {clusters:.0f} clusters", found.verdict)


def who_reached(
    results: Results, artefact: str, panel: str, threshold: str, paper: Sequence[str]
) -> Finding:
    """Which methods reach a threshold on the mean over seeds."""
    cells = {name: results.cell(artefact, panel, name, threshold=threshold) for name in METHODS}
    those = [name for name, cell in cells.items() if cell.of_mean is not None]
    same = set(those) - {STRONG} == set(paper)
    return Finding(", ".join(those) or "none", "reproduced" if same else "not")


def by_size(results: Results, panel: str) -> Finding:
    """SSD-FL's lead over the best baseline at each size, and whether it is stable."""
    points = sorted({point for _, point, _, _ in results.cells("fmnist-size")}, key=int)
    found = [lead(results, "fmnist-size", panel, 2, point).ours.split()[0] for point in points]
    leads = [float(text) for text in found]
    return Finding(", ".join(found), _close(max(leads) - min(leads)))


def over_links(results: Results, other: str, paper: float) -> Finding:
    """SSD-FL's mean lead over all link probabilities and both skews, seed by seed."""
    cells = results.cells("fmnist-links")
    places = sorted({(panel, point) for panel, point, _, _ in cells})
    pairs = [(cells[*place, OURS, ""].values, cells[*place, other, ""].values) for place in places]
    leads = [[100 * ((a or 0) - (b or 0)) for a, b in zip(*pair, strict=False)] for pair in pairs]
    of_seeds = [fmean(of_seed) for of_seed in zip(*leads, strict=False)]
    half = half_width(of_seeds)
    if half is None:
        return Finding(f"{fmean(of_seeds):+.1f}", "one seed")
    return Finding(f"{fmean(of_seeds):+.1f} ± {half:.1f}", judged(fmean(of_seeds), half, paper))


def least(results: Results, score: str, paper: dict[int, float]) -> Finding:
    """The S of least score for τ_a = 1, 3, 5, and the S that were formed."""
    cells = results.cells("fmnist-bound")
    found = {tau: cells["mild", f"τ_a = {tau}", score, ""].of_mean or math.nan for tau in (1, 3, 5)}
    formed = [
        results.cell("fmnist-taua", f"τ_a = {tau}, mild", OURS).clusters or math.nan
        for tau in found
    ]
    least_at = ", ".join(map(_number_or_dash, found.values()))
    same = all(abs(found[tau] - number) < 1 for tau, number in paper.items())
    text = f"{least_at}; formed: {', '.join(f'{one:.1f}' for one in formed)}"
    return Finding(text, "reproduced" if same else "not")


def roughness(curve: Curve) -> float:
    """The sum of a curve's falls, in points.

    Examples:
        >>> round(roughness([0.1, 0.3, 0.2, 0.5, 0.45]), 6)
        15.0
    """
    return sum(100 * max(0.0, before - after) for before, after in pairwise(curve))


def smoother(results: Results, artefact: str, panel: str, over: str) -> Finding:
    """By how much SSD-FL's curves are less rough than another method's."""
    ours, others = (
        [roughness(curve) for curve in results.curves(artefact, panel, name)]
        for name in (OURS, over)
    )
    falls = [b - a for a, b in zip(ours, others, strict=False)]
    shared = len(falls)
    means = f"{fmean(ours[:shared]):.1f} against {fmean(others[:shared]):.1f}"
    half = half_width(falls)
    if half is None:
        return Finding(means, "one seed")
    verdict = judged(fmean(falls), half, ANY_SIZE)
    return Finding(f"{fmean(falls):+.1f} ± {half:.1f} ({means})", verdict)


def _number_or_dash(number: float) -> str:
    return "–" if math.isnan(number) else f"{number:.0f}"


def _close(points: float) -> str:
    return "reproduced" if points <= CLOSE_POINTS else "not"
