"""Would another law of cycles against disagreement choose better clusters?

    python docs/studies/formation/forms.py     # two minutes

For every law: the error of log(cycles) within a case, and the regret of its choice from the
partitions that formation weighs, over all cases of the study and over those with one label per
device.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from measure import Case, Row, cases, inputs_of, pool, read

from report import clusters_in
from ssdfl.arrays import FloatArray
from ssdfl.clusters import Clusters
from ssdfl.clusters.formation import INDIFFERENCE
from ssdfl.theory.disagreement import SLOWDOWN, slowdown

Law = Callable[[FloatArray], FloatArray]
"""Each partition's slowdown from the disagreements of all; the first is one cluster's."""


def power(κ: float, p: float) -> Law:
    """(1 + κ D)^p: rises less where D is large."""
    return lambda D: np.asarray((1 + κ * D) ** p)


def bounded(κ: float, most: float) -> Law:
    """1 + κ D / (1 + D / D_most)."""
    return lambda D: np.asarray(1 + κ * D / (1 + D / most))


def relative(κ: float, c: float) -> Law:
    """1 + κ (D − D_1) / (1 + c D_1): what counts is what clusters add to the least there can be."""
    return lambda D: np.asarray(1 + κ * np.maximum(D - D[0], 0) / (1 + c * D[0]))


LAWS: dict[str, Law] = {
    "1 + 0.15 D (in use)": power(SLOWDOWN, 1.0),
    "(1 + 0.2 D)^0.7": power(0.2, 0.7),
    "(1 + 0.3 D)^0.7": power(0.3, 0.7),
    "(1 + 0.5 D)^0.6": power(0.5, 0.6),
    "(1 + 0.09 D)^1.2": power(0.09, 1.2),
    "1 + 0.3 D / (1 + D/20)": bounded(0.3, 20),
    "1 + 0.2 D / (1 + D/40)": bounded(0.2, 40),
    "1 + 0.2 (D − D₁) / (1 + 0.3 D₁)": relative(0.2, 0.3),
    "1 + 0.4 (D − D₁) / (1 + 0.5 D₁)": relative(0.4, 0.5),
}


@dataclass(frozen=True)
class Measured:
    """The weighed partitions of a case, one cluster first; ``best_s`` is over all measured."""

    case: Case
    clusters: list[Clusters]
    D: FloatArray
    sizes: FloatArray
    cycle_s: FloatArray
    cycles: FloatArray
    seconds: FloatArray
    best_s: float


def measured(case: Case, rows: list[Row]) -> Measured:
    """What the study knows of a case."""
    inputs = inputs_of(case, 0)
    known = pool(inputs)
    rows = [row for row in rows if clusters_in(row) in known]
    best_s = min(float(row["seconds"]) for row in rows)
    rows = sorted(
        (r for r in rows if "cost" in known[clusters_in(r)]), key=lambda r: len(clusters_in(r))
    )
    clusters = [clusters_in(row) for row in rows]
    n = inputs.network.num_devices
    slow = np.array([slowdown(inputs.disagreement(one), n) for one in clusters])
    return Measured(
        case,
        clusters,
        (slow - 1) / SLOWDOWN,
        np.array([len(one) for one in clusters], dtype=float),
        np.array([inputs.cycle_cost(one).time_s for one in clusters]),
        np.array([float(row["cycles"]) for row in rows]),
        np.array([float(row["seconds"]) for row in rows]),
        best_s,
    )


def error_and_regret(law: Law, one: Measured) -> tuple[float, float]:
    """How far log(cycles) is from the law within a case, and the regret of what the law chooses."""
    slow = law(one.D)
    reached = np.isfinite(one.cycles)
    error = float(np.log(one.cycles[reached] / slow[reached]).std())
    score = one.cycle_s * slow
    equal = score <= INDIFFERENCE * score.min()
    chosen = int(np.argmin(np.where(equal, one.sizes, np.inf)))
    return error, float(one.seconds[chosen] / one.best_s - 1)


def line(name: str, law: Law, known: list[Measured]) -> str:
    """A law's row of the table."""
    found = [error_and_regret(law, one) for one in known]
    error = math.sqrt(np.mean([error**2 for error, _ in found]))
    regrets = [regret for _, regret in found]
    alone = [
        regret
        for regret, one in zip(regrets, known, strict=True)
        if one.case.labels_per_device == 1
    ]
    cells = [f"{error:.3f}", *_spread(regrets), *_spread(alone)]
    return f"| {name} | {' | '.join(cells)} |"


def _spread(regrets: list[float]) -> tuple[str, str]:
    """The 90th percentile and the worst."""
    ordered = sorted(regrets)
    values = ordered[math.ceil(0.9 * len(ordered)) - 1], ordered[-1]
    return tuple(f"{value:.1%}" if math.isfinite(value) else "∞" for value in values)  # type: ignore[return-value]


def main() -> None:
    """Print the table of ``index.md``."""
    rows = defaultdict(list)
    for row in read():
        rows[row["case"]].append(row)
    known = [measured(case, rows[case.name]) for case in cases()]
    print("| cycles ∝ | error | 90th percentile | worst | one label each: 90th | worst |")
    print("|---|---|---|---|---|---|")
    for name, law in LAWS.items():
        print(line(name, law, known))


if __name__ == "__main__":
    main()
