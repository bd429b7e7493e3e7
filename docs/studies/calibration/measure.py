"""Measure what a grid of η, E and M gives in the setting of the paper's tables.

    python docs/studies/calibration/measure.py [--stage coarse|fine|…] [--data FOLDER] [--workers N]

Runs land in ``runs/cache`` and are not repeated; ``measurements.csv`` has one row per setting, method, seed and
cycle, with both readings of accuracy.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from ssdfl.experiments import Experiment, make_experiment
from ssdfl.experiments.pool import CACHE, run_folder, run_pool, single_runs
from ssdfl.files import atomic_path

HERE = Path(__file__).parent
STAGES = {
    "coarse": dict(
        rates=(0.01, 0.03, 0.1), works=((10, 10), (5, 32), (20, 32)), labels=(3, 1), tau_r=(1,), seeds=2
    ),
}


def settings(stage: str) -> Iterator[tuple[dict[str, object], Experiment]]:
    grid = STAGES[stage]
    for rate, (steps, batch), labels, tau_r in product(
        grid["rates"], grid["works"], grid["labels"], grid["tau_r"]
    ):
        point = {"rate": rate, "steps": steps, "batch": batch, "labels": labels, "tau_r": tau_r}
        yield (
            point,
            make_experiment(
                {
                    "name": "calibration",
                    "methods": ["ssdfl", "pdfl"],
                    "seeds": list(range(grid["seeds"])),
                    "cycles": 20,
                    "network": {"spec": "er:n=10,p=0.1"},
                    "clusters": {"number": 4},
                    "schedule": {"tau_a": 1, "tau_r": tau_r},
                    "data": {"name": "fmnist-half", "labels_per_device": labels},
                    "model": {"name": "cnn"},
                    "training": {"learning_rate": rate, "local_steps": steps, "batch_size": batch},
                    "evaluate": {"every": 1, "samples": 500},
                }
            ),
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stage", default="coarse", choices=STAGES)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--workers", type=int, default=0)
    options = parser.parse_args()
    points = {}
    for point, experiment in settings(options.stage):
        for one in single_runs(experiment):
            points[run_folder(one, CACHE).path] = (point, one)
    rows = []
    runs = [one for _, one in points.values()]
    for number, done in enumerate(run_pool(runs, CACHE, workers=options.workers, data=options.data), start=1):
        point, one = points[done.folder.path]
        method, seed = one.methods[0], one.seeds[0]
        print(f"{number}/{len(runs)} {point} {method} {seed}: {done.seconds:.0f} s {done.error}", flush=True)
        for row in done.folder.read_rows(seed, method):
            rows.append(
                {
                    **point,
                    "method": method,
                    "seed": seed,
                    "cycle": row["cycle"],
                    "devices": round(row["accuracy"], 4),
                    "mean_model": round(row["average_model_accuracy"], 4),
                }
            )
        with atomic_path(HERE / f"{options.stage}.csv") as path, path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]) if rows else [])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
