"""Does a simulation of learning predict cycles better than the linear law, and choose better?

    python docs/studies/formation/simulated.py            # a minute
    python docs/studies/formation/simulated.py --around   # the fit's error near its constants, too

The simulation (`ssdfl.theory.Pilot`) has three constants, fitted to ``calibration.csv``: 13
networks, of which one is also in the study. So the study's 56 cases are held out.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from calibrate import HERE, labels_in
from forms import measured
from measure import cases, inputs_of, read

from ssdfl.arrays import FloatArray
from ssdfl.clusters import Clusters, ScoreInputs, clusters_of
from ssdfl.clusters.formation import INDIFFERENCE
from ssdfl.clusters.heterogeneity import label_frequencies
from ssdfl.learning import describe_devices, load_dataset
from ssdfl.preparation import prepare
from ssdfl.records import make_experiment
from ssdfl.theory import Pilot
from ssdfl.theory.pilot import BIAS, NOISE, SIGNAL, STEP_LENGTH

SWITCHES = (0.0, 1.5, 2.0, 3.0, math.inf)
"""One cluster's slowdown by the law, above which learning is simulated."""
MOST = 120
"""Cycles after which calibration ended."""


@dataclass(frozen=True)
class Predicted:
    """Cycles by the law and by the simulation, up to factors, beside the measured ones.

    Attributes:
        strength: one cluster's slowdown by the law.
        price_s: the time of a cycle.
    """

    name: str
    labels_per_device: int
    strength: float
    law: FloatArray
    simulated: FloatArray
    cycles: FloatArray
    sizes: FloatArray
    price_s: FloatArray
    seconds: FloatArray
    best_s: float

    def by(self, switch: float) -> FloatArray:
        """The prediction that is used."""
        return self.simulated if self.strength > switch else self.law

    def error(self, switch: float) -> float:
        """The variance of log(measured / predicted)."""
        factor = self.cycles[0] / self.by(switch)[0]
        predicted = np.minimum(factor * self.by(switch), MOST)
        return float(np.log(np.minimum(self.cycles, MOST) / predicted).var())

    def regret(self, switch: float, margin: float = INDIFFERENCE) -> float:
        """How much slower the choice is than the best partition."""
        score = self.price_s * self.by(switch)
        equal = score <= margin * score.min()
        chosen = int(np.argmin(np.where(equal, self.sizes, np.inf)))
        return float(self.seconds[chosen] / self.best_s - 1)


def predictions(
    inputs: ScoreInputs, clusters: Sequence[Clusters], constants: tuple[float, float, float]
) -> tuple[FloatArray, FloatArray]:
    """Slowdowns by the law and cycles by the simulation."""
    linear = replace(inputs, simulates=False)
    pilot = Pilot(
        inputs.A.toarray(), label_frequencies(inputs.devices),
        inputs.constants.tau_a, inputs.constants.tau_r, False, STEP_LENGTH, *constants,
    )  # fmt: skip
    law = np.array([linear.slowdown(one) for one in clusters])
    return law, np.array([pilot.cycles(inputs.A_intra(one)) for one in clusters])


def calibration(constants: tuple[float, float, float] = (SIGNAL, BIAS, NOISE)) -> list[Predicted]:
    """The networks that the constants were fitted to, at η E = 0.2."""
    grouped = defaultdict(list)
    with (HERE / "calibration.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["learning_rate"] == "0.1":
                key = row["network"], int(row["labels_per_device"]), int(row["tau_a"])
                grouped[key].append(row)
    data = load_dataset("digits")
    found = []
    for (spec, labels, tau_a), rows in grouped.items():
        values = {
            "network": {"spec": spec},
            "clusters": {"number": 1},
            "data": {"labels_per_device": labels},
        }
        instance = prepare(make_experiment(values), 0, data)
        devices = describe_devices(instance.task, instance.optimizers)
        inputs = ScoreInputs(instance.network, devices)
        inputs = replace(inputs, constants=replace(inputs.constants, tau_a=tau_a))
        clusters = [clusters_of(labels_in(row["labels"])) for row in rows]
        law, simulated = predictions(inputs, clusters, constants)
        cycles = np.array([float(row["cycles"]) for row in rows])
        sizes = np.array([len(one) for one in clusters], dtype=float)
        found.append(
            Predicted(spec, labels, law[0], law, simulated, cycles, sizes, cycles, cycles, 1.0)
        )
    return found


def study() -> list[Predicted]:
    """The study's cases, over the partitions that formation weighs."""
    rows = defaultdict(list)
    for row in read():
        rows[row["case"]].append(row)
    found = []
    for case in cases():
        known = measured(case, rows[case.name])
        inputs = inputs_of(case, 0)
        law, simulated = predictions(inputs, known.clusters, (SIGNAL, BIAS, NOISE))
        found.append(
            Predicted(
                case.name, case.labels_per_device, law[0], law, simulated, known.cycles,
                known.sizes, known.cycle_s, known.seconds, known.best_s,
            )
        )  # fmt: skip
    return found


def root_mean(values: Sequence[float]) -> float:
    """The root of the mean of variances."""
    return math.sqrt(np.mean(values))


def line(name: str, switch: float, fitted: list[Predicted], held_out: list[Predicted]) -> str:
    """A row of the table: errors on both sets, regrets on the study."""
    cells = [
        f"{root_mean([one.error(switch) for one in group]):.3f}" for group in (fitted, held_out)
    ]
    for group in (held_out, [one for one in held_out if one.labels_per_device == 1]):
        regrets = sorted(one.regret(switch) for one in group)
        p90 = regrets[math.ceil(0.9 * len(regrets)) - 1]
        cells += [f"{value:.1%}" for value in (np.mean(regrets), p90, regrets[-1])]
    return f"| {name} | {' | '.join(cells)} |"


def print_table(fitted: list[Predicted], held_out: list[Predicted]) -> None:
    """The tables of ``index.md``."""
    print(
        "| simulated if one cluster's slowdown is above | error, fitted | error, study "
        "| mean regret | 90th | worst | one label each: mean | 90th | worst |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for switch in reversed(SWITCHES):
        name = {0.0: "0 (always)", math.inf: "∞ (the law alone)"}.get(switch, f"{switch:g}")
        print(line(name, switch, fitted, held_out))
    print("\n| case | regret by the law alone | with 2 |\n|---|---|---|")
    for one in held_out:
        regrets = [one.regret(switch) for switch in (math.inf, 2.0)]
        if max(regrets) > 0.05:
            print(f"| {one.name} | {regrets[0]:.1%} | {regrets[1]:.1%} |")


def print_margins(held_out: list[Predicted]) -> None:
    """Mean regrets if predictions within other margins counted as equal."""
    for margin in (1.0, 1.01, 1.02, 1.03, 1.05):
        mean = np.mean([one.regret(2.0, margin) for one in held_out])
        print(f"equal within {margin - 1:.0%}: mean regret {mean:.2%}")


def print_around() -> None:
    """The error on the fitted networks near the constants."""
    for factors in (
        (1, 1, 1),
        *(tuple(row) for k in (0.67, 1.5) for row in 1 + (k - 1) * np.eye(3)),
    ):
        a, c, σ = np.multiply((SIGNAL, BIAS, NOISE), factors)
        error = root_mean([one.error(0.0) for one in calibration((a, c, σ))])
        print(f"a = {a:.2f}, c = {c:.2f}, σ = {σ:.2f}: error {error:.4f}", flush=True)


def main() -> None:
    """Print what the documentation states."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--around", action="store_true", help="try other constants")
    if parser.parse_args().around:
        print_around()
    held_out = study()
    print_table(calibration(), held_out)
    print_margins(held_out)


if __name__ == "__main__":
    main()
