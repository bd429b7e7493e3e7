"""What everyone writes first: a list of PyTorch modules, an optimizer each, a loop that mixes.

python benchmarks/peers/plain.py PROBLEM_FOLDER
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from problem import (
    Problem,
    accuracy,
    build_model,
    load_problem,
    report,
    since_start,
    take_steps,
    warm_up,
)
from torch import nn

NOTE = "trains, then mixes; own draws of batches"


def train(models: Sequence[nn.Module], problem: Problem) -> None:
    """Train the devices' models in place for all rounds."""
    settings = problem.settings
    generator = torch.Generator().manual_seed(settings.seed)
    optimizers = [
        torch.optim.SGD(model.parameters(), lr=settings.learning_rate) for model in models
    ]
    for _ in range(settings.rounds):
        for device, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
            take_steps(model, optimizer, problem, device, generator)
        mix(models, problem)


@torch.no_grad()
def mix(models: Sequence[nn.Module], problem: Problem) -> None:
    """Every model becomes the weighted sum of its neighbours' and its own."""
    states = [
        {name: value.clone() for name, value in model.state_dict().items()} for model in models
    ]
    for model, weights in zip(models, problem.W.tolist(), strict=True):
        heard = [
            (weight, state) for weight, state in zip(weights, states, strict=True) if weight > 0
        ]
        model.load_state_dict(
            {name: sum(weight * state[name] for weight, state in heard) for name in states[0]}
        )


def main() -> None:
    """Run one problem and report."""
    problem = load_problem(Path(sys.argv[1]))
    warm_up(problem)
    models = [build_model(problem) for _ in range(problem.num_devices)]
    startup_s, start = since_start(), time.perf_counter()
    train(models, problem)
    steady_s = time.perf_counter() - start
    report(
        name="plain PyTorch loop",
        version=torch.__version__,
        startup_s=startup_s,
        steady_s=steady_s,
        device_steps=problem.device_steps(problem.settings.rounds),
        accuracy=accuracy(models, problem),
        note=NOTE,
    )


if __name__ == "__main__":
    main()
