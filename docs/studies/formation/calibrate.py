"""Where δ, κ and √(20/N) of the prediction come from.

    python docs/studies/formation/calibrate.py

``calibration.csv`` holds the cycles that recursive bisections of 13 networks needed to nine tenths
of the accuracy that one cluster reaches in 30 cycles (digits, a small mlp, seed 0). Only the
complete network of ten devices is also one of the study's. The error is the root mean square over
cases of the deviation of log(measured / predicted) within a case; cases whose target is below 40 %
are left out. The last lines are about the study's own measurements.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
from measure import cases, inputs_of, read

from report import clusters_in
from ssdfl.arrays import FloatArray, IntArray
from ssdfl.clusters import ScoreInputs
from ssdfl.graph import links_within, metropolis
from ssdfl.learning import describe_devices, load_dataset
from ssdfl.preparation import prepare
from ssdfl.records import make_experiment
from ssdfl.theory import disagreement
from ssdfl.theory.disagreement import PULL, SLOWDOWN

HERE = Path(__file__).parent
PULLS = (0.01, 0.02, 0.03, 0.04, 0.06, 0.1)
SLOWDOWNS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)


def labels_in(text: str) -> IntArray:
    """Cluster numbers from their text."""
    return np.array(text.split("."), dtype=np.int64)


def calibration_cases() -> list[tuple[float, FloatArray, dict[float, FloatArray]]]:
    """Per case: η E, the logarithms of measured cycles, and D for each δ."""
    grouped = defaultdict(list)
    with (HERE / "calibration.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            grouped[tuple(list(row.values())[:5])].append(row)
    found = []
    for (spec, labels, tau_a, rate, steps), rows in grouped.items():
        if float(rows[0]["target"]) < 0.4:
            continue
        values = {
            "network": {"spec": spec},
            "clusters": {"number": 1},
            "data": {"labels_per_device": int(labels)},
        }
        instance = prepare(make_experiment(values), 0, load_dataset("digits"))
        inputs = ScoreInputs(instance.network, describe_devices(instance.task, instance.optimizers))
        rows = [row for row in rows if np.isfinite(float(row["cycles"]))]
        inside = [
            metropolis(links_within(instance.network.adjacency, labels_in(r["labels"])))
            for r in rows
        ]
        D = {
            δ: np.array(
                [
                    disagreement(inputs.A, W, inputs.differences, int(tau_a), 1, δ).trained
                    for W in inside
                ]
            )
            for δ in PULLS
        }
        measured = np.log([float(row["cycles"]) for row in rows])
        found.append((float(rate) * int(steps), measured, D))
    return found


def main() -> None:
    """Print what the documentation states."""
    known = calibration_cases()

    def error(δ: float, κ: float, power: float = 0.0) -> float:
        spreads = [
            (measured - np.log1p(κ * (step / 0.2) ** power * D[δ])).std()
            for step, measured, D in known
        ]
        return float(np.sqrt(np.mean(np.square(spreads))))

    print(f"{len(known)} cases; δ = {PULL}, κ = {SLOWDOWN}: error {error(PULL, SLOWDOWN):.3f}")
    best = min((error(δ, κ), δ, κ) for δ in PULLS for κ in SLOWDOWNS)
    print(f"best of the grid: error {best[0]:.3f} at δ = {best[1]}, κ = {best[2]}")
    print(f"with D ∝ (η E)², as the plain theory has it: error {error(PULL, SLOWDOWN, 2.0):.3f}")
    study()


def study() -> None:
    """The study's regret with and without √(20/N): all networks, first draws, second draws."""
    rows = defaultdict(list)
    for row in read():
        rows[row["case"]].append(row)
    regrets: dict[str, dict[float, float]] = {}
    errors = []
    for case in cases():
        inputs = inputs_of(case, 0)
        n = inputs.network.num_devices
        clusters = [clusters_in(row) for row in rows[case.name]]
        D = [inputs.disagreement(c) for c in clusters]
        time_s = np.array([inputs.cycle_cost(c).time_s for c in clusters])
        sizes = np.array([len(c) for c in clusters])
        seconds = np.array([float(row["seconds"]) for row in rows[case.name]])
        cycles = np.array([float(row["cycles"]) for row in rows[case.name]])
        regrets[case.name] = {}
        for power in (0.0, 0.5):
            factor = (20 / n) ** power
            slower = np.array(
                [1 + SLOWDOWN * (d.mixed + factor * (d.trained - d.mixed)) for d in D]
            )
            score = time_s * slower
            chosen = int(np.argmin(np.where(score <= 1.03 * score.min(), sizes, n + 1)))
            regrets[case.name][power] = float(seconds[chosen] / seconds.min() - 1)
        reached = np.isfinite(cycles)
        errors.append(float(np.log(cycles[reached] / slower[reached]).std()))
    print(f"study: error {np.sqrt(np.mean(np.square(errors))):.3f}")
    for name, ending in (("all", ""), ("first draws", "-1"), ("second draws", "-2")):
        for power in (0.0, 0.5):
            chosen_cases = [r[power] for k, r in regrets.items() if k.endswith(ending)]
            ordered = sorted(chosen_cases)
            p90 = ordered[int(np.ceil(0.9 * len(ordered))) - 1]
            regret = f"mean regret {np.mean(ordered):.3f}, 90th percentile {p90:.3f}"
            print(f"{name}, (20/N)^{power}: {regret}")


if __name__ == "__main__":
    main()
