"""How time and memory of the `local` engine grow with N and d, and what a simulated second costs.

    python benchmarks/scaling.py                       # two tables, a few minutes
    python benchmarks/scaling.py --quick               # small sizes only
    python benchmarks/scaling.py --figure growth.png   # and a picture

Every size runs in its own process, so that its memory is its own. Exponents are slopes of straight
lines through the logarithms of the larger half of the sizes.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from engine import DIGITS, TAU_A, elsewhere, make_job, peak_memory
from ssdfl.engine import run

DEVICES = (10, 30, 100, 300, 1000, 3000, 10_000)
HIDDEN = (8, 32, 128, 512, 2048, 8192)
DEVICES_OF_HIDDEN = 50
BUSY_S = 1.0


@dataclass(frozen=True)
class Size:
    """What one size took.

    Attributes:
        cycle_s: real seconds of a cycle.
        device_step_us: real microseconds of one device's training step, everything else shared out.
        memory_mb: peak memory beyond what was there before the run.
        matrices: the same in numbers N · d.
        simulated_s: seconds of a cycle on the simulated network.
    """

    num_devices: int
    num_parameters: int
    cycle_s: float
    device_step_us: float
    memory_mb: float
    matrices: float
    simulated_s: float


def measure(num_devices: int, hidden: int) -> Size:
    """Cycles of the mlp for about a second, after warming up and after torch has loaded."""
    list(islice(run(make_job("mlp", DIGITS, 20, method="sdfl")), 5))
    job = make_job("mlp", DIGITS, num_devices, method="sdfl", options={"hidden": hidden})
    before = peak_memory(reset=True)
    cycles = run(job, in_place=True)
    list(islice(cycles, 5))
    times: list[float] = []
    while sum(times) < BUSY_S or len(times) < 3:
        start = time.perf_counter()
        record, _ = next(cycles)
        times.append(time.perf_counter() - start)
    grown = peak_memory() - before
    d = job.task.num_parameters
    return Size(
        num_devices,
        d,
        min(times),
        1e6 * min(times) / (TAU_A * num_devices),
        grown / 1e6,
        grown / (4 * num_devices * d),
        record.time_s / record.cycle,
    )


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent of growth over the larger half."""
    half = len(x) // 2
    return float(np.polyfit(np.log(x[half:]), np.log(y[half:]), 1)[0])


def exponents(sizes: Sequence[Size], along: str) -> dict[str, float]:
    """How time and memory grow along devices or parameters."""
    x = [getattr(size, along) for size in sizes]
    return {
        name: slope(x, [getattr(size, name) for size in sizes]) for name in ("cycle_s", "memory_mb")
    }


def table(sizes: Sequence[Size], growth: dict[str, float], along: str) -> Iterator[str]:
    """Markdown."""
    columns = (
        "N",
        "d",
        "real s a cycle",
        "µs a device's step",
        "MB",
        "in N · d numbers",
        "simulated s / real s",
    )
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for size in sizes:
        cells = (
            f"{size.num_devices:,}",
            f"{size.num_parameters:,}",
            f"{size.cycle_s:.3g}",
            f"{size.device_step_us:.3g}",
            f"{size.memory_mb:.3g}",
            f"{size.matrices:.2f}",
            f"{size.simulated_s / size.cycle_s:.3g}",
        )
        yield f"| {' | '.join(cells)} |"
    powers = [f"{along}^{growth[name]:.2f}" for name in ("cycle_s", "memory_mb")]
    yield f"\nTime grows as {powers[0]}, memory as {powers[1]}.\n"


def draw(studies: dict[str, list[Size]], path: Path) -> None:
    """Time and memory against N and against d, on logarithmic scales."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, (along, sizes) in zip(axes, studies.items(), strict=True):
        x = [getattr(size, along) for size in sizes]
        axis.loglog(
            x, [size.cycle_s for size in sizes], "o-", color="#0072B2", label="seconds a cycle"
        )
        axis.loglog(
            x,
            [size.memory_mb / 1000 for size in sizes],
            "s--",
            color="#D55E00",
            label="GB beyond data",
        )
        other = (
            f"d = {sizes[0].num_parameters:,}"
            if along == "num_devices"
            else f"N = {DEVICES_OF_HIDDEN}"
        )
        axis.set_xlabel(f"{'devices N' if along == 'num_devices' else 'parameters d'} ({other})")
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Growth of time and memory of the local engine.")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--figure", type=Path, help="draw time and memory into this file")
    arguments = parser.parse_args()
    devices, hidden = (DEVICES[:5], HIDDEN[:4]) if arguments.quick else (DEVICES, HIDDEN)
    studies = {
        "num_devices": [elsewhere(measure, n, 64) for n in devices],
        "num_parameters": [elsewhere(measure, DEVICES_OF_HIDDEN, h) for h in hidden],
    }
    growth = {along: exponents(sizes, along) for along, sizes in studies.items()}
    if arguments.figure:
        draw(studies, arguments.figure)
    if arguments.json:
        sizes = {along: [asdict(size) for size in of_study] for along, of_study in studies.items()}
        print(json.dumps({"sizes": sizes, "exponents": growth}, indent=1))
        return
    for along, short in (("num_devices", "N"), ("num_parameters", "d")):
        print("\n".join(table(studies[along], growth[along], short)))


if __name__ == "__main__":
    main()
