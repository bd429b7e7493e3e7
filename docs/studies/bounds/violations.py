"""How often, and by how much, the paper's statements fail on random problems.

    python docs/studies/bounds/violations.py [--problems 1500]

Each problem is a cycle of SSD-FL with full gradients on random quadratic or logistic losses, a
random network, clusters, optimizers, τ_a, τ_r and η; see ``tests/simulated.py``. Both the printed
and the rigorous form of each statement are checked.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3] / "tests"))
from simulated import measured_and_bounds, simulate
from ssdfl.theory import published, rigorous


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(
        description="How often the paper's statements fail on random problems."
    )
    parser.add_argument("--problems", type=int, default=1500)
    problems = parser.parse_args().problems
    print("| statement | form | rows | says nothing | violated | worst measured / bound | median |")
    print("|---|---|---|---|---|---|---|")
    for theory, centred in ((published, False), (rigorous, True)):
        found: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for seed in range(problems):
            for statement, measured, bound in measured_and_bounds(simulate(seed), theory, centred):
                found[statement].append((float(measured), float(bound)))
        for statement in sorted(found):
            print(line(statement, theory.__name__.rpartition(".")[2], found[statement]))


def line(statement: str, form: str, rows: list[tuple[float, float]]) -> str:
    """One line of the table; below 1e-9 everything counts as 0."""
    said = [(measured, bound) for measured, bound in rows if math.isfinite(bound)]
    failed = sum(measured > bound + 1e-9 * (1 + abs(bound)) for measured, bound in said)
    ratios = [measured / bound for measured, bound in said if bound > 1e-9]
    shares = f"{1 - len(said) / len(rows):.1%} | {failed / len(said):.2%}"
    spread = f"{max(ratios):.2f} | {np.median(ratios):.3f}"
    return f"| {statement} | {form} | {len(rows)} | {shares} | {spread} |"


if __name__ == "__main__":
    main()
