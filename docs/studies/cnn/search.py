"""Search for the settings that the paper leaves open, with its CNN on whole images.

    python docs/studies/cnn/search.py [--data FOLDER] [--at-a-time N] [--cache FOLDER] [STAGE …]

The setting is that of its tables: ten devices on a joined random network, τ_a = 1. Runs land in a
cache and are not repeated. ``search.csv`` has a row per cycle of every complete run, so an
interrupted search keeps what it found. τ_r = 5, the complete graph and all figures are held out:
nothing here looks at them.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from ssdfl.experiments.pool import Resources, run_pool
from ssdfl.files import atomic_path
from ssdfl.records import Experiment, make_experiment
from ssdfl.records.cache import run_folder, single_runs
from ssdfl.records.folder import RunFolder
from ssdfl.records.tables import is_measured

TABLE = Path(__file__).parent / "search.csv"
CYCLES = 20


@dataclass(frozen=True)
class Point:
    """One choice of what the paper leaves open.

    Attributes:
        rate, steps, batch: η, E and M.
        rule: whether devices mix and train at once (cta) or train, then mix (atc).
        momentum: momentum as printed, or damped, which moves no further than SGD.
        initial: how the CNN starts.
        norm: whether the CNN has batch normalisation, and by which statistics it is tested.
        dealing: whether labels go to devices evenly or at random (shared: all samples of a label go
            to the devices that drew it).
        links: p of G(10, p). At the paper's p = 0.1 hardly any draw is connected, so its networks
            of ten devices were either joined by single links, as ours are, or denser than stated.
    """

    rate: float
    steps: int
    batch: int
    rule: str = "cta"
    momentum: str = "momentum"
    initial: str = "he"
    norm: str = "none"
    dealing: str = "even"
    links: float = 0.1


@dataclass(frozen=True)
class Stage:
    """Points to try, and how thoroughly."""

    points: tuple[Point, ...]
    dataset: str = "fmnist"
    optimizers: tuple[str, ...] = ("sgd", "mixed")
    labels: tuple[int, ...] = (3, 1)
    tau_r: tuple[int, ...] = (1, 3)
    methods: tuple[str, ...] = ("ssdfl", "pdfl")
    seeds: tuple[int, ...] = (0,)
    tested: str = "mean"
    samples: int = 1000


def _near_the_best(dataset: str, *settings: tuple[float, int, int]) -> Stage:
    """Other η, E and M at the point that fits Fashion-MNIST best: SSD-FL, hybrid, τ_r = 3."""
    points = tuple(
        Point(rate, steps, batch, "atc", momentum="damped", links=0.3)
        for rate, steps, batch in settings
    )
    return Stage(points, dataset, optimizers=("mixed",), tau_r=(3,), methods=("ssdfl",))


def _normalised(rate: float, steps: int, batch: int, **others: Any) -> Point:
    """A point with batch normalisation and torch's initialisation, on networks as stated."""
    return Point(rate, steps, batch, **{"rule": "atc", "initial": "torch", **others}, norm="batch")


def _of_devices(
    *points: Point, methods: tuple[str, ...] = ("ssdfl",), seeds: tuple[int, ...] = (0,)
) -> Stage:
    """Points at which each device's own model is tested, too: SGD, τ_r = 1 and 3."""
    return Stage(
        points, optimizers=("sgd",), methods=methods, seeds=seeds, tested="all", samples=300
    )


def _of_cifar10(*points: Point, tau_r: tuple[int, ...] = (3,)) -> Stage:
    """The same on CIFAR10."""
    return replace(_of_devices(*points), dataset="cifar10", tau_r=tau_r, samples=500)


def _denser(rate: float, steps: int, batch: int, links: float, rule: str = "atc") -> Point:
    """A normalised point on networks with more links than stated."""
    return _normalised(rate, steps, batch, rule=rule, momentum="damped", links=links)


def _drawn(rate: float, steps: int, batch: int, links: float) -> Point:
    """A point with labels drawn at random and statistics of the batch at hand."""
    return replace(_denser(rate, steps, batch, links), norm="current", dealing="shared")


STAGES = {
    "joined": Stage(
        (
            Point(0.03, 20, 10, "cta"),
            Point(0.01, 20, 10, "cta"),
            Point(0.03, 20, 10, "atc"),
            Point(0.03, 10, 16, "atc"),
            Point(0.03, 5, 32, "atc"),
        ),
        tau_r=(1,),
        methods=("ssdfl",),
    ),
    "denser": Stage(
        (
            Point(0.03, 10, 16, "atc", links=0.3),
            Point(0.01, 10, 16, "atc", links=0.3),
            Point(0.03, 5, 32, "atc", links=0.3),
            Point(0.03, 10, 16, "atc", momentum="damped", links=0.3),
            Point(0.03, 10, 16, "atc", links=0.2),
        ),
        tau_r=(3,),
        methods=("ssdfl",),
    ),
    "cifar10": _near_the_best(
        "cifar10", (0.03, 20, 16), (0.05, 20, 16), (0.05, 10, 32), (0.1, 10, 16)
    ),
    "longer": _near_the_best(
        "cifar10", (0.03, 50, 16), (0.03, 50, 8), (0.01, 50, 8), (0.005, 50, 8)
    ),
    "slower": _near_the_best("cifar10", (0.003, 20, 8), (0.005, 20, 8), (0.003, 50, 8)),
    "smooth": _near_the_best(
        "fmnist", (0.005, 20, 8), (0.01, 20, 8), (0.003, 50, 8), (0.01, 10, 16)
    ),
    "normalised": Stage(
        (
            _normalised(0.01, 5, 16),
            _normalised(0.01, 5, 16, momentum="damped"),
            _normalised(0.01, 5, 16, rule="cta"),
        ),
        tau_r=(3,),
        methods=("ssdfl",),
    ),
    "normalised-steps": Stage(
        (_normalised(0.005, 10, 8, rule="cta"),),
        tau_r=(3,),
        methods=("ssdfl",),
    ),
    "normalised-damped": Stage(
        tuple(
            _normalised(*settings, rule="cta", momentum="damped")
            for settings in ((0.01, 5, 16), (0.003, 10, 8), (0.005, 7, 12), (0.005, 10, 8))
        ),
        tau_r=(3,),
        methods=("ssdfl",),
    ),
    "normalised-seeds": Stage(
        tuple(
            _normalised(*settings, rule="cta", momentum="damped")
            for settings in ((0.005, 7, 12), (0.002, 10, 8), (0.003, 10, 8), (0.003, 7, 12))
        ),
        tau_r=(3,),
        methods=("ssdfl",),
        seeds=(0, 1, 2),
    ),
    "normalised-cifar10": Stage(
        (_normalised(0.01, 5, 16, rule="cta", momentum="damped"),),
        "cifar10",
        tau_r=(3,),
        methods=("ssdfl",),
    ),
    "devices": _of_devices(
        _denser(0.005, 7, 12, 0.5, "cta"),
        _denser(0.003, 7, 12, 0.5),
        _denser(0.003, 10, 8, 0.4),
        Point(0.03, 10, 16, "atc", momentum="damped", links=0.5),
        methods=("ssdfl", "pdfl"),
    ),
    "devices-links": _of_devices(
        _denser(0.005, 7, 12, 0.5),
        _denser(0.002, 10, 8, 0.3),
        _denser(0.002, 10, 8, 0.4),
        _denser(0.002, 10, 8, 0.5),
        _denser(0.007, 10, 8, 0.4),
        _denser(0.01, 10, 16, 0.3),
        _denser(0.01, 10, 16, 0.4),
        _denser(0.01, 10, 16, 0.5),
        _denser(0.01, 10, 8, 0.7),
    ),
    "devices-seeds": Stage(
        (_denser(0.003, 7, 12, 0.5),),
        optimizers=("sgd",),
        seeds=(1, 2),
        tested="all",
        samples=500,
    ),
    "devices-plain": _of_devices(
        *(
            Point(*settings, "atc", links=0.5)
            for settings in ((0.05, 2, 16), (0.15, 2, 16), (0.05, 5, 16), (0.02, 5, 16))
        )
    ),
    "devices-few-steps": _of_devices(
        *(
            _normalised(*settings, links=0.5)
            for settings in ((0.01, 2, 16), (0.03, 2, 16), (0.01, 3, 12))
        )
    ),
    "devices-faster": _of_devices(
        *(_denser(0.01, 7, 12, links) for links in (0.3, 0.4)),
        methods=("ssdfl", "pdfl"),
        seeds=(0, 1, 2),
    ),
    "devices-steps": _of_devices(
        *(
            _denser(*settings)
            for settings in (
                (0.002, 20, 8, 0.5),
                (0.003, 10, 10, 0.5),
                (0.005, 10, 10, 0.4),
                (0.03, 20, 10, 0.5),
                (0.03, 20, 10, 0.7),
                (0.1, 10, 10, 0.5),
            )
        ),
        seeds=(0, 1),
    ),
    "devices-current": _of_devices(
        *(
            replace(_denser(*settings), norm="current")
            for settings in (
                (0.01, 7, 12, 0.1),
                (0.003, 7, 12, 0.3),
                (0.01, 7, 12, 0.3),
                (0.003, 7, 12, 0.4),
                (0.006, 7, 12, 0.4),
                (0.003, 7, 12, 0.5),
                (0.002, 10, 8, 0.5),
            )
        ),
        seeds=(0, 1),
    ),
    "devices-dealing": _of_devices(
        *(
            replace(_denser(*settings), dealing="shared")
            for settings in ((0.003, 7, 12, 0.5), (0.01, 7, 12, 0.4))
        ),
        seeds=(0, 1),
    ),
    "devices-dealing-current": _of_devices(
        _drawn(0.01, 7, 12, 0.4),
        _drawn(0.003, 7, 12, 0.5),
        _drawn(0.01, 7, 12, 0.5),
        _drawn(0.01, 7, 12, 0.6),
        _drawn(0.01, 7, 12, 0.7),
        _drawn(0.006, 7, 12, 0.7),
        _drawn(0.03, 7, 12, 0.5),
        seeds=(0, 1),
    ),
    "devices-dealing-leads": _of_devices(
        _drawn(0.01, 7, 12, 0.5),
        _drawn(0.01, 7, 12, 0.1),
        methods=("ssdfl", "pdfl"),
        seeds=(0, 1, 2),
    ),
    "devices-dealing-faster": _of_devices(
        _drawn(0.015, 7, 12, 0.5),
        _drawn(0.02, 7, 12, 0.5),
        methods=("ssdfl", "pdfl"),
        seeds=(0, 1, 2),
    ),
    "devices-dealing-cifar10": _of_cifar10(_drawn(0.01, 10, 16, 0.5), _drawn(0.03, 10, 16, 0.5)),
    "devices-cifar10": _of_cifar10(
        _denser(0.003, 7, 12, 0.5),
        _denser(0.01, 5, 16, 0.5),
        _denser(0.01, 10, 16, 0.5),
        _denser(0.005, 20, 8, 0.5),
    ),
    "devices-cifar10-between": _of_cifar10(_denser(0.01, 7, 16, 0.5), tau_r=(3, 1)),
    "leads": Stage(
        (
            Point(0.03, 10, 16, "atc", momentum="damped", links=0.3),
            Point(0.03, 10, 16, "atc", momentum="damped", links=0.2),
        ),
        methods=("ssdfl", "pdfl", "stc"),
        seeds=(0, 1),
    ),
}


def runs_of(stage: Stage) -> Iterator[tuple[dict[str, object], Experiment]]:
    """Every run of one method and seed of a stage, and what it is called in the table."""
    for point, optimizers, labels, tau_r in product(
        stage.points, stage.optimizers, stage.labels, stage.tau_r
    ):
        experiment = _experiment(stage, point, optimizers, labels, tau_r)
        for one in single_runs(experiment):
            what = {
                "dataset": stage.dataset,
                **asdict(point),
                "optimizers": optimizers,
                "labels": labels,
                "tau_r": tau_r,
                "method": one.methods[0].partition("+")[0],
                "seed": one.seeds[0],
            }
            yield what, one


def _experiment(stage: Stage, point: Point, optimizers: str, labels: int, tau_r: int) -> Experiment:
    values = {
        "name": "search",
        "methods": [f"{method}+{point.rule}" for method in stage.methods],
        "seeds": list(stage.seeds),
        "cycles": CYCLES,
        "network": {"spec": f"er:n=10,p={point.links:g}"},
        "clusters": {"partition": "paper", "score": "stationarity"},
        "schedule": {"tau_a": 1, "tau_r": tau_r},
        "data": {
            "name": stage.dataset,
            "labels_per_device": labels,
            "label_dealing": point.dealing,
        },
        "model": {"name": "cnn", "options": _model_options(point)},
        "optimizers": {"kind": optimizers, "mix": ["sgd", point.momentum, "proximal"]},
        "training": {
            "learning_rate": point.rate,
            "local_steps": point.steps,
            "batch_size": point.batch,
        },
        "evaluate": {"every": 1, "samples": stage.samples, "models": stage.tested},
    }
    return make_experiment(values)


def _model_options(point: Point) -> dict[str, str]:
    """Without the default, so that runs are named as before it existed."""
    norm = {} if point.norm == "none" else {"norm": point.norm}
    return {"initial": point.initial, **norm}


def rows_of(what: dict[str, object], folder: RunFolder) -> Iterator[dict[str, object]]:
    """A run's rows of the table, with the plan that its clusters came from."""
    (seed,), (method,) = folder.experiment().seeds, folder.experiment().methods
    plan = folder.plan(seed)
    for row in folder.read_rows(seed, method):
        yield {
            **what,
            "clusters": plan.num_clusters if plan else "",
            "choice": plan.choice if plan else "",
            "cycle": row["cycle"],
            "average_model_accuracy": round(row["average_model_score"], 4),
            "accuracy_of_devices": round(row["score"], 4) if is_measured(row) else "",
        }


def write(rows: list[dict[str, object]]) -> None:
    """Add rows to the table, each once, in an order that does not depend on when runs ended."""
    found = {tuple(row.values()): row for row in [*_known(), *map(_as_text, rows)]}
    ordered = sorted(found.values(), key=lambda row: (*list(row.values())[:-3], int(row["cycle"])))
    with atomic_path(TABLE) as path, path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(ordered[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(ordered)


def _known() -> list[dict[str, str]]:
    if not TABLE.exists():
        return []
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _as_text(row: dict[str, object]) -> dict[str, str]:
    return {key: str(value) for key, value in row.items()}


def main() -> None:
    """Run stages and write their records."""
    parser = argparse.ArgumentParser(description="Search for what the paper does not state.")
    parser.add_argument(
        "stages", nargs="*", metavar="STAGE", help=f"of {', '.join(STAGES)}; all by default"
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--cache", type=Path, default=Path("runs/cache"))
    parser.add_argument("--at-a-time", type=int, default=0)
    options = parser.parse_args()
    for name in options.stages or STAGES:
        runs = {
            run_folder(one, options.cache).path: (what, one) for what, one in runs_of(STAGES[name])
        }
        experiments = [one for _, one in runs.values()]
        resources = Resources(options.at_a_time)
        finished = run_pool(experiments, options.cache, resources=resources, data=options.data)
        for number, done in enumerate(finished, start=1):
            what, _ = runs[done.folder.path]
            print(
                f"{name} {number}/{len(runs)} {what}: {done.seconds:.0f} s {done.error}", flush=True
            )
            if not done.error:
                write(list(rows_of(what, done.folder)))


if __name__ == "__main__":
    main()
