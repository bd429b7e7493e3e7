"""A whole run of many devices, stage by stage, from data to resumption, and how each grows.

    python benchmarks/devices.py                       # 1,000 and 10,000 devices, some minutes
    python benchmarks/devices.py 1000 10000 100000     # 100,000, too: a quarter of an hour more
    python benchmarks/devices.py 1000 --json

Sites of ten devices with the digits' MLP, τ_a = 5 and otherwise the default experiment: what
`ssdfl run` does with SSD-FL, stage by stage. Each number of devices has a process of its own, so
that its memory can be measured. The data are the digits, repeated as often as needed, with noise.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from engine import elsewhere, peak_memory
from ssdfl.cli.results import present
from ssdfl.clusters import write_plan
from ssdfl.experiments import run_experiment
from ssdfl.learning import Dataset, load_data, make_dataset
from ssdfl.preparation import prepare
from ssdfl.records import Experiment, load_experiment
from ssdfl.records.folder import RunFolder
from ssdfl.rng import generator

SITE = 10
SAMPLES = 16
SIZES = (1000, 10_000)


@dataclass(frozen=True)
class Stage:
    """What a stage of a run took: wall and processor seconds, and the peak memory by its end."""

    name: str
    seconds: float
    cpu_s: float
    peak_gb: float


def experiment_of(num_devices: int, cycles: int, *more: str) -> Experiment:
    """The default experiment with SSD-FL alone on sites of ten devices."""
    settings = [
        f"network.spec=sites:sites={num_devices // SITE},size={SITE},seed=0",
        f"cycles={cycles}",
        "schedule.tau_a=5",
        "name=many",
        *more,
    ]
    return load_experiment(None, settings, {"methods": ["ssdfl"], "seeds": [0]})


def digits_like(num_devices: int) -> Dataset:
    """Sixteen samples a device: digits with noise."""
    digits = load_data(Experiment().data)
    rng = generator(0, "benchmark")
    drawn = rng.integers(len(digits.train_targets), size=SAMPLES * num_devices)
    images = np.asarray(digits.train_inputs, dtype=np.float32)[drawn]
    images += 0.1 * rng.standard_normal(images.shape, dtype=np.float32)
    train = images, np.asarray(digits.train_targets)[drawn]
    return make_dataset(train, (np.asarray(digits.test_inputs), np.asarray(digits.test_targets)))


def whole_run(num_devices: int, cycles: int) -> list[Stage]:
    """Every stage of a run."""
    stages: list[Stage] = []

    def timed(name: str, work: Callable[[], Any]) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        took = time.perf_counter() - wall, time.process_time() - cpu
        stages.append(Stage(name, *took, peak_memory() / 1e9))
        print(f"  {num_devices:,}: {stages[-1]}", flush=True)
        return result

    with tempfile.TemporaryDirectory() as place:
        out, plan = Path(place) / "run", Path(place) / "plan.json"
        experiment = experiment_of(num_devices, cycles)
        data = timed("data", lambda: digits_like(num_devices))
        timed("plan", lambda: write_plan(prepare(experiment, 0, data).plans[0], plan))
        planned = experiment_of(num_devices, cycles, f"clusters.plan={plan}")
        timed("run", lambda: run_experiment(planned, out, data=data))
        timed("report", lambda: quietly(present, RunFolder(out), as_json=True))
        timed("resume", lambda: run_experiment(planned, out, data=data, resume=True))
    return stages


def quietly(work: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Call a function without showing what it prints."""
    with redirect_stdout(StringIO()):
        work(*arguments, **options)


def growth(sizes: Sequence[int], values: Sequence[float]) -> float:
    """e of value ~ N^e, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def table(found: dict[int, list[Stage]]) -> list[str]:
    """Markdown: a row for each stage, seconds and CPU seconds for each N, and the exponent."""
    sizes = list(found)
    header = ["stage", *(f"N = {n:,}: s (CPU s), GB" for n in sizes), "growth of time", "of memory"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for stages in zip(*found.values(), strict=True):
        cells = [f"{one.seconds:.1f} ({one.cpu_s:.1f}), {one.peak_gb:.2f}" for one in stages]
        if len(sizes) > 1:
            cells.append(f"N^{growth(sizes, [one.seconds for one in stages]):.2f}")
            cells.append(f"N^{growth(sizes, [one.peak_gb for one in stages]):.2f}")
        lines.append(f"| {' | '.join([stages[0].name, *cells])} |")
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Whole runs of many devices.")
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, help="numbers of devices")
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    found = {n: elsewhere(whole_run, n, arguments.cycles) for n in arguments.sizes}
    if arguments.json:
        print(
            json.dumps(
                {n: [asdict(one) for one in stages] for n, stages in found.items()}, indent=1
            )
        )
    else:
        print("\n".join(table(found)))


if __name__ == "__main__":
    main()
