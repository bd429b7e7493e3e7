"""Print the table of docs/studies/cnn/index.md: cycles to the paper's accuracies, and its own.

python docs/studies/cnn/search_table.py
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
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
    "tau_r",
    "optimizers",
    "labels",
    "method",
)
HEADER = (
    *("data", "G(10, p)", "η", "E", "M", "rule", "momentum"),
    *("τ_r", "optimizers", "skew", "method"),
)
SERIES = {"ssdfl": "SSD-FL", "sdfl": "sDFL", "pdfl": "pDFL", "stc": "STC", "cstc": "cSTC"}
CHANCE = 0.1

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


def _curve(rows: Sequence[Row]) -> list[float]:
    """The mean over seeds of the averaged model's accuracy, cycle by cycle."""
    by_cycle = sorted(rows, key=lambda row: int(row["cycle"]))
    groups = [list(own) for _, own in groupby(by_cycle, key=lambda row: row["cycle"])]
    return [sum(float(row["average_model_accuracy"]) for row in own) / len(own) for own in groups]


def table() -> str:
    """A line for each point: cycles to four accuracies and, in brackets, the paper's."""
    lines = [[*HEADER, "seeds", "cycles (the paper's)"], ["---"] * (len(HEADER) + 2)]
    for point, group in groupby(read_rows(), key=_point):
        own = list(group)
        values = dict(zip(POINT, point, strict=True))
        thresholds = THRESHOLDS[values["dataset"]][values["labels"]]
        found = [cycles_to(_curve(own), threshold) for threshold in thresholds]
        both = [
            f"{_text(ours)} ({theirs})" for ours, theirs in zip(found, _papers(values), strict=True)
        ]
        shown = [
            SKEWS.get(text, text) if name == "labels" else text for name, text in values.items()
        ]
        lines.append([*shown, str(len({row["seed"] for row in own})), ", ".join(both)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(cycles: float | None) -> str:
    return "–" if cycles is None else f"{cycles:.2f}"


def _papers(values: Row) -> list[str]:
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
    return [row["value"] or "–" for row in sorted(rows, key=lambda row: float(row["threshold"]))]


if __name__ == "__main__":
    print(table())
