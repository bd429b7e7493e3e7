"""The paper's quantitative claims beside our numbers, each with a verdict that a rule gives.

    python reproduce/claims.py [reproduce/results/small]

Prints the rule, the table of claims in ``docs/reproduction.md``, and the criteria on held-out
cases. A claim whose artefact has not been run is left out.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path

from findings import (
    OURS,
    RULE,
    STRONG,
    Finding,
    NotRunError,
    Results,
    by_size,
    growing,
    lead,
    least,
    over_links,
    saving,
    smoother,
    spread,
    who_reached,
    wins,
    with_clusters,
)
from held_out import agreement, criteria

Claim = tuple[str, str, Callable[[Results], Finding]]
"""What is claimed, the paper's number, and ours."""
TABLE, CIFAR = "fmnist-taur", "cifar10-taur"
MILD, EXTREME = ("0.51", "0.58", "0.65", "0.72"), ("0.3", "0.35", "0.4", "0.45")
ARCHITECTURE, SIZE = "fmnist-architecture", "fmnist-size"
CLAIMS: tuple[Claim, ...] = (
    (
        "FMNIST, τ_r = 3, 5: SSD-FL needs fewest cycles",
        "14 of 16, one tie",
        lambda r: wins(r, TABLE, 14, 16),
    ),
    (
        "FMNIST, τ_r = 3, mild, 65 %: fewer cycles than the best baseline",
        "12 % (6.56 against 7.51)",
        lambda r: saving(r, TABLE, "τ_r = 3, mild", "0.65", 0.87),
    ),
    (
        "the same, 72 %",
        "15 % (11.75 against 13.80)",
        lambda r: saving(r, TABLE, "τ_r = 3, mild", "0.72", 2.05),
    ),
    (
        "the same, extreme, 40 %",
        "18 % (8.98 against 11.01)",
        lambda r: saving(r, TABLE, "τ_r = 3, extreme", "0.4", 2.03),
    ),
    (
        "the same, extreme, 45 % is reached by",
        "SSD-FL, cSTC",
        lambda r: who_reached(r, TABLE, "τ_r = 3, extreme", "0.45", (OURS, "cSTC")),
    ),
    (
        "savings against pDFL grow with the threshold, τ_r = 3, mild",
        "6, 9, 12, 15 %",
        lambda r: growing(r, TABLE, "τ_r = 3, mild", MILD, (6, 9, 12, 15)),
    ),
    (
        "the same, extreme",
        "4, 7, 18, – %",
        lambda r: growing(r, TABLE, "τ_r = 3, extreme", EXTREME, (4, 7, 18, 0)),
    ),
    (
        "they shrink at τ_r = 5, mild",
        "2, 4, 5, 6 %",
        lambda r: growing(r, TABLE, "τ_r = 5, mild", MILD, (2, 4, 5, 6)),
    ),
    (
        "FMNIST, τ_r = 1, hybrid, mild, 58 %",
        "4 % (5.45 against STC 5.69)",
        lambda r: saving(r, "fmnist-taur1", "hybrid, mild", "0.58", 0.24),
    ),
    (
        "CIFAR10, τ_r = 3, mild, 48 %",
        "5 % (17.73 against 18.64)",
        lambda r: saving(r, CIFAR, "τ_r = 3, mild", "0.48", 0.91),
    ),
    (
        "CIFAR10, τ_r = 3, extreme, 29 %",
        "14 % (11.21 against 12.60)",
        lambda r: saving(r, CIFAR, "τ_r = 3, extreme", "0.29", 1.39),
    ),
    ("τ_a = 1: all methods are close, mild", "comparable", lambda r: spread(r, "τ_a = 1, mild")),
    (
        "τ_a = 5, extreme: lead over STC, the best baseline",
        "+4 (46 against STC 42)",
        lambda r: lead(r, "fmnist-taua", "τ_a = 5, extreme", 4, over="STC"),
    ),
    (
        "τ_a = 5, extreme: lead over pDFL and so over the weak sDFL",
        "+9",
        lambda r: lead(r, "fmnist-taua", "τ_a = 5, extreme", 9, over="pDFL"),
    ),
    (
        "τ_a = 5, extreme: lead over the strong sDFL",
        "+9",
        lambda r: lead(r, "fmnist-taua", "τ_a = 5, extreme", 9, over=STRONG),
    ),
    (
        "the same: smoother curves than STC's",
        "smoother",
        lambda r: smoother(r, "fmnist-taua", "τ_a = 5, extreme", "STC"),
    ),
    (
        "the same: smoother curves than cSTC's",
        "smoother",
        lambda r: smoother(r, "fmnist-taua", "τ_a = 5, extreme", "cSTC"),
    ),
    (
        "CIFAR10, τ_a = 5, extreme: lead over STC, the best baseline",
        "+2 (35 against STC 33)",
        lambda r: lead(r, "cifar10-taua", "τ_a = 5, extreme", 2, over="STC"),
    ),
    (
        "the same: lead over pDFL and so over the weak sDFL",
        "+4",
        lambda r: lead(r, "cifar10-taua", "τ_a = 5, extreme", 4, over="pDFL"),
    ),
    (
        "the same: lead over the strong sDFL",
        "+4",
        lambda r: lead(r, "cifar10-taua", "τ_a = 5, extreme", 4, over=STRONG),
    ),
    (
        "N = 10, mild: lead over the best baseline",
        "+1 to +3",
        lambda r: lead(r, SIZE, "mild", 2, "10"),
    ),
    ("N = 30, mild: the same", "+1 to +3", lambda r: lead(r, SIZE, "mild", 2, "30")),
    ("N = 50, mild: the same", "+1 to +3", lambda r: lead(r, SIZE, "mild", 2, "50")),
    ("N = 10 to 50, extreme: the same", "stable", lambda r: by_size(r, "extreme")),
    (
        "N = 10, mild: SSD-FL and cSTC are equal",
        "0 (both 74.5)",
        lambda r: lead(r, SIZE, "mild", 0, "10", "cSTC"),
    ),
    (
        "N = 50, mild: cSTC falls behind",
        "+7 (80 against 73)",
        lambda r: lead(r, SIZE, "mild", 7, "50", "cSTC"),
    ),
    (
        "N = 50, extreme: cSTC falls behind",
        "+10",
        lambda r: lead(r, SIZE, "extreme", 10, "50", "cSTC"),
    ),
    (
        "CIFAR10, N = 50, extreme: cSTC falls behind",
        "+4",
        lambda r: lead(r, "cifar10-size", "extreme", 4, "50", "cSTC"),
    ),
    (
        "PrefA, mild: lead over STC",
        "+5.8 (73.5 against 67.7)",
        lambda r: lead(r, ARCHITECTURE, "mild", 5.8, "PrefA", "STC"),
    ),
    (
        "PrefA, extreme: lead over STC",
        "+7.2 (44.8 against 37.6)",
        lambda r: lead(r, ARCHITECTURE, "extreme", 7.2, "PrefA", "STC"),
    ),
    (
        "RNG, mild: lead over STC",
        "+2.9 (81.1 against 78.2)",
        lambda r: lead(r, ARCHITECTURE, "mild", 2.9, "RNG", "STC"),
    ),
    (
        "RNG, extreme: lead over STC",
        "+1.9 (52.5 against 50.6)",
        lambda r: lead(r, ARCHITECTURE, "extreme", 1.9, "RNG", "STC"),
    ),
    (
        "complete, mild: SSD-FL is sDFL",
        "+0.1 (88.3 against 88.2)",
        lambda r: with_clusters(r, "mild"),
    ),
    (
        "complete, extreme: SSD-FL is sDFL",
        "−0.1 (80.9 against 81.0)",
        lambda r: with_clusters(r, "extreme"),
    ),
    ("all link probabilities: lead over sDFL", "+4", lambda r: over_links(r, STRONG, 4)),
    ("all link probabilities: lead over pDFL", "+13", lambda r: over_links(r, "pDFL", 13)),
    (
        "Theorem 1's score is least at S, τ_a = 1, 3, 5, mild",
        "4, –, 2",
        lambda r: least(r, "stationarity", {1: 4, 5: 2}),
    ),
)


def table(folder: Path) -> str:
    """The Markdown table."""
    results = Results(folder)
    lines = ["| # | claim | the paper | ours | verdict |", "|---|---|---|---|---|"]
    for place, (what, paper, find) in enumerate(CLAIMS, start=1):
        try:
            found = find(results)
        except NotRunError:
            continue
        lines.append(f"| {place} | {what} | {paper} | {found.ours} | {found.verdict} |")
    return "\n".join(lines)


COSTS = {
    "beyond-costs": ("one label", "0.4", "0.6"),
    "beyond-tables": ("extreme", "0.4", "0.65"),
}
"""By artefact: what panels with one label per device are called, and the accuracies to reach."""


def costs(folder: Path, name: str) -> str:
    """What an accuracy costs in seconds and megabytes, if it is reached by all seeds."""
    hard, of_hard, of_others = COSTS[name]
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["point"] in ("simulated seconds", "megabytes sent")
        ]
    shown = {
        (row["series"], row["panel"], row["point"]): f"{float(row['value']):.1f}"
        if row["value"]
        else "–"
        for row in rows
        if row["threshold"] == (of_hard if hard in row["panel"] else of_others)
    }
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    lines = [f"| | {' | '.join(panels)} |", "|---" * (len(panels) + 1) + "|"]
    for series in dict.fromkeys(row["series"] for row in rows):
        cells = [
            f"{shown[series, panel, 'simulated seconds']} s, "
            f"{shown[series, panel, 'megabytes sent']} MB"
            for panel in panels
        ]
        lines.append(f"| {series} | {' | '.join(cells).replace('– s, – MB', '–')} |")
    return "\n".join(lines)


if __name__ == "__main__":
    results_folder = Path(sys.argv[1] if len(sys.argv) > 1 else "reproduce/results/small")
    print(
        RULE, table(results_folder), agreement(results_folder), criteria(results_folder), sep="\n\n"
    )
    for artefact in COSTS:
        if (results_folder / f"{artefact}.csv").exists():
            print(f"\n{costs(results_folder, artefact)}")
