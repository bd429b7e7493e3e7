"""Compare this tree with another of the same project: seconds and memory of the same runs.

    git worktree add ../before COMMIT
    python benchmarks/against.py ../before

Each figure is this tree's divided by the other's, from processes that took turns on one machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

CHILD = """
import json, resource, sys, tempfile, time
import numpy as np
import ssdfl
from ssdfl.learning import make_dataset

case = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
shape = (case["samples"], 1, case["size"], case["size"])
images, labels = rng.integers(0, 255, shape).astype(np.uint8), np.arange(case["samples"]) % 10
data = make_dataset((images, labels), (images[:64], labels[:64]))


def seconds(cycles):
    values = {
        "cycles": cycles, "seeds": [0], "methods": ["ssdfl"], "clusters": {"number": 2},
        "network": {"spec": case["network"]}, "model": {"name": case["model"]},
        "data": {"partition": "iid"}, "evaluate": {"every": 10_000}, "schedule": {"tau_a": 3},
        "training": {"local_steps": 2, "batch_size": 16},
        "optimizers": {"kind": case["optimizers"]},
    }
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        ssdfl.run_experiment(ssdfl.make_experiment(values), folder, data=data)
        return time.perf_counter() - start


seconds(1)
short, long = seconds(1), seconds(1 + case["cycles"])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([(long - short) / case["cycles"], peak]))
"""

CASES = {
    "cnn, 10 devices": {
        "model": "cnn", "size": 28, "network": "complete:n=10", "samples": 2000, "cycles": 4,
    },
    "mlp, 100 devices": {
        "model": "mlp", "size": 28, "network": "ring:n=100", "samples": 10_000, "cycles": 8,
    },
    "mlp, 1,000 devices": {
        "model": "mlp", "size": 8, "network": "ring:n=1000", "samples": 50_000, "cycles": 4,
    },
}  # fmt: skip
START = {
    "import ssdfl": ["-c", "import ssdfl"],
    "ssdfl --help": ["-m", "ssdfl", "--help"],
}


def child(tree: Path, words: list[str]) -> str:
    """What Python prints with the source of a tree."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def start_s(tree: Path, words: list[str]) -> float:
    """Seconds of processor time of a short command."""
    before = os.times()
    child(tree, words)
    after = os.times()
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description="This tree against another: ratios of seconds and memory."
    )
    parser.add_argument("other", type=Path, help="another working tree of this project")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    trees = (Path(__file__).resolve().parents[1], arguments.other.resolve())
    for name, words in START.items():
        took = [[start_s(tree, words) for tree in trees] for _ in range(2 * arguments.repeats)]
        own, other = (min(column) for column in zip(*took, strict=True))
        print(f"{name}: seconds {own / other:.3f} ×")
    for name, case in CASES.items():
        for optimizers in ("mixed", "momentum"):
            text = json.dumps({**case, "optimizers": optimizers})
            found = [
                [json.loads(child(tree, ["-c", CHILD, text])) for tree in trees]
                for _ in range(arguments.repeats)
            ]
            seconds = [[pair[side][0] for pair in found] for side in (0, 1)]
            memory = [[pair[side][1] for pair in found] for side in (0, 1)]
            ratio = min(seconds[0]) / min(seconds[1])
            peak = statistics.median(memory[0]) / statistics.median(memory[1])
            print(
                f"{name}, {optimizers}: seconds a cycle {ratio:.3f} ×, memory {peak:.3f} ×",
                flush=True,
            )


if __name__ == "__main__":
    main()
