"""Train in bf16 and in float32, and compare the curves: is their difference within seed noise?

    python docs/studies/precision/precisions.py [--data FOLDER] [--at-a-time N] [--cache FOLDER]
    python docs/studies/precision/precisions.py --show      # the table of the page, from curves.csv

Both precisions share networks, shards, first parameters and batches. Runs land in a cache and are
not repeated; ``curves.csv`` has a row per run and cycle of all runs that have ended.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from ssdfl.experiments.pool import Resources, run_pool
from ssdfl.files import atomic_path
from ssdfl.records import Experiment, make_experiment
from ssdfl.records.cache import run_folder, single_runs

TABLE = Path(__file__).parent / "curves.csv"
PRECISIONS = ("float32", "bf16")
SEEDS = (0, 1, 2)
CYCLES = 20
LAST = 5
"""Cycles whose mean is the final accuracy, since curves of few devices rise and fall."""
MODELS: dict[str, dict[str, object]] = {
    "mlp": {"name": "mlp"},
    "cnn": {"name": "cnn", "options": {"initial": "he"}},
}


def experiments() -> Iterator[tuple[str, str, Experiment]]:
    """Every run: its model, its precision and the experiment of one seed."""
    for model, settings in MODELS.items():
        for precision in PRECISIONS:
            values = {
                "name": "precision",
                "methods": ["ssdfl+atc"],
                "seeds": list(SEEDS),
                "cycles": CYCLES,
                "network": {"spec": "er:n=6,p=0.5"},
                "schedule": {"tau_a": 1, "tau_r": 1},
                "data": {"name": "fmnist", "labels_per_device": 3},
                "model": settings,
                "optimizers": {"kind": "mixed", "mix": ["sgd", "damped", "proximal"]},
                "training": {"learning_rate": 0.03, "local_steps": 5, "batch_size": 16},
                "evaluate": {"every": 1, "samples": 1000, "models": "mean"},
                "engine": {"precision": precision},
            }
            for one in single_runs(make_experiment(values)):
                yield model, precision, one


def measure(cache: Path, data: Path | None, at_a_time: int) -> None:
    """Run what is missing, and write the rows of each run as it ends."""
    runs = {run_folder(one, cache).path: (model, kind, one) for model, kind, one in experiments()}
    alone = [one for _, _, one in runs.values()]
    for done in run_pool(alone, cache, resources=Resources(at_a_time), data=data):
        model, precision, one = runs[done.folder.path]
        print(f"{model} {precision} seed {one.seeds[0]}: {done.seconds:.0f} s {done.error}")
        if not done.error:
            rows = done.folder.read_rows(one.seeds[0], one.methods[0])
            _write([_row(model, precision, one.seeds[0], row) for row in rows])


def _row(model: str, precision: str, seed: int, row: dict[str, float]) -> dict[str, str]:
    accuracy = f"{row['average_model_score']:.4f}"
    cycle = str(int(row["cycle"]))
    values = (model, precision, str(seed), cycle, accuracy)
    return dict(zip(("model", "precision", "seed", "cycle", "accuracy"), values, strict=True))


def _write(rows: list[dict[str, str]]) -> None:
    found = {tuple(row.values())[:-1]: row for row in [*read(), *rows]}
    ordered = sorted(found.values(), key=lambda row: [*list(row.values())[:3], int(row["cycle"])])
    with atomic_path(TABLE) as path, path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(ordered[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(ordered)


def read() -> list[dict[str, str]]:
    """All rows there are."""
    if not TABLE.exists():
        return []
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def curves(rows: list[dict[str, str]], model: str, precision: str) -> np.ndarray:
    """Accuracy by seed and cycle."""
    chosen = [row for row in rows if (row["model"], row["precision"]) == (model, precision)]
    seeds = sorted({row["seed"] for row in chosen})
    return np.array([[float(r["accuracy"]) for r in chosen if r["seed"] == s] for s in seeds])


def compare(rows: list[dict[str, str]], model: str) -> dict[str, float]:
    """How far the precisions are apart on a seed, and how far seeds are apart in float32."""
    exact, short = (curves(rows, model, precision) for precision in PRECISIONS)
    ends = exact[:, -LAST:].mean(1), short[:, -LAST:].mean(1)
    return {
        "float32": float(ends[0].mean()),
        "bf16": float(ends[1].mean()),
        "apart": float(np.abs(short - exact).mean()),
        "seeds": float(np.mean([np.abs(a - b).mean() for a, b in _pairs(exact)])),
        "end": float((ends[1] - ends[0]).mean()),
        "end_seeds": float(ends[0].std(ddof=1)),
    }


def _is_complete(rows: list[dict[str, str]], model: str) -> bool:
    """Whether all seeds of a model have been run in both precisions."""
    return all(len(curves(rows, model, precision)) == len(SEEDS) for precision in PRECISIONS)


def _pairs(rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(a, b) for place, a in enumerate(rows) for b in rows[place + 1 :]]


def table() -> str:
    """The page's table."""
    rows = read()
    lines = [
        "| model | float32 % | bf16 % | bf16 − float32 | seeds differ by | curves, same seed "
        "| curves, two seeds |",
        "|---|---|---|---|---|---|---|",
    ]
    for model in filter(partial(_is_complete, rows), MODELS):
        found = {name: 100 * value for name, value in compare(rows, model).items()}
        lines.append(
            f"| {model} | {found['float32']:.1f} | {found['bf16']:.1f} | {found['end']:+.1f} "
            f"| {found['end_seeds']:.1f} | {found['apart']:.1f} | {found['seeds']:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, or show what was measured."""
    parser = argparse.ArgumentParser(description="Compare training in bf16 and in float32.")
    parser.add_argument("--show", action="store_true", help="print the table and run nothing")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--cache", type=Path, default=Path("runs/cache"))
    parser.add_argument("--at-a-time", type=int, default=1)
    options = parser.parse_args()
    if not options.show:
        measure(options.cache, options.data, options.at_a_time)
    print(table())


if __name__ == "__main__":
    main()
