"""Decent-DP: one process per device, which overlap training with averaging over gloo.

python benchmarks/peers/decent.py PROBLEM_FOLDER

In Decent-DP a device averages with one group at a time and after every step, so neither W nor
several local steps a round are possible. Nearest is its one-peer ring: after each step a device
averages with its left or right neighbour, in turn.
"""

import os
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from problem import (
    STARTED,
    Problem,
    accuracy,
    build_model,
    draw_batch,
    load_problem,
    report,
    since_start,
)
from torch import Tensor, nn

NOTE = (
    "averages with the left or the right neighbour in turn (1/2, 1/2) after every step instead of "
    "by W after the local steps; one process per device; own draws of batches"
)


def launch(folder: str, num_devices: int) -> int:
    """Start a process per device with torchrun and wait for them."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={num_devices}", __file__, folder]
    environment = {STARTED: str(time.time()), **os.environ}
    return subprocess.run(command, env=environment, check=False).returncode


def optimizer_of(problem: Problem) -> Any:
    """How Decent-DP makes its optimizers: from named parameters."""

    def make(named: list[tuple[str, Tensor]]) -> torch.optim.Optimizer:
        return torch.optim.SGD([value for _, value in named], lr=problem.settings.learning_rate)

    return make


def train(model: Any, problem: Problem, device: int, steps: int) -> None:
    """So many steps of a device; the wrapper updates and averages in the backward pass."""
    generator = torch.Generator().manual_seed(problem.settings.seed * problem.num_devices + device)
    for _ in range(steps):
        inputs, labels = draw_batch(problem, device, generator)
        nn.functional.cross_entropy(model(inputs), labels).backward()


def wrapped(problem: Problem) -> tuple[nn.Module, Any]:
    """The problem's model, bare and wrapped."""
    from decent_dp.ddp import DecentralizedDataParallel

    model = build_model(problem)
    return model, DecentralizedDataParallel(model, optim_fn=optimizer_of(problem), topology="ring")


def work(folder: Path) -> None:
    """One device's process."""
    from decent_dp.utils import initialize_dist

    device, _ = initialize_dist()
    problem = load_problem(folder)
    rounds = problem.settings.rounds
    train(wrapped(problem)[1], problem, device, 2)
    model, parallel = wrapped(problem)
    dist.barrier()
    startup_s, start = since_start(), time.perf_counter()
    train(parallel, problem, device, rounds * problem.settings.local_steps)
    dist.barrier()
    steady_s = time.perf_counter() - start
    share = torch.tensor(accuracy([model], problem))
    dist.reduce(share, 0)
    if device == 0:
        report(
            name="Decent-DP",
            version=version("decent-dp"),
            startup_s=startup_s,
            steady_s=steady_s,
            device_steps=problem.device_steps(rounds),
            accuracy=float(share) / problem.num_devices,
            note=NOTE,
        )
    dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    """Run one problem and report: as the launcher, or as one of the processes that it starts."""
    if "LOCAL_RANK" in os.environ:
        work(Path(sys.argv[1]))
    else:
        sys.exit(launch(sys.argv[1], load_problem(Path(sys.argv[1])).num_devices))


if __name__ == "__main__":
    main()
