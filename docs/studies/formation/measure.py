"""Measure every partition that formation weighs, on 56 cases.

    python docs/studies/formation/measure.py      # resumes; about an hour on two cores

A case is a network with link costs, a label skew and τ_a. Each partition that formation weighs
on it, by Algorithm 2 and cost-aware, is trained on the digits. Training ends when devices' mean
accuracy reaches nine tenths of what one cluster (sDFL) reaches in 120 steps (360 with one label
per device, which learns slower), or after four times as long. The measures are cycles,
simulated seconds and bytes until then.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import cycle, product
from pathlib import Path

import numpy as np

from ssdfl.arrays import BoolArray, FloatArray
from ssdfl.clusters import (
    Clusters,
    FormationSettings,
    ScoreInputs,
    form_clusters,
    labels_of,
    spectral_bisection,
)
from ssdfl.engine import Job, run
from ssdfl.graph import Network, load_network
from ssdfl.learning import describe_devices, load_dataset
from ssdfl.methods import ScheduleInputs, find_method
from ssdfl.preparation import Prepared, prepare
from ssdfl.records import make_experiment
from ssdfl.report import cost_to_target
from ssdfl.rng import generator
from ssdfl.theory import Constants

Row = dict[str, str]
HERE = Path(__file__).parent
MEASUREMENTS = HERE / "measurements.csv"
CHANCE = 0.1
"""Accuracy before training, of ten classes."""
FIELDS = ("case", "seed", "labels", "rules", "target", "cycles", "seconds", "bytes", "accuracy")
STEPS = {3: 120, 1: 360}
PATIENCE = 4
LEARNING_RATE, LOCAL_STEPS, HIDDEN = 0.1, 2, 32
COMPUTE_S = 0.01
TRAINING_STEP_S = COMPUTE_S * LOCAL_STEPS

KINDS = {
    "er": "er:n={n},p={p},seed={seed}",
    "ba": "ba:n={n},m={m},seed={seed}",
    "rgeo": "rgeo:n={n},radius={radius},seed={seed}",
    "ws": "ws:n={n},k=4,p=0.2,seed={seed}",
    "complete": "complete:n={n}",
    "sites": "sites:sites={sites},size={size},density={density},links=2,seed={seed}",
}
SIZES = {10: (2, 5), 20: (4, 5), 30: (5, 6), 50: (5, 10)}


@dataclass(frozen=True)
class Case:
    """A network, what its links cost, how skewed its data are, and τ_a."""

    name: str
    spec: str
    costs: str
    labels_per_device: int
    tau_a: int


def cases() -> list[Case]:
    """Six kinds of network, four sizes, two draws; costs, skews, τ_a in turn; two with all τ_a."""
    costs = cycle(("uniform", "two-tier", "distance", "scarce"))
    skews = cycle((3, 1, 1, 3, 3))
    taus = cycle((1, 3, 5, 7, 3, 5, 7))
    found = []
    for (n, (sites, size)), kind, seed in product(SIZES.items(), KINDS, (1, 2)):
        spec = KINDS[kind].format(
            n=n, seed=seed, p=round(3.5 / n if seed == 1 else 6 / n, 3), m=seed,
            radius=0.3 if n <= 20 else 0.2, sites=sites, size=size,
            density=1.0 if seed == 1 else 0.6,
        )  # fmt: skip
        cost = next(costs) if kind != "sites" else "two-tier"
        found.append(Case(f"{kind}-{n}-{seed}", spec, cost, next(skews), next(taus)))
    for spec, cost in (
        ("er:n=20,p=0.2,seed=3", "scarce"),
        ("sites:sites=4,size=5,seed=3", "two-tier"),
    ):
        found += [Case(f"tau-{cost}-{tau_a}", spec, cost, 3, tau_a) for tau_a in (1, 3, 5, 7)]
    return found


def network_of(case: Case) -> Network:
    """The case's network with its link costs; a training step takes 20 ms."""
    network = load_network(case.spec)
    if case.costs in ("uniform", "scarce"):
        steps = np.full(network.num_links, 0.75 if case.costs == "uniform" else 3.0)
    elif case.costs == "two-tier":
        steps = np.where(_crosses(network, case), 7.5, 0.75)
    else:
        steps = 0.2 + 8 * _lengths(network, case)
    compute_s = np.full(network.num_devices, COMPUTE_S)
    return replace(network, latency_s=TRAINING_STEP_S * steps, compute_s=compute_s)


def _crosses(network: Network, case: Case) -> BoolArray:
    """Whether a link joins two tiers: sites, thirds of a complete network, or bisected parts."""
    n = network.num_devices
    if case.spec.startswith("sites"):
        group = np.arange(n) // SIZES[n][1]
    elif case.spec.startswith("complete"):
        group = np.arange(n) * 3 // n
    else:
        group = labels_of(spectral_bisection(network, 3 if n < 30 else 5), n)
    crosses: BoolArray = group[network.links[:, 0]] != group[network.links[:, 1]]
    return crosses


def _lengths(network: Network, case: Case) -> FloatArray:
    """Link lengths: of the drawing where there is one, else of random places in the unit square."""
    places = network.positions
    if places is None:
        places = generator(0, "places", *case.name.encode()).random((network.num_devices, 2))
    lengths: FloatArray = np.linalg.norm(
        places[network.links[:, 0]] - places[network.links[:, 1]], axis=1
    )
    return lengths


def instance_of(case: Case, network: Network, seed: int) -> Prepared:
    """Data, optimizers and model of a case and seed."""
    experiment = make_experiment(
        {
            "network": {"spec": case.spec},
            "clusters": {"number": 1},
            "data": {"labels_per_device": case.labels_per_device},
            "model": {"options": {"hidden": HIDDEN}},
        }
    )
    return replace(prepare(experiment, seed, load_dataset("digits")), network=network)


def constants_of(case: Case) -> Constants:
    """The case's training."""
    return Constants(learning_rate=LEARNING_RATE, local_steps=LOCAL_STEPS, tau_a=case.tau_a)


def inputs_of(case: Case, seed: int) -> ScoreInputs:
    """What formation knows of a case."""
    network = network_of(case)
    instance = instance_of(case, network, seed)
    message_bytes = 4 * instance.task.num_parameters
    devices = describe_devices(instance.task, instance.optimizers)
    return ScoreInputs(network, devices, constants_of(case), message_bytes=message_bytes)


def pool(inputs: ScoreInputs) -> dict[Clusters, set[str]]:
    """Every partition that formation weighs, and by which rules."""
    found: dict[Clusters, set[str]] = defaultdict(set)
    for partition, score in (("paper", "stationarity"), ("cost", "time")):
        settings = FormationSettings(
            inputs.constants, partition, score, mode="literal", message_bytes=inputs.message_bytes
        )
        plan = form_clusters(inputs.network, inputs.devices, settings)
        for candidate in plan.candidates:
            found[candidate.clusters].add(partition)
    return found


def train(
    case: Case, instance: Prepared, clusters: Clusters, cycles: int
) -> Iterator[dict[str, float]]:
    """The record of each cycle."""
    setting = ScheduleInputs(
        instance.network, clusters, tau_a=case.tau_a, tau_r=1, seed=instance.seed
    )
    job = Job(
        task=instance.task,
        network=instance.network,
        schedule=find_method("ssdfl").schedule(setting),
        optimizers=instance.optimizers,
        cycles=cycles,
        steps_per_cycle=case.tau_a + 1,
        learning_rate=LEARNING_RATE,
        local_steps=LOCAL_STEPS,
        seed=instance.seed,
    )
    for record, _ in run(job):
        yield asdict(record)


def base_cycles(case: Case) -> int:
    """How long one cluster trains for the target."""
    return math.ceil(STEPS[case.labels_per_device] / (case.tau_a + 1))


def train_to(
    target: float, case: Case, instance: Prepared, clusters: Clusters
) -> list[dict[str, float]]:
    """The records until the target is reached, or for four times one cluster's cycles."""
    base = base_cycles(case)
    records: list[dict[str, float]] = []
    for record in train(case, instance, clusters, PATIENCE * base):
        records.append(record)
        if len(records) >= base and cost_to_target(records, target) is not None:
            break
    return records


def costs_to(target: float, records: list[dict[str, float]]) -> list[float]:
    """Cycles, seconds and bytes to the target; infinite if it was not reached."""
    return [
        cost_to_target(records, target, cost, interpolate=True, start=CHANCE) or math.inf
        for cost in ("cycle", "time_s", "sent_bytes")
    ]


def measure(case: Case, seed: int, done: set[str]) -> list[dict[str, object]]:
    """Train every partition of a case to the target, but for those done already."""
    inputs = inputs_of(case, seed)
    instance = instance_of(case, inputs.network, seed)
    base = base_cycles(case)
    one = (tuple(range(inputs.network.num_devices)),)
    target = 0.9 * list(train(case, instance, one, base))[-1]["score"]
    rows = []
    for clusters, rules in pool(inputs).items():
        labels = ".".join(map(str, labels_of(clusters, instance.network.num_devices)))
        if labels in done:
            continue
        records = train_to(target, case, instance, clusters)
        reached = costs_to(target, records)
        accuracy = records[base - 1]["score"]
        values = (case.name, seed, labels, " ".join(sorted(rules)), f"{target:.4f}",
                  *(f"{r:.6g}" for r in reached), f"{accuracy:.4f}")  # fmt: skip
        rows.append(dict(zip(FIELDS, values, strict=True)))
    return rows


def measure_all(seeds: int, workers: int) -> None:
    """Measure what is not measured yet, a case at a time."""
    done: dict[tuple[str, int], set[str]] = defaultdict(set)
    for row in read():
        done[row["case"], int(row["seed"])].add(row["labels"])
    todo = list(product(cases(), range(seeds)))
    with ProcessPoolExecutor(workers) as executor:
        results = [
            (executor.submit(measure, c, seed, done[c.name, seed]), c, seed) for c, seed in todo
        ]
        for count, (future, case, seed) in enumerate(results, start=1):
            rows = future.result()
            fresh = not MEASUREMENTS.exists()
            with MEASUREMENTS.open("a", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, FIELDS)
                if fresh:
                    writer.writeheader()
                writer.writerows(rows)
            print(
                f"{count}/{len(todo)} {case.name} seed {seed}: {len(rows)} partitions",
                file=sys.stderr,
            )


def read() -> list[Row]:
    """All measurements."""
    if not MEASUREMENTS.exists():
        return []
    with MEASUREMENTS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure every partition that formation weighs.")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    measure_all(options.seeds, options.workers)
