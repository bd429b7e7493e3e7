"""Print the tables of docs/studies/cnn/search.md and index.md.

python docs/studies/cnn/search_table.py

The first has the cycles to the paper's accuracies beside its own. The others rank settings by
SSD-FL's cells: at τ_r = 3 with both kinds of optimizers, by the averaged model's accuracy; and with
SGD at τ_r = 1 and 3, by the mean over devices and by the averaged model's accuracy.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

HERE = Path(__file__).parent
PAPER = HERE.parents[2] / "reproduce"
THRESHOLDS = {
    "fmnist": {"3": (0.51, 0.58, 0.65, 0.72), "1": (0.3, 0.35, 0.4, 0.45)},
    "cifar10": {"3": (0.36, 0.4, 0.44, 0.48), "1": (0.22, 0.255, 0.29, 0.325)},
}
SKEWS = {"3": "mild", "1": "extreme"}
POINT = (
    "dataset",
    "links",
    "rate",
    "steps",
    "batch",
    "rule",
    "momentum",
    "norm",
    "dealing",
    "tau_r",
    "optimizers",
    "labels",
    "method",
)
HEADER = (
    *("data", "G(10, p)", "η", "E", "M", "rule", "momentum", "normalised", "labels"),
    *("τ_r", "optimizers", "skew", "method"),
)
SERIES = {"ssdfl": "SSD-FL", "sdfl": "sDFL", "pdfl": "pDFL", "stc": "STC", "cstc": "cSTC"}
SETTING = POINT[: POINT.index("tau_r")]
READINGS = {"average_model_accuracy": "averaged model", "accuracy_of_devices": "devices"}
CHANCE = 0.1
NEAR = 0.25

Row = dict[str, str]


def read_rows() -> list[Row]:
    """The rows of the search, ordered by what was tried."""
    with (HERE / "search.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return sorted(rows, key=lambda row: (*_point(row), int(row["seed"]), int(row["cycle"])))


def _point(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in POINT)


def cycles_to(curve: Sequence[float], threshold: float) -> float | None:
    """Cycles until a curve reaches a threshold, between two tests by a straight line.

    Examples:
        >>> cycles_to([0.3, 0.5], 0.4), cycles_to([0.3, 0.5], 0.6)
        (1.5, None)
    """
    before = CHANCE
    for cycle, accuracy in enumerate(curve):
        if accuracy >= threshold:
            return cycle + (threshold - before) / (accuracy - before)
        before = accuracy
    return None


def _curve(rows: Sequence[Row], reading: str) -> list[float]:
    """The mean accuracy over seeds, cycle by cycle."""
    by_cycle = sorted(rows, key=lambda row: int(row["cycle"]))
    groups = [list(own) for _, own in groupby(by_cycle, key=lambda row: row["cycle"])]
    return [sum(float(row[reading]) for row in own) / len(own) for own in groups]


@dataclass(frozen=True)
class Tried:
    """What was tried, with how many seeds, and cycles to the paper's accuracies beside its own.

    Attributes:
        reading: the column that counts as accuracy: the averaged model's, or the mean over devices.
        devices_tested: whether both are known.
    """

    values: Row
    reading: str
    devices_tested: bool
    seeds: int
    cycles: list[float | None]
    papers: list[float | None]


def tried() -> list[Tried]:
    """Everything that was tried, by each reading of accuracy that was recorded."""
    found = []
    for point, group in groupby(read_rows(), key=_point):
        own, values = list(group), dict(zip(POINT, point, strict=True))
        thresholds = THRESHOLDS[values["dataset"]][values["labels"]]
        for reading in READINGS:
            recorded = [row for row in own if row[reading]]
            if not recorded:
                continue
            curve = _curve(recorded, reading)
            cycles = [cycles_to(curve, threshold) for threshold in thresholds]
            seeds = len({row["seed"] for row in recorded})
            tested = any(row["accuracy_of_devices"] for row in own)
            found.append(Tried(values, reading, tested, seeds, cycles, _papers(values)))
    return found


def table() -> str:
    """A line for each point: cycles to four accuracies and, in brackets, the paper's."""
    header = [*HEADER, "accuracy of", "seeds", "cycles (the paper's)"]
    lines = [header, ["---"] * len(header)]
    for one in tried():
        pairs = zip(one.cycles, one.papers, strict=True)
        both = [f"{_text(ours)} ({_text(theirs)})" for ours, theirs in pairs]
        shown = [
            SKEWS.get(text, text) if name == "labels" else text for name, text in one.values.items()
        ]
        lines.append([*shown, READINGS[one.reading], str(one.seeds), ", ".join(both)])
    return _lines(lines)


def ranking(kept: Callable[[Tried], bool], panels: int = 4) -> str:
    """Settings by SSD-FL's cells near the paper's, and the error of those that it reaches.

    Settings with more seeds come first, then those with more cells near the paper's.

    Args:
        kept: the runs to count.
        panels: leave out settings with fewer panels.
    """
    header = [*HEADER[: len(SETTING)], "accuracy of", "seeds", "within 25 %", "error"]
    rows = []
    counted = [one for one in tried() if one.values["method"] == "ssdfl" and kept(one)]
    for setting, group in groupby(sorted(counted, key=_setting), key=_setting):
        runs = list(group)
        if len(runs) < panels:
            continue
        seeds = min(run.seeds for run in runs)
        near, cells, error = _nearness(runs)
        row = [*setting, str(seeds), f"{near} of {cells}", f"{error:.2f}"]
        rows.append((-seeds, -near, error, row))
    return _lines([header, ["---"] * len(header), *(row for *_, row in sorted(rows))])


def of_one_table(one: Tried) -> bool:
    """Whether it is τ_r = 3 and the averaged model, with SGD or hybrid optimizers."""
    return one.values["tau_r"] == "3" and one.reading == "average_model_accuracy"


def of_devices(one: Tried) -> bool:
    """Whether it has SGD, with τ_r = 1 or 3, and the mean over devices."""
    return _of_both_tables(one) and one.reading == "accuracy_of_devices"


def of_their_average(one: Tried) -> bool:
    """The same runs by the averaged model's accuracy."""
    return _of_both_tables(one) and one.reading == "average_model_accuracy"


def _of_both_tables(one: Tried) -> bool:
    return one.values["optimizers"] == "sgd" and one.devices_tested


def _setting(one: Tried) -> tuple[str, ...]:
    return (*(one.values[name] for name in SETTING), READINGS[one.reading])


def _nearness(runs: Sequence[Tried]) -> tuple[int, int, float]:
    """Cells within 25 % of the paper's, cells that it reaches, and the mean error of those reached.

    The error is the root mean square of log(ours / the paper's).
    """
    cells = [
        (ours, theirs)
        for run in runs
        for ours, theirs in zip(run.cycles, run.papers, strict=True)
        if theirs is not None
    ]
    reached = [(ours, theirs) for ours, theirs in cells if ours is not None]
    near = sum(abs(ours - theirs) <= NEAR * theirs for ours, theirs in reached)
    squares = [math.log(ours / theirs) ** 2 for ours, theirs in reached]
    error = math.sqrt(sum(squares) / len(squares)) if squares else math.inf
    return near, len(cells), error


def _lines(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _text(cycles: float | None) -> str:
    return "–" if cycles is None else f"{cycles:.2f}"


def _papers(values: Row) -> list[float | None]:
    """The paper's cycles, for the same skew, optimizers, τ_r and method."""
    skew, hybrid = SKEWS[values["labels"]], values["optimizers"] == "mixed"
    if values["tau_r"] == "1":
        kind, panel = "taur1", f"{'hybrid' if hybrid else 'SGD'}, {skew}"
    else:
        kind, panel = "taur" if hybrid else "taur-sgd", f"τ_r = {values['tau_r']}, {skew}"
    name = f"{values['dataset']}-{kind}"
    series = SERIES[values["method"]]
    with (PAPER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = [
            row for row in csv.DictReader(file) if (row["panel"], row["series"]) == (panel, series)
        ]
    ordered = sorted(rows, key=lambda row: float(row["threshold"]))
    return [float(row["value"]) if row["value"] else None for row in ordered]


if __name__ == "__main__":
    rankings = [ranking(kept) for kept in (of_one_table, of_devices, of_their_average)]
    print(table(), *rankings, sep="\n\n")
