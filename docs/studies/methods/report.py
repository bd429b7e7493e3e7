"""Say which method gains from clusters, and which rule stands which attack, by what was measured.

python docs/studies/methods/report.py       # prints the tables as Markdown, writes figure.png
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product
from statistics import fmean, median, median_low

import numpy as np
from matplotlib.figure import Figure
from measure import (
    ATTACKS,
    CYCLES,
    HERE,
    LIARS,
    LIES,
    METHODS,
    NETWORKS,
    RESULTS,
    RULES,
    TARGET,
    read,
)

from ssdfl.report import save
from ssdfl.report.figures import COLOURS

Row = dict[str, str]
GROUPS = {
    "alike": ("er", "ba", "rgeo", "ws", "complete", "cliques"),
    "10 ×": ("sites, 10 × slower",),
    "100 ×": ("sites, 100 × slower",),
}
"""Networks whose links are alike, and those with slow links between sites."""
DRAWN = ("cta", "extra", "qgm", "outer", "extra, int8", "gossip", "tthf")
COSTS = ("cycles", "bytes", "seconds")


def by_key(rows: Iterable[Row], *names: str) -> dict[tuple[str, ...], list[Row]]:
    """Rows by the values of some columns."""
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return found


def value(row: Row, name: str) -> float:
    """A number of a row; infinite if the target was not reached."""
    return float(row[name])


def middle(rows: Sequence[Row], name: str) -> float:
    """The median of a column, where a target that was not reached counts as infinite."""
    return median(value(row, name) for row in rows) if rows else math.nan


def pairs(rows: Sequence[Row], cost: str) -> list[tuple[float, float]]:
    """By case, what one cluster costs to the target, and what several do."""
    found = []
    for of_case in by_key(rows, "network", "labels", "seed").values():
        one = [value(row, cost) for row in of_case if row["arm"] == "one"]
        several = [value(row, cost) for row in of_case if row["arm"] != "one"]
        found += list(zip(one, several, strict=False))
    return found


def gain(rows: Sequence[Row], cost: str) -> str:
    """How many times as much one cluster costs as several do: the median case.

    A target that is not reached costs more than any. Cases in which neither reaches it are left
    out.
    """
    ratios = [
        one / several if math.isfinite(several) else 0.0
        for one, several in pairs(rows, cost)
        if math.isfinite(min(one, several))
    ]
    if not ratios:
        return "–"
    found = median_low(ratios)
    if found == 0:
        return "never"
    return "only so" if math.isinf(found) else f"{found:.2f}"


def shown(number: float, digits: int = 2) -> str:
    """A number for a table; a dash for none."""
    return f"{number:.{digits}f}" if math.isfinite(number) else "–"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as Markdown."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def gain_table(rows: Sequence[Row], cost: str) -> str:
    """Which method gains from clusters, when, and by how much."""
    columns = [
        [row for row in rows if row["labels"] == str(labels) and row["network"] in group]
        for labels in CYCLES
        for group in GROUPS.values()
    ]
    heads = [
        f"{_labels(labels)}, {name}{_arm(column)}"
        for (labels, name), column in zip(product(CYCLES, GROUPS), columns, strict=True)
    ]
    lines = []
    for method in METHODS:
        of_method = [[row for row in column if row["method"] == method] for column in columns]
        lines.append([f"`{method}`", *(gain(own, cost) for own in of_method)])
    return table([f"{cost} to target", *heads], lines)


def _labels(number: int) -> str:
    return f"{number} labels" if number > 1 else "1 label"


def _arm(rows: Sequence[Row]) -> str:
    """Whether formation made the clusters, or we did since it made none."""
    found = sorted({row["arm"] for row in rows} - {"one"})
    return f" ({' and '.join(found)})"


def level_table(rows: Sequence[Row], arm: str, labels: int) -> str:
    """How good each method is, and what it costs to the target, over all networks."""
    lines = []
    for method in METHODS:
        arms = ("one",) if arm == "one" else ("formed", "split")
        own = [
            row
            for row in rows
            if row["method"] == method and row["arm"] in arms and row["labels"] == str(labels)
        ]
        reached = [row for row in own if math.isfinite(value(row, "cycles"))]
        cells = [
            f"{100 * fmean(value(row, 'accuracy') for row in own):.1f}",
            f"{len(reached)}/{len(own)}",
            shown(middle(own, "cycles"), 1),
            shown(middle(own, "bytes") / 1e6, 1),
            shown(middle(own, "seconds")),
        ]
        lines.append([f"`{method}`", *cells])
    heads = ["method", "accuracy %", "reached", "cycles", "MB", "seconds"]
    return table(heads, lines)


def sites_table(rows: Sequence[Row]) -> str:
    """Cost to the target on sites with links 100 × slower, formed clusters, both label skews."""
    lines = []
    for method in METHODS:
        cells = [f"`{method}`"]
        for labels in CYCLES:
            own = [
                row
                for row in rows
                if row["method"] == method
                and row["labels"] == str(labels)
                and row["network"] == "sites, 100 × slower"
                and row["arm"] == "formed"
            ]
            accuracy = 100 * fmean([value(row, "accuracy") for row in own] or [math.nan])
            cells += [
                shown(accuracy, 1),
                shown(middle(own, "bytes") / 1e6, 1),
                shown(middle(own, "seconds")),
            ]
        lines.append(cells)
    heads = [
        f"{_labels(labels)}: {name}"
        for labels in CYCLES
        for name in ("accuracy %", "MB", "seconds")
    ]
    return table(["method", *heads], lines)


def attack_table(rows: Sequence[Row]) -> str:
    """Accuracy of honest devices by attack, rule and number of liars."""
    found = by_key(rows, "attack", "rule", "liars")
    lines = []
    for attack in LIES:
        for rule in RULES:
            cells = []
            for liars in LIARS:
                own = found.get((attack if liars else "none", rule, str(liars)), [])
                cells.append(
                    f"{100 * fmean(value(row, 'accuracy') for row in own):.1f}" if own else "–"
                )
            lines.append([attack, f"`{rule}`", *cells])
    return table(["attack", "rule", *(f"{liars} liars" for liars in LIARS)], lines)


def draw(rows: Sequence[Row]) -> Figure:
    """Curves on sites with links 100 × slower, formed clusters, by cost and label skew."""
    figure = Figure(figsize=(12, 6.6), layout="constrained")
    axes = figure.subplots(2, 3, sharey="row")
    for line, labels in zip(axes, CYCLES, strict=True):
        for place, method in enumerate(DRAWN):
            for arm, style in (("one", ":"), ("formed", "-")):
                _draw_curves(
                    line, rows, labels, (method, arm, style, COLOURS[place % len(COLOURS)])
                )
        line[0].set_ylabel(f"accuracy %, {_labels(labels)} each")
        for one, name in zip(line, ("cycles", "MB sent", "simulated seconds"), strict=True):
            one.axhline(100 * TARGET[labels], color="#bbbbbb", linewidth=0.8)
            one.set_xlabel(name)
            if name != "cycles":
                one.set_xscale("log")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.suptitle("Sites with links 100 × slower: formed clusters (solid), one cluster (dotted)")
    return figure


def _draw_curves(
    axes: np.ndarray, rows: Sequence[Row], labels: int, what: tuple[str, str, str, str]
) -> None:
    method, arm, style, colour = what
    arms = (arm,) if arm == "one" else ("formed", "split")
    own = [
        row
        for row in rows
        if row["network"] == "sites, 100 × slower"
        and row["labels"] == str(labels)
        and row["method"] == method
        and row["arm"] in arms
    ]
    if not own:
        return
    accuracy = np.mean([[int(one) / 10 for one in row["curve"].split()] for row in own], axis=0)
    cycles = np.arange(1, len(accuracy) + 1)
    mean = {
        name: fmean(value(row, f"{name}_a_cycle") for row in own) for name in ("bytes", "seconds")
    }
    label = method if style == "-" else None
    for one, cost in zip(axes, (1.0, mean["bytes"] / 1e6, mean["seconds"]), strict=True):
        one.plot(cycles * cost, accuracy, style, color=colour, label=label, linewidth=1.2)


def ahead(rows: Sequence[Row], method: str, other: str, cost: str) -> list[float]:
    """How many times as much another method costs to the target, by case and arm."""
    found = []
    for own in by_key(rows, "network", "labels", "seed", "arm").values():
        costs = {row["method"]: value(row, cost) for row in own}
        if math.isfinite(min(costs[method], costs[other])):
            found.append(costs[other] / costs[method])
    return found


def summary(rows: Sequence[Row]) -> str:
    """How `extra` compares with the paper's rule."""
    seconds, sent = (
        ahead(rows, "extra", "cta", "seconds"),
        ahead(rows, "extra, int8", "cta", "bytes"),
    )
    return (
        f"extra before cta in {sum(one > 1 for one in seconds)} of {len(seconds)} cases, "
        f"{median(filter(math.isfinite, seconds)):.1f} × sooner; "
        f"extra with int8 sends fewer bytes in {sum(one > 1 for one in sent)} of {len(sent)}, "
        f"{median(filter(math.isfinite, sent)):.1f} × fewer"
    )


def whole_seeds(rows: Sequence[Row], number: int) -> list[Row]:
    """The rows of the seeds that have all their runs."""
    return [row for own in by_key(rows, "seed").values() if len(own) == number for row in own]


def measured() -> tuple[list[Row], list[Row]]:
    """What was measured, of whole seeds."""
    compared = 2 * len(METHODS) * len(NETWORKS) * len(CYCLES)
    lying = len(RULES) * (1 + len(LIES) * (len(LIARS) - 1))
    return whole_seeds(read(RESULTS), compared), whole_seeds(read(ATTACKS), lying)


def report() -> None:
    """Print all tables, and draw the figure."""
    rows, lies = measured()
    seeds = sorted({row["seed"] for row in rows})
    print(f"{len(rows)} runs, seeds {', '.join(seeds)}, {len(NETWORKS)} networks\n")
    print(f"{summary(rows)}\n")
    clusters = by_key([row for row in rows if row["method"] == "cta"], "network", "labels", "arm")
    for (name, labels, arm), own in clusters.items():
        if arm != "one":
            numbers = ", ".join(row["clusters"] for row in own)
            print(f"- {name}, {labels} labels: {arm} {numbers}")
    for cost in COSTS:
        print(f"\n{gain_table(rows, cost)}\n")
    for labels in CYCLES:
        for arm in ("one", "several"):
            print(f"{_labels(labels)}, {arm}:\n\n{level_table(rows, arm, labels)}\n")
    print(f"Sites, 100 ×:\n\n{sites_table(rows)}\n")
    print(attack_table(lies))
    save(draw(rows), HERE / "figure.png")


if __name__ == "__main__":
    report()
