"""Simulated time to accuracy on five real underlays: published designs and formed clusters.

    python docs/studies/underlays/measure.py --underlays FOLDER            # resumes
    python docs/studies/underlays/measure.py --underlays FOLDER --cycles   # only cycle times

FOLDER has gaia.gml, amazon_us.gml, geantdistance.gml, exodus.gml and ebone.gml, as published with
the designs (the page says where). Parameters do not depend on time. So each sequence of mixing
matrices is trained with once, training.csv, and timed by the clock for every access link and
message, results.csv.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from underlays import (
    FILES,
    Links,
    cycle_s,
    near,
    overlay,
    read_underlay,
    ring_matrix,
    silos,
    star,
    star_step,
    tour,
    tree,
)

from ssdfl.clusters import FormationSettings, Plan, form_clusters
from ssdfl.engine import Job, run
from ssdfl.engine.job import first_message
from ssdfl.engine.threads import use_cores
from ssdfl.graph import Clock, MixingMatrix, Network, averaging, load_network, metropolis
from ssdfl.learning import Dataset, Optimizer, Task, load_dataset
from ssdfl.methods import Rule, ScheduleInputs, Step, find_method, find_rule
from ssdfl.methods.step import Periodic
from ssdfl.preparation import measured_settings, shared_devices
from ssdfl.preparation.draw import draw
from ssdfl.records import make_experiment

HERE = Path(__file__).parent
TRAINING, RESULTS, CYCLES = HERE / "training.csv", HERE / "results.csv", HERE / "cycles.csv"

ACCESS_BPS = {"10 Gbit/s": 1e10, "1 Gbit/s": 1e9, "100 Mbit/s": 1e8}
MESSAGE_BYTES = {"CNN, 18 Mbit": 4 * 558_474, "45 Mbit": 44_961_717 // 8}
"""The paper's CNN in float32, and iNaturalist's model."""
TAU_A, TAU_R = 5, 1
STEPS = 300
TARGET = 0.85
RATE = 0.1
ARMS = 16
"""How many arms a case has."""

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Arm:
    """A design, and how it trains: what is trained once and timed often.

    Attributes:
        design: star, MST, ring, MATCHA, or formed.
        variant: how often it exchanges, and when.
        network: the overlay, with costs.
        schedule: W and who trains, by step.
        every: steps between two tests.
        note: which overlay and clusters were formed.
    """

    design: str
    variant: str
    rule: str
    network: Network
    schedule: Callable[[int], Step]
    every: int
    note: str = ""

    @property
    def found_rule(self) -> Rule:
        """The rule itself."""
        return find_rule(self.rule)

    def digest(self, seed: int) -> str:
        """What determines parameters: rule, seed, and who mixes with whom, when, at what weight."""
        text = hashlib.sha256(f"{self.rule} {seed} {self.every}".encode())
        for t in range(2 * (TAU_A + TAU_R)):
            step = self.schedule(t)
            text.update(np.round(step.W.toarray(), 9).tobytes() + step.train.tobytes())
        return text.hexdigest()[:12]


def every_step(
    n: int, mixer: Callable[[int], MixingMatrix], period: int | None
) -> Callable[[int], Step]:
    """Train and mix in every step."""
    everyone = np.ones(n, dtype=bool)
    schedule = lambda t: Step(everyone, mixer(t))  # noqa: E731
    return Periodic(schedule, period) if period else schedule


def seldom(
    n: int, mixer: Callable[[int], MixingMatrix], period: int | None
) -> Callable[[int], Step]:
    """Train alone for τ_a steps, then mix."""
    everyone, nobody = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    alone = csr_array(np.eye(n))
    length = TAU_A + TAU_R

    def at(t: int) -> Step:
        return Step(everyone, alone) if t % length < TAU_A else Step(nobody, mixer(t))

    return Periodic(at, length) if period else at


def designs(network: Network, underlay: Links, message_bytes: int, seed: int) -> Iterator[Arm]:
    """The designs as published, with messages that leave early, and with τ_a local steps."""
    n = network.num_devices
    one_way = tour(network, message_bytes)
    centre, spanning = (
        overlay(network, star(network)),
        overlay(network, tree(network, message_bytes)),
    )
    circle, near_ones = overlay(network, one_way), overlay(network, underlay)
    inputs = ScheduleInputs(near_ones, clusters=(), tau_a=1, tau_r=1, seed=seed)
    matchings = find_method("matcha").schedule(inputs)
    mixers: dict[str, tuple[Network, Callable[[int], MixingMatrix], int | None]] = {
        "star": (centre, _always(averaging(n)), 1),
        "MST": (spanning, _always(metropolis(spanning.adjacency)), 1),
        "ring": (circle, _always(ring_matrix(n, one_way)), 1),
        "MATCHA": (near_ones, lambda t: matchings(t).W, None),
    }
    for design, (on, mixer, period) in mixers.items():
        yield Arm(design, "as published", "atc", on, every_step(n, mixer, period), every=2)
        if design != "star":  # a star's answer has to wait for training
            yield Arm(design, "early", "cta", on, every_step(n, mixer, period), every=2)
        yield Arm(design, "local steps", "cta", on, seldom(n, mixer, period), every=TAU_A + TAU_R)
    for design, on in (
        ("MST", spanning),
        ("ring", circle),
    ):  # EXTRA asks for links that go both ways
        both_ways = _always(metropolis(on.adjacency))
        yield Arm(design, "with extra", "extra", on, every_step(n, both_ways, 1), every=2)


def _always(W: MixingMatrix) -> Callable[[int], MixingMatrix]:
    return lambda t: W


def formed(
    network: Network, underlay: Links, message_bytes: int, task: Task, seed: int
) -> Iterator[Arm]:
    """Clusters on the overlay that formation predicts to be fastest, for three rules."""
    devices = shared_devices(_experiment(), task, drawn(task.num_devices, seed)[1], seed)
    settings = measured_settings(_experiment(), task, seed)
    for rule in ("cta", "extra", "extra:compressor=int8"):
        size = round(message_bytes * _share(rule, task))
        own = replace(settings, message_bytes=size, corrects=find_rule(rule).corrects)
        name, on, plan = _best_overlay(network, underlay, devices, own)
        inputs = ScheduleInputs(on, clusters=plan.clusters, tau_a=TAU_A, tau_r=TAU_R, seed=seed)
        schedule = find_method("ssdfl").schedule(inputs)
        note = f"{plan.num_clusters} clusters on {name}"
        yield Arm("formed", f"ssdfl+{rule}", rule, on, schedule, TAU_A + TAU_R, note)


def _best_overlay(
    network: Network, underlay: Links, devices: Any, settings: FormationSettings
) -> tuple[str, Network, Plan]:
    """Of some overlays, the one whose plan has the least predicted time."""
    size = settings.message_bytes
    around = tour(network, size)
    links = {
        "the underlay": underlay,
        "MST": tree(network, size),
        "ring": around,
        "MST and ring": [*tree(network, size), *around],
        "near ones": near(network, size),
    }
    found = []
    for name, chosen in links.items():
        on = overlay(network, chosen)
        plan = form_clusters(on, devices, settings)
        predicted = [one.score for one in plan.candidates if one.clusters == plan.clusters]
        found.append((min(predicted), name, on, plan))
    _, name, on, plan = min(found, key=lambda one: one[0])
    return name, on, plan


def _share(rule: str, task: Task) -> float:
    """How large a rule's message is against the parameters in float32."""
    return (
        first_message(find_rule(rule), task).size_bytes
        / first_message(find_rule("cta"), task).size_bytes
    )


def _experiment() -> Any:
    return make_experiment(
        {
            "methods": ["ssdfl"],
            "data": {"labels_per_device": 2},
            "model": {"options": {"hidden": 32}},
            "training": {"learning_rate": RATE, "local_steps": 1},
            "schedule": {"tau_a": TAU_A, "tau_r": TAU_R},
            "optimizers": {"kind": "sgd"},
            "evaluate": {"every": 1, "samples": 360},
        }
    )


@cache
def digits() -> Dataset:
    """The data, read once."""
    return load_dataset("digits")


@cache
def drawn(n: int, seed: int) -> tuple[Task, tuple[Optimizer, ...]]:
    """What n silos hold, two of ten labels each, and how they train."""
    return draw(_experiment(), seed, digits(), load_network(f"ring:n={n}"))[1:]


def train(arm: Arm, seed: int) -> Row:
    """How many steps a design needs to the target, and its accuracies."""
    task, optimizers = drawn(arm.network.num_devices, seed)
    job = Job(
        task=task,
        network=arm.network,
        schedule=arm.schedule,
        rule=arm.found_rule,
        optimizers=optimizers,
        cycles=STEPS // arm.every,
        steps_per_cycle=arm.every,
        learning_rate=RATE,
        seed=seed,
    )
    scores: list[float] = []
    for record, _ in run(job, in_place=True):
        scores.append(float(record.score))
        if scores[-1] >= TARGET:
            break
    reached = len(scores) * arm.every if scores[-1] >= TARGET else math.inf
    curve = " ".join(f"{1000 * score:.0f}" for score in scores)
    return {
        "digest": arm.digest(seed),
        "steps": reached,
        "accuracy": f"{scores[-1]:.4f}",
        "curve": curve,
    }


def seconds(arm: Arm, message_bytes: int, steps: int) -> float:
    """Simulated seconds of some steps."""
    clock = Clock(arm.network, message_bytes, sends_early=arm.found_rule.early, keep=TAU_A + TAU_R)
    ready_s = np.zeros(arm.network.num_devices)
    for t in range(steps):
        step = arm.schedule(t)
        compute_s = np.where(step.train, arm.network.compute_s, 0.0)
        if arm.design == "star" and step.W.nnz > arm.network.num_devices:
            ready_s = star_step(clock, ready_s, compute_s)
        else:
            ready_s, _ = clock.advance(ready_s, step.W, compute_s)
    return float(ready_s.max())


KEY = ("network", "access", "message", "seed", "design", "variant")
FIELDS = (*KEY, "overlay", "steps", "seconds", "accuracy")


def measure(folder: Path, networks: Sequence[str], seeds: int) -> None:
    """Do what is missing."""
    use_cores(1)
    done = {tuple(row[name] for name in KEY) for row in read(RESULTS)}
    for seed, name in product(range(seeds), networks):
        underlay = read_underlay(folder, name)
        links = [tuple(link) for link in underlay.links.tolist()]
        for (access, bps), (message, size) in product(ACCESS_BPS.items(), MESSAGE_BYTES.items()):
            if sum(key[:4] == (name, access, message, str(seed)) for key in done) == ARMS:
                continue
            network = silos(underlay, bps)
            task, _ = drawn(network.num_devices, seed)
            arms = [*designs(network, links, size, seed), *formed(network, links, size, task, seed)]
            for arm in arms:
                case = dict(
                    zip(KEY, (name, access, message, seed, arm.design, arm.variant), strict=True)
                )
                if tuple(map(str, case.values())) not in done:
                    append(RESULTS, FIELDS, {**case, **timed(arm, size, task, seed)})


def timed(arm: Arm, size: int, task: Task, seed: int) -> Row:
    """Steps and seconds to the target."""
    found = trained(arm, seed)
    steps = float(found["steps"])
    if math.isfinite(steps):
        own = round(size * _share(arm.rule, task))
        spent = seconds(arm, own, int(steps))
    else:
        spent = math.inf
    return {
        "overlay": arm.note,
        "steps": f"{steps:g}",
        "seconds": f"{spent:.6g}",
        "accuracy": found["accuracy"],
    }


def trained(arm: Arm, seed: int) -> Row:
    """A training of an arm, done once for all access links and messages."""
    digest = arm.digest(seed)
    known = [row for row in read(TRAINING) if row["digest"] == digest]
    if not known:
        known = [train(arm, seed)]
        append(TRAINING, ("digest", "steps", "accuracy", "curve"), known[0])
    return known[0]


def measure_cycles(folder: Path) -> None:
    """Cycle times of the published designs by our clock, in ms."""
    CYCLES.unlink(missing_ok=True)
    size = MESSAGE_BYTES["45 Mbit"]
    for name, access in product(FILES, ("10 Gbit/s", "100 Mbit/s")):
        network = silos(read_underlay(folder, name), ACCESS_BPS[access])
        for design, time_s in design_cycles(network, size).items():
            row = {
                "network": name,
                "access": access,
                "design": design,
                "cycle_ms": f"{time_s * 1e3:.1f}",
            }
            append(CYCLES, tuple(row), row)


def design_cycles(network: Network, size: int) -> dict[str, float]:
    """Seconds of a step of star, MST and ring; a ring goes round the faster way."""

    def by_clock(links: Links, W: MixingMatrix | None) -> float:
        return cycle_s(Clock(overlay(network, links), size, sends_early=False), W)

    spanning, around = tree(network, size), tour(network, size)
    ways = (around, [(b, a) for a, b in around])
    n = network.num_devices
    return {
        "star": by_clock(star(network), None),
        "MST": by_clock(spanning, metropolis(overlay(network, spanning).adjacency)),
        "ring": min(by_clock(way, ring_matrix(n, way)) for way in ways),
    }


def read(path: Path) -> list[dict[str, str]]:
    """All lines of a table."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def append(path: Path, fields: Sequence[str], row: Row) -> None:
    """Add a line to a table."""
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerow(row)


def main() -> None:
    """Measure what the command asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--underlays", type=Path, required=True, help="folder with the five GML files"
    )
    parser.add_argument("--networks", nargs="*", default=list(FILES), help="only these")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--cycles", action="store_true", help="only the designs' cycle times")
    args = parser.parse_args()
    if args.cycles:
        measure_cycles(args.underlays)
    else:
        measure(args.underlays, args.networks, args.seeds)


if __name__ == "__main__":
    main()
