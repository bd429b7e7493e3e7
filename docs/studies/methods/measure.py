"""Measure methods with one cluster and with formed ones, and rules among liars.

    python docs/studies/methods/measure.py            # resumes; 15 minutes of a core
    python docs/studies/methods/measure.py --seeds 1  # only the first seed

Every run has 20 devices, a small net on the digits and plain SGD. results.csv and attacks.csv
have a line for each run; runs on record are not repeated.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from ssdfl.clusters import Plan, plan_clusters
from ssdfl.engine import run
from ssdfl.engine.threads import use_cores
from ssdfl.graph import Network, load_network
from ssdfl.learning import Dataset, Task, load_dataset
from ssdfl.preparation import Prepared, make_job, prepare, prepare_planned
from ssdfl.records import Experiment, make_experiment
from ssdfl.report import cost_to_target

HERE = Path(__file__).parent
RESULTS, ATTACKS = HERE / "results.csv", HERE / "attacks.csv"

NETWORKS = {
    "er": "er:n=20,p=0.2",
    "ba": "ba:n=20,m=2",
    "rgeo": "rgeo:n=20,radius=0.3",
    "ws": "ws:n=20,k=4,p=0.2",
    "complete": "complete:n=20",
    "cliques": "cliques:cliques=4,size=5",
    "sites, 10 × slower": "sites:sites=4,size=5,slowdown=10",
    "sites, 100 × slower": "sites:sites=4,size=5,slowdown=100",
}
"""Those that are random are drawn anew for each seed."""

METHODS = {
    "cta": ("sdfl", "ssdfl"),
    "atc": ("sdfl+atc", "ssdfl+atc"),
    "gt": ("sdfl+gt", "ssdfl+gt"),
    "ed": ("sdfl+ed", "ssdfl+ed"),
    "extra": ("sdfl+extra", "ssdfl+extra"),
    "qgm": ("sdfl+qgm", "ssdfl+qgm"),
    "outer": ("sdfl+outer", "ssdfl+outer"),
    "clipped": ("sdfl+clipped", "ssdfl+clipped"),
    "choco": (
        "sdfl+choco:compressor=topk,fraction=0.1,gamma=0.3",
        "ssdfl+choco:compressor=topk,fraction=0.1,gamma=0.3",
    ),
    "cta, int8": ("sdfl+cta:compressor=int8", "ssdfl+cta:compressor=int8"),
    "extra, int8": ("sdfl+extra:compressor=int8", "ssdfl+extra:compressor=int8"),
    "matcha": ("matcha", "cmatcha"),
    "gossip": ("gossip", "cgossip"),
    "tthf": ("tthf", "tthf"),
    "hier": ("hier", "hier"),
}
"""Each with one cluster, and with several. The last two need a server."""

CYCLES = {3: 16, 1: 24}
"""By labels per device: one label each learns slower."""
TARGET = {3: 0.85, 1: 0.6}
SPLIT = 4
"""Clusters where formation forms none, to see what it forgoes."""

RULES = ("cta", "clipped", "trimmed", "median", "gt")
LIES = ("sign-flip", "noise", "same-value", "little-is-enough", "dissensus")
LIARS = (0, 1, 2, 4)
BYZANTINE_NETWORK = "er:n=20,p=0.5"

Row = dict[str, Any]
KEY = ("network", "labels", "seed", "method", "arm")
FIELDS = (
    *KEY,
    "clusters",
    "accuracy",
    "cycles",
    "bytes",
    "seconds",
    "bytes_a_cycle",
    "seconds_a_cycle",
    "curve",
)
ATTACK_KEY = ("attack", "rule", "liars", "seed")
ATTACK_FIELDS = (*ATTACK_KEY, "accuracy", "worst")


@dataclass(frozen=True)
class Case:
    """A network, a label skew and a seed: what all methods are compared on."""

    network: str
    labels: int
    seed: int


def experiment(spec: str, labels: int, method: str, **sections: Mapping[str, Any]) -> Experiment:
    """One run's experiment."""
    return make_experiment(
        {
            "methods": [method],
            "cycles": CYCLES[labels],
            "network": {"spec": spec},
            "data": {"labels_per_device": labels},
            "model": {"options": {"hidden": 32}},
            "training": {"learning_rate": 0.1, "local_steps": 2},
            "optimizers": {"kind": "sgd"},
            "evaluate": {"every": 1, "samples": 360},
            **sections,
        }
    )


@cache
def digits() -> Dataset:
    """The data, read once."""
    return load_dataset("digits")


@cache
def shared_task(labels: int, seed: int) -> Task:
    """The same for all networks, since all have 20 devices; so its operations are recorded once."""
    one = experiment("ring:n=20", labels, "sdfl", clusters={"number": 1})
    return prepare(one, seed, digits()).task


def prepared(case: Case, network: Network, plan: Plan) -> Prepared:
    """A seed with a plan that is known."""
    one = experiment(NETWORKS[case.network], case.labels, "sdfl")
    instance = prepare_planned(one, case.seed, digits(), network, [plan])
    return replace(instance, task=shared_task(case.labels, case.seed))


def arms(case: Case) -> Iterator[tuple[str, Prepared]]:
    """One cluster, and the clusters that formation chooses, or some others if it forms none."""
    one = experiment(NETWORKS[case.network], case.labels, "ssdfl")
    formed = prepare(one, case.seed, digits())
    network = formed.network
    yield "one", prepared(case, network, plan_clusters(network, 1))
    if formed.plan.num_clusters > 1:
        yield "formed", prepared(case, network, formed.plan)
    else:
        yield "split", prepared(case, network, plan_clusters(network, SPLIT))


def compared(case: Case, done: set[tuple[str, ...]]) -> Iterator[Row]:
    """What each method comes to on a case, with one cluster and with several."""
    first_key = tuple(map(str, asdict(case).values()))
    if sum(key[: len(first_key)] == first_key for key in done) == 2 * len(METHODS):
        return
    for place, (arm, instance) in enumerate(arms(case)):
        for method, texts in METHODS.items():
            key = (*first_key, method, arm)
            if key in done:
                continue
            one = experiment(NETWORKS[case.network], case.labels, texts[place])
            job = make_job(one, instance, texts[place])
            records = [asdict(record) for record, _ in run(job, in_place=True)]
            first = {
                **asdict(case),
                "method": method,
                "arm": arm,
                "clusters": instance.plan.num_clusters,
            }
            yield {**first, **outcome(records, TARGET[case.labels])}


def outcome(records: Sequence[Row], target: float) -> Row:
    """A run's final score, its cost to the target, and its curve in tenths of a percent."""
    reached = {
        name: cost_to_target(records, target, cost, interpolate=True, start=0.1) or math.inf
        for name, cost in (("cycles", "cycle"), ("bytes", "sent_bytes"), ("seconds", "time_s"))
    }
    last = records[-1]
    return {
        "accuracy": f"{last['score']:.4f}",
        **{name: f"{value:.6g}" for name, value in reached.items()},
        "bytes_a_cycle": f"{last['sent_bytes'] / len(records):.6g}",
        "seconds_a_cycle": f"{last['time_s'] / len(records):.6g}",
        "curve": " ".join(f"{1000 * record['score']:.0f}" for record in records),
    }


def among_liars(seed: int, done: set[tuple[str, ...]]) -> Iterator[Row]:
    """What each rule comes to under each attack; without liars attacks are alike."""
    network = load_network(BYZANTINE_NETWORK, default_seed=seed)
    case = Case("er", 3, seed)
    instance = prepared(case, network, plan_clusters(network, 1))
    for attack, rule, liars in product(("none", *LIES), RULES, LIARS):
        key = (attack, rule, str(liars), str(seed))
        if key in done or (attack == "none") != (liars == 0):
            continue
        options = f":liars={max(liars, 1)}" if rule in ("clipped", "trimmed") else ""
        faults = {"liars": liars, "attack": attack} if liars else {}
        one = experiment(BYZANTINE_NETWORK, 3, f"sdfl+{rule}{options}", faults=faults)
        *_, (last, _) = run(make_job(one, instance, one.methods[0]), in_place=True)
        accuracies = {"accuracy": f"{last.score:.4f}", "worst": f"{last.score_worst:.4f}"}
        yield {**dict(zip(ATTACK_KEY, key, strict=True)), **accuracies}


def read(path: Path) -> list[dict[str, str]]:
    """All lines of a table."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def append(path: Path, fields: Sequence[str], rows: Iterator[Row]) -> None:
    """Add lines to a table, each as it comes."""
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        if fresh:
            writer.writeheader()
        for row in rows:
            writer.writerow(row)
            file.flush()


def keys(path: Path, names: Sequence[str]) -> set[tuple[str, ...]]:
    """Which lines a table has."""
    return {tuple(row[name] for name in names) for row in read(path)}


def measure(seeds: int) -> None:
    """Do the runs that are missing, a seed after the other."""
    use_cores(1)
    for seed in range(seeds):
        for labels, name in product(CYCLES, NETWORKS):
            append(RESULTS, FIELDS, compared(Case(name, labels, seed), keys(RESULTS, KEY)))
            print(f"seed {seed}, {labels} labels, {name}", file=sys.stderr)
        append(ATTACKS, ATTACK_FIELDS, among_liars(seed, keys(ATTACKS, ATTACK_KEY)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Measure methods with and without clusters, and among liars."
    )
    parser.add_argument("--seeds", type=int, default=3)
    measure(parser.parse_args().seeds)
