"""Measure methods with one cluster and with formed ones, and rules among liars.

    python docs/studies/methods/measure.py            # goes on where it stopped; about half an hour of a core
    python docs/studies/methods/measure.py --seeds 1  # only the first seed

Every run is 20 devices, a small net on the digits, plain SGD. Runs are kept in runs/methods, so a second call
only does what is missing. results.csv and attacks.csv have a line a run.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from ssdfl.experiments.pool import Finished, Resources, run_pool
from ssdfl.files import write_text
from ssdfl.learning import load_dataset
from ssdfl.preparation import prepare
from ssdfl.records import Experiment, make_experiment
from ssdfl.records.cache import finished_rows
from ssdfl.report import cost_to_target

HERE = Path(__file__).parent
ROOT = Path("runs") / "methods"
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

CYCLES = {3: 20, 1: 30}
"""By labels per device: one label each learns slower."""
TARGET = {3: 0.85, 1: 0.6}
SPLIT = 4
"""Clusters where formation forms none, to see what it forgoes."""

RULES = ("cta", "clipped", "trimmed", "median", "gt")
LIES = ("sign-flip", "noise", "same-value", "little-is-enough", "dissensus")
LIARS = (0, 1, 2, 4)
BYZANTINE_NETWORK = "er:n=20,p=0.5"

Row = dict[str, Any]
FIELDS = ("network", "labels", "seed", "method", "arm", "clusters", "accuracy", "cycles", "bytes", "seconds",
          "bytes_a_cycle", "seconds_a_cycle", "curve")  # fmt: skip
ATTACK_FIELDS = ("attack", "rule", "liars", "seed", "accuracy", "worst")


@dataclass(frozen=True)
class Case:
    """One run of the comparison, and the clusters that it has."""

    network: str
    labels: int
    seed: int
    method: str
    arm: str
    clusters: int
    experiment: Experiment


def experiment(spec: str, labels: int, seed: int, method: str, **sections: Mapping[str, Any]) -> Experiment:
    """One run."""
    return make_experiment(
        {
            "name": "methods",
            "methods": [method],
            "seeds": [seed],
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


def formed_plan(name: str, labels: int, seed: int) -> tuple[Path, int]:
    """The plan that formation makes, in a file that runs share, and how many clusters it has."""
    path = ROOT / "plans" / f"{name.replace(' ', '')}-{labels}-{seed}.json"
    if not path.exists():
        one = experiment(NETWORKS[name], labels, seed, "ssdfl")
        plan = prepare(one, seed, load_dataset("digits")).plan
        write_text(path, json.dumps(plan.to_json(), indent=1) + "\n")
    return path, len(json.loads(path.read_text(encoding="utf-8"))["clusters"])


def cases(seeds: int) -> Iterator[Case]:
    """All runs of the comparison; a whole seed comes before the next."""
    for seed, labels, (name, spec) in product(range(seeds), CYCLES, NETWORKS.items()):
        plan, number = formed_plan(name, labels, seed)
        several = {"plan": str(plan.resolve())} if number > 1 else {"number": SPLIT}
        arm = "formed" if number > 1 else "split"
        for method, (alone, clustered) in METHODS.items():
            one = experiment(spec, labels, seed, alone, clusters={"number": 1})
            yield Case(name, labels, seed, method, "one", 1, one)
            many = experiment(spec, labels, seed, clustered, clusters=several)
            yield Case(name, labels, seed, method, arm, number if number > 1 else SPLIT, many)


def line(case: Case, rows: Sequence[Row]) -> Row:
    """What a run came to."""
    target = TARGET[case.labels]
    reached = [
        cost_to_target(rows, target, cost, interpolate=True, start=0.1) or math.inf
        for cost in ("cycle", "sent_bytes", "time_s")
    ]
    last = rows[-1]
    values = (case.network, case.labels, case.seed, case.method, case.arm, case.clusters,
              f"{last['accuracy']:.4f}", *(f"{one:.6g}" for one in reached),
              f"{last['sent_bytes'] / len(rows):.6g}", f"{last['time_s'] / len(rows):.6g}",
              " ".join(f"{1000 * row['accuracy']:.0f}" for row in rows))  # fmt: skip
    return dict(zip(FIELDS, values, strict=True))


def lying_runs(seeds: int) -> Iterator[tuple[Row, Experiment]]:
    """All runs among liars, and the first columns of their lines."""
    for seed, attack, rule, liars in product(range(seeds), LIES, RULES, LIARS):
        options = f":liars={max(liars, 1)}" if rule in ("clipped", "trimmed") else ""
        one = experiment(
            BYZANTINE_NETWORK,
            3,
            seed,
            f"sdfl+{rule}{options}",
            clusters={"number": 1},
            faults={"liars": liars, "attack": attack} if liars else {},
        )
        yield {"attack": attack, "rule": rule, "liars": liars, "seed": seed}, one


def write(path: Path, fields: Sequence[str], rows: Sequence[Row]) -> None:
    """Write a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_what_is_there(compared: Sequence[Case], lying: Sequence[tuple[Row, Experiment]]) -> None:
    """Write both tables of the runs that are finished."""
    found = [(case, finished_rows(case.experiment, ROOT)) for case in compared]
    write(RESULTS, FIELDS, [line(case, rows) for case, rows in found if rows])
    known = [(first, finished_rows(one, ROOT)) for first, one in lying]
    write(
        ATTACKS,
        ATTACK_FIELDS,
        [
            {**first, "accuracy": f"{rows[-1]['accuracy']:.4f}", "worst": f"{rows[-1]['accuracy_worst']:.4f}"}
            for first, rows in known
            if rows
        ],
    )


def measure(seeds: int, workers: int) -> None:
    """Do the runs that are missing."""
    for upto in range(1, seeds + 1):
        compared, lying = list(cases(upto)), list(lying_runs(upto))
        runs = [case.experiment for case in compared] + [one for _, one in lying]
        done: Finished
        for number, done in enumerate(run_pool(runs, ROOT, resources=Resources(at_a_time=workers)), start=1):
            if done.error:
                print(f"{done.experiment.methods[0]}: {done.error}", file=sys.stderr)
            if number % 50 == 0:
                print(f"{number} of {len(runs)} runs", file=sys.stderr)
        write_what_is_there(compared, lying)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Measure methods with and without clusters, and among liars."
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--tables", action="store_true", help="only write the tables of what is there")
    options = parser.parse_args()
    if options.tables:
        write_what_is_there(list(cases(options.seeds)), list(lying_runs(options.seeds)))
    else:
        measure(options.seeds, options.workers)
