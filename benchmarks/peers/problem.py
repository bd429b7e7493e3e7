"""Each tool's input: data, mixing matrix, first parameters, and how to report.

Needs only PyTorch and NumPy, so that every tool's own environment can import it. A problem is a
folder of ``problem.json`` and ``data.npz``.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

STARTED = "SSDFL_PEER_STARTED"
"""Environment variable: when the tool's process was started, in seconds since the epoch."""

_imported_s = time.time()


@dataclass(frozen=True)
class Settings:
    """What ``problem.json`` holds.

    Attributes:
        network: the graph as a specification of ssdfl.
        model: ``mlp`` or ``cnn``.
        image_shape: channels, height, width.
        local_steps: mini-batch steps of a device in a round, before parameters are mixed once.
    """

    name: str
    network: str
    model: str
    image_shape: tuple[int, ...]
    num_classes: int
    learning_rate: float
    batch_size: int
    local_steps: int
    rounds: int
    seed: int


@dataclass(frozen=True, eq=False)
class Problem:
    """One problem: N devices with m samples each, and d parameters.

    Attributes:
        inputs: (N, m, …) training samples.
        labels: (N, m).
        test_inputs, test_labels: what every device is tested on at the end.
        W: (N, N) symmetric and doubly stochastic, applied as ``X ← W X`` after the local steps.
        initial: (d,) everyone's first parameters.
    """

    settings: Settings
    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor
    W: NDArray[np.float64]
    initial: Tensor

    @property
    def num_devices(self) -> int:
        """N."""
        return len(self.labels)

    def device_steps(self, rounds: int) -> int:
        """Mini-batch steps of all devices in so many rounds."""
        return rounds * self.settings.local_steps * self.num_devices


def save_problem(problem: Problem, folder: Path) -> None:
    """Write a problem into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "problem.json").write_text(json.dumps(asdict(problem.settings), indent=1))
    np.savez(
        folder / "data.npz",
        inputs=problem.inputs.numpy(),
        labels=problem.labels.numpy(),
        test_inputs=problem.test_inputs.numpy(),
        test_labels=problem.test_labels.numpy(),
        W=problem.W,
        initial=problem.initial.numpy(),
    )


@cache
def load_problem(folder: Path) -> Problem:
    """Read a problem; a second call in the same process costs nothing."""
    fields = json.loads((folder / "problem.json").read_text())
    settings = Settings(**{**fields, "image_shape": tuple(fields["image_shape"])})
    with np.load(folder / "data.npz", allow_pickle=False) as data:
        W = data["W"]
        tensors = {name: torch.from_numpy(data[name]) for name in data.files if name != "W"}
    return Problem(settings, W=W, **tensors)


def build_model(problem: Problem) -> nn.Module:
    """The problem's model at its first parameters."""
    settings = problem.settings
    model = {"mlp": _mlp, "cnn": _cnn}[settings.model](settings.image_shape, settings.num_classes)
    nn.utils.vector_to_parameters(problem.initial.clone(), model.parameters())
    return model


def _mlp(image_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """One hidden layer of 64."""
    size = math.prod(image_shape)
    return nn.Sequential(nn.Flatten(), nn.Linear(size, 64), nn.ReLU(), nn.Linear(64, num_classes))


def _cnn(image_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """The paper's five convolutions and one linear layer, as in ssdfl."""
    channels = [image_shape[0], 32, 64, 128, 128, 256]
    height, width = image_shape[1:]
    layers: list[nn.Module] = []
    for depth, (entering, leaving) in enumerate(pairwise(channels)):
        layers += [nn.Conv2d(entering, leaving, kernel_size=3, padding=1), nn.ReLU()]
        if depth < 3:
            layers.append(nn.MaxPool2d(2))
            height, width = height // 2, width // 2
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(channels[-1] * height * width, num_classes)
    )


def draw_batch(problem: Problem, device: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A mini-batch of a device's samples, drawn uniformly with replacement."""
    size = (problem.settings.batch_size,)
    positions = torch.randint(problem.labels.shape[1], size, generator=generator)
    return problem.inputs[device, positions], problem.labels[device, positions]


def take_steps(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    problem: Problem,
    device: int,
    generator: torch.Generator,
) -> None:
    """A device's local steps of one round, the way PyTorch's tutorials write them."""
    for _ in range(problem.settings.local_steps):
        inputs, labels = draw_batch(problem, device, generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()


def warm_up(problem: Problem) -> None:
    """One discarded round of one device: PyTorch loads parts of itself at the first step."""
    model = build_model(problem)
    optimizer = torch.optim.SGD(model.parameters(), lr=problem.settings.learning_rate)
    take_steps(model, optimizer, problem, 0, torch.Generator().manual_seed(0))


@torch.no_grad()
def accuracy(models: Iterable[nn.Module], problem: Problem) -> float:
    """Test accuracy, averaged over models."""
    shares = []
    for model in models:
        model.eval()
        scores = torch.cat([model(inputs) for inputs in problem.test_inputs.split(500)])
        shares.append(float((scores.argmax(1) == problem.test_labels).float().mean()))
    return float(np.mean(shares))


def accuracy_of_vectors(X: Sequence[Tensor], problem: Problem) -> float:
    """Test accuracy, averaged over parameter vectors."""
    model = build_model(problem)

    def models() -> Iterable[nn.Module]:
        for theta in X:
            nn.utils.vector_to_parameters(theta, model.parameters())
            yield model

    return accuracy(models(), problem)


def since_start() -> float:
    """Seconds since this tool's process was started, or else since this module was imported."""
    return time.time() - float(os.environ.get(STARTED, _imported_s))


def report(
    name: str,
    version: str,
    startup_s: float,
    steady_s: float,
    device_steps: int,
    accuracy: float,
    note: str,
) -> None:
    """Print the one line that ``compare.py`` reads.

    Args:
        startup_s: from the start of the process until the first training step can begin.
        steady_s: all rounds.
        device_steps: mini-batch steps that all devices took in that time.
        accuracy: on the test set after the last round, averaged over devices.
        note: what differs from the problem as stated.
    """
    result: dict[str, Any] = {
        "name": name,
        "version": version,
        "startup_s": round(startup_s, 3),
        "steady_s": round(steady_s, 4),
        "device_steps": device_steps,
        "accuracy": round(accuracy, 4),
        "note": note,
    }
    print(json.dumps(result), flush=True)
