"""Try settings that the paper leaves open, in the setting of its tables.

    python docs/studies/calibration/measure.py [GRID] [--data FOLDER] [--workers N]

GRID is fmnist-mlp, fmnist-cnn or another of `GRIDS`.

Runs land in ``runs/cache`` and are not repeated; ``<grid>.csv`` has a row per setting, method, seed
and cycle, with both readings of accuracy. Images have half their height and width, as in every
profile except ``paper``.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from ssdfl.cli.pool import CACHE
from ssdfl.experiments.pool import Resources, run_pool
from ssdfl.files import atomic_path
from ssdfl.records import Experiment, make_experiment
from ssdfl.records.cache import run_folder, single_runs

HERE = Path(__file__).parent
CYCLES = 20


@dataclass(frozen=True)
class Grid:
    """Settings to try: of the model, and η, E and M."""

    model: dict[str, object]
    points: list[tuple[float, int, int]]
    tau_r: tuple[int, ...] = (1, 3)
    methods: tuple[str, ...] = ("ssdfl", "sdfl", "pdfl")
    seeds: tuple[int, ...] = (0, 1, 2)


MLP: dict[str, object] = {"name": "mlp", "options": {}}
CNN: dict[str, object] = {"name": "cnn", "options": {"initial": "he"}}
GRIDS = {
    "fmnist-mlp": Grid(
        MLP, [*product((0.01, 0.02, 0.03, 0.05, 0.1), (1, 2, 5, 20), (32,)), (0.03, 5, 10)]
    ),
    "cifar10-mlp": Grid(MLP, [*product((0.01, 0.03, 0.1), (1, 5, 20), (32,))]),
    "fmnist-cnn": Grid(
        CNN,
        [(0.1, 10, 10), (0.03, 20, 10), (0.1, 20, 10)],
        tau_r=(1,),
        methods=("ssdfl", "pdfl"),
        seeds=(0, 1),
    ),
}


def settings(name: str) -> Iterator[tuple[dict[str, object], Experiment]]:
    """Every point of a grid with its experiment: N = 10, τ_a = 1, hybrid, mild and extreme."""
    grid = GRIDS[name]
    for (rate, steps, batch), labels, tau_r in product(grid.points, (3, 1), grid.tau_r):
        point: dict[str, object] = {
            "rate": rate,
            "steps": steps,
            "batch": batch,
            "labels": labels,
            "tau_r": tau_r,
        }
        values = {
            "name": "calibration",
            "methods": list(grid.methods),
            "seeds": list(grid.seeds),
            "cycles": CYCLES,
            "network": {"spec": "er:n=10,p=0.1"},
            "clusters": {"partition": "paper", "score": "stationarity"},
            "schedule": {"tau_a": 1, "tau_r": tau_r},
            "data": {"name": f"{name.split('-')[0]}-half", "labels_per_device": labels},
            "model": grid.model,
            "training": {"learning_rate": rate, "local_steps": steps, "batch_size": batch},
            "evaluate": {"every": 1, "samples": 500},
        }
        yield point, make_experiment(values)


def main() -> None:
    """Run the grid and write its records."""
    parser = argparse.ArgumentParser(description="Calibrate what the paper does not state.")
    parser.add_argument("grid", nargs="?", default="fmnist-mlp", choices=GRIDS)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--workers", type=int, default=0)
    options = parser.parse_args()
    points = {}
    for point, experiment in settings(options.grid):
        for one in single_runs(experiment):
            points[run_folder(one, CACHE).path] = (point, one)
    rows: list[dict[str, object]] = []
    runs = [one for _, one in points.values()]
    finished = run_pool(runs, CACHE, resources=Resources(options.workers), data=options.data)
    for number, done in enumerate(finished, start=1):
        point, one = points[done.folder.path]
        method, seed = one.methods[0], one.seeds[0]
        print(
            f"{number}/{len(runs)} {point} {method} {seed}: {done.seconds:.0f} s {done.error}",
            flush=True,
        )
        rows += [
            {
                **point,
                "method": method,
                "seed": seed,
                "cycle": row["cycle"],
                "accuracy": round(row["score"], 4),
                "average_model_accuracy": round(row["average_model_score"], 4),
            }
            for row in done.folder.read_rows(seed, method)
        ]
    with (
        atomic_path(HERE / f"{options.grid}.csv") as path,
        path.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            sorted(rows, key=lambda row: str(list(row.values())[:7]) + f"{row['cycle']:3}")
        )


if __name__ == "__main__":
    main()
