"""How near our tables are to the paper's, and the criteria on cases calibration did not see.

Held out are τ_r = 5 and the complete graph.

python reproduce/held_out.py [reproduce/results/medium]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from statistics import fmean

from findings import OURS, Cell, NotRunError, Results

FMNIST = ("fmnist-taur", "fmnist-taur-sgd")
TABLES = (*FMNIST, "cifar10-taur", "cifar10-taur-sgd")
ALL_TABLES = ("fmnist-taur1", *FMNIST, "cifar10-taur1", *TABLES[2:])
HELD_OUT = "τ_r = 5"
NEAR = 0.25
NEAR_SHARE = 0.7
LEAD = 0.05
COMPLETE = {"mild": 0.85, "extreme": 0.75}


@dataclass(frozen=True)
class Criterion:
    """What was to be shown, the result, and whether it is enough; None if it was not run."""

    what: str
    found: str
    met: bool | None


@dataclass(frozen=True)
class Place:
    """A cell of a table: SSD-FL and pDFL at one threshold."""

    panel: str
    name: str
    ours: Cell
    periodic: Cell


def places(results: Results, artefact: str, panels: str = "") -> list[Place]:
    """The cells of a table in panels whose names begin so; none if it has not been run."""
    try:
        cells = results.cells(artefact)
    except NotRunError:
        return []
    return [
        Place(
            panel,
            f"{artefact}, {panel}, {100 * float(threshold):g} %",
            cell,
            cells[panel, "", "pDFL", threshold],
        )
        for (panel, _, series, threshold), cell in cells.items()
        if series == OURS and panel.startswith(panels)
    ]


def near_the_paper(results: Results) -> Criterion:
    """In what share of the cells that the paper reaches SSD-FL's cycles are near the paper's.

    A cell that the paper reaches and we do not is a miss.
    """
    near_enough = f"SSD-FL within {100 * NEAR:g} % of the paper's cycles"
    what = f"FMNIST, {HELD_OUT}: {near_enough} in ≥ {100 * NEAR_SHARE:g} % of cells"
    found = [place.ours for artefact in FMNIST for place in places(results, artefact, HELD_OUT)]
    told = [cell for cell in found if cell.paper is not None]
    if not told:
        return Criterion(what, "not run", None)
    near = sum(_near(cell, cell.of_mean) for cell in told)
    by_seeds = sum(_near(cell, _mean_of_all(cell.values)) for cell in told)
    reached = sum(cell.of_mean is not None for cell in told)
    text = (
        f"{near} of {len(told)} that the paper reaches, {reached} of them reached by us; "
        f"{by_seeds} by the mean of the seeds' own cycles"
    )
    return Criterion(what, text, near >= NEAR_SHARE * len(told))


def _near(cell: Cell, cycles: float | None) -> bool:
    if cycles is None or cell.paper is None:
        return False
    return abs(cycles - cell.paper) <= NEAR * cell.paper


def _mean_of_all(values: Sequence[float | None]) -> float | None:
    """The mean over seeds; None if one of them has no value."""
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def complete_graph(results: Results, panel: str) -> Criterion:
    """How good SSD-FL gets on the complete graph."""
    what = f"complete graph, {panel}: SSD-FL ≥ {100 * COMPLETE[panel]:g} %"
    try:
        accuracy = results.cell("fmnist-architecture", panel, OURS, point="Comp").of_mean
    except NotRunError:
        return Criterion(what, "not run", None)
    accuracy = accuracy or math.nan
    return Criterion(what, f"{100 * accuracy:.1f} %", accuracy >= COMPLETE[panel])


def order(results: Results) -> Criterion:
    """Whether SSD-FL is ahead of pDFL wherever the paper has it far ahead."""
    what = f"{HELD_OUT}: SSD-FL before pDFL wherever the paper's lead exceeds {100 * LEAD:g} %"
    found = [place for artefact in TABLES for place in places(results, artefact, HELD_OUT)]
    far = [place for place in found if _is_far(place.ours.paper, place.periodic.paper)]
    if not far:
        return Criterion(what, "not run", None)
    wrong = [
        place.name for place in far if not _is_before(place.ours.of_mean, place.periodic.of_mean)
    ]
    text = f"{len(far) - len(wrong)} of {len(far)}"
    return Criterion(what, f"{text}; not at {'; '.join(wrong)}" if wrong else text, not wrong)


def _is_far(ours: float | None, periodic: float | None) -> bool:
    """Whether the paper's lead is large; one that only SSD-FL reaches is."""
    if ours is None:
        return False
    return periodic is None or 1 - ours / periodic > LEAD


def _is_before(ours: float | None, periodic: float | None) -> bool:
    if ours is None:
        return False
    return periodic is None or ours < periodic


def all_criteria(results: Results) -> Iterator[Criterion]:
    """Everything that was to be shown on held-out cases."""
    yield near_the_paper(results)
    for panel in COMPLETE:
        yield complete_graph(results, panel)
    yield order(results)


def criteria(folder: Path) -> str:
    """The criteria as a Markdown table."""
    words = {True: "met", False: "not met", None: "–"}
    lines = ["| on held-out cases | found | |", "|---|---|---|"]
    found = all_criteria(Results(folder))
    return "\n".join(
        [*lines, *(f"| {one.what} | {one.found} | {words[one.met]} |" for one in found)]
    )


def agreement(folder: Path) -> str:
    """Panel by panel: SSD-FL's cells near the paper's, and where it is before pDFL, in Markdown."""
    results = Results(folder)
    lines = [
        f"| table | panel | SSD-FL within {100 * NEAR:g} % of the paper's cycles "
        "| before pDFL | before pDFL in the paper |",
        "|---|---|---|---|---|",
    ]
    for artefact in ALL_TABLES:
        by_panel = groupby(places(results, artefact), attrgetter("panel"))
        lines += [
            f"| {artefact} | {panel} | {_agreeing(tuple(cells))} |" for panel, cells in by_panel
        ]
    return "\n".join(lines)


def _agreeing(cells: Sequence[Place]) -> str:
    """How many cells of a panel agree with the paper, as cells of a table."""
    told = [cell.ours for cell in cells if cell.ours.paper is not None]
    ours = sum(_is_before(cell.ours.of_mean, cell.periodic.of_mean) for cell in cells)
    papers = sum(_is_before(cell.ours.paper, cell.periodic.paper) for cell in cells)
    near = f"{sum(_near(cell, cell.of_mean) for cell in told)} of {len(told)}"
    return f"{near} | {ours} of {len(cells)} | {papers} of {len(cells)}"


if __name__ == "__main__":
    results_folder = Path(sys.argv[1] if len(sys.argv) > 1 else "reproduce/results/medium")
    print(agreement(results_folder), criteria(results_folder), sep="\n\n")
