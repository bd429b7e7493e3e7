"""What recording gaps, gradients and losses of clusters adds to a run, as a ratio.

    python benchmarks/gaps.py

Runs of a model with and without recording alternate; the least time of each counts.
"""

import argparse
import time
from dataclasses import replace

from ssdfl.engine import Job, run
from ssdfl.learning import load_dataset
from ssdfl.preparation import make_job, prepare
from ssdfl.records import make_experiment


def job_of(model: str, cycles: int) -> Job:
    """The default experiment's SSD-FL job with another model."""
    experiment = make_experiment({"model": {"name": model}, "cycles": cycles})
    return make_job(experiment, prepare(experiment, 0, load_dataset("digits")), "ssdfl")


def seconds(job: Job) -> float:
    """How long a job takes."""
    start = time.perf_counter()
    for _ in run(job):
        pass
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What recording gaps adds to a run.")
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    print("| model | seconds | with gaps | ratio |")
    print("|---|---|---|---|")
    for model, cycles in (("logreg", 20), ("mlp", 20), ("cnn", 2)):
        plain = job_of(model, cycles)
        recorded = replace(
            plain, gap_clusters=tuple(tuple(range(5 * s, 5 * s + 5)) for s in range(4))
        )
        times = [(seconds(plain), seconds(recorded)) for _ in range(repeats)]
        without, with_gaps = (min(column) for column in zip(*times, strict=True))
        print(f"| {model} | {without:.3f} | {with_gaps:.3f} | {with_gaps / without:.3f} |")


if __name__ == "__main__":
    main()
