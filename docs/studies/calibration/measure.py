"""Measure what settings that the paper leaves open give in the setting of its tables.

    python docs/studies/calibration/measure.py [fmnist|cifar10] [--data FOLDER] [--workers N]

Runs land in ``runs/cache`` and are not repeated; ``<data set>.csv`` has one row per setting, method, seed and
cycle, with both readings of accuracy. Images have half their height and width, as in the small profile.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from ssdfl.experiments import Experiment, make_experiment
from ssdfl.experiments.pool import CACHE, Resources, run_folder, run_pool, single_runs
from ssdfl.files import atomic_path

HERE = Path(__file__).parent
GRIDS = {
    "fmnist": [
        ("he", 0.1, 10),
        ("he", 0.03, 20),
        ("he", 0.1, 20),
        ("he", 0.03, 50),
        ("he", 0.1, 50),
        ("torch", 0.1, 20),
    ],
    "cifar10": [("he", 0.03, 20), ("he", 0.1, 20)],
}
BATCH = 10
SEEDS = [0, 1]
CYCLES = 20


def settings(dataset: str) -> Iterator[tuple[dict[str, object], Experiment]]:
    """Every point of the grid with its experiment: N = 10, τ_a = τ_r = 1, hybrid optimizers."""
    for (initial, rate, steps), labels in product(GRIDS[dataset], (3, 1)):
        point = {"initial": initial, "rate": rate, "steps": steps, "batch": BATCH, "labels": labels}
        values = {
            "name": "calibration",
            "methods": ["ssdfl", "pdfl"],
            "seeds": SEEDS,
            "cycles": CYCLES,
            "network": {"spec": "er:n=10,p=0.1"},
            "clusters": {"partition": "paper", "score": "stationarity"},
            "schedule": {"tau_a": 1, "tau_r": 1},
            "data": {"name": f"{dataset}-half", "labels_per_device": labels},
            "model": {"name": "cnn", "options": {"initial": initial}},
            "training": {"learning_rate": rate, "local_steps": steps, "batch_size": BATCH},
            "evaluate": {"every": 1, "samples": 500},
        }
        yield point, make_experiment(values)


def main() -> None:
    """Run the grid and write its records."""
    parser = argparse.ArgumentParser(description="Calibrate what the paper does not state.")
    parser.add_argument("dataset", nargs="?", default="fmnist", choices=GRIDS)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--workers", type=int, default=0)
    options = parser.parse_args()
    points = {}
    for point, experiment in settings(options.dataset):
        for one in single_runs(experiment):
            points[run_folder(one, CACHE).path] = (point, one)
    rows: list[dict[str, object]] = []
    runs = [one for _, one in points.values()]
    finished = run_pool(runs, CACHE, resources=Resources(options.workers), data=options.data)
    for number, done in enumerate(finished, start=1):
        point, one = points[done.folder.path]
        method, seed = one.methods[0], one.seeds[0]
        print(f"{number}/{len(runs)} {point} {method} {seed}: {done.seconds:.0f} s {done.error}", flush=True)
        rows += [
            {
                **point,
                "method": method,
                "seed": seed,
                "cycle": row["cycle"],
                "accuracy": round(row["accuracy"], 4),
                "average_model_accuracy": round(row["average_model_accuracy"], 4),
            }
            for row in done.folder.read_rows(seed, method)
        ]
    with (
        atomic_path(HERE / f"{options.dataset}.csv") as path,
        path.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: str(list(row.values())[:7]) + f"{row['cycle']:3}"))


if __name__ == "__main__":
    main()
