"""The least time that a cycle's work can take on this machine: its products and its bytes.

No engine gets below the larger of two measured limits. The first is the matrix products of all
devices' layers, batched as well as possible and on numbers that never leave the cache. The second
is moving through memory once, at every step, what must move: every device's parameters in and out,
and the samples that it trains with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ssdfl.engine import Job
from ssdfl.engine.threads import Threads, one_thread_each

IN_CACHE = 1 << 17  # numbers of the parameters that are multiplied at a time
PIECE = 1 << 18  # numbers of a matrix that a thread copies at a time


def shapes_of(model: nn.Module) -> list[tuple[int, int]]:
    """Inputs and outputs of the linear layers."""
    return [
        (one.in_features, one.out_features) for one in model.modules() if isinstance(one, nn.Linear)
    ]


@dataclass(frozen=True, eq=False)
class Layer:
    """A linear layer of a group of devices: what its products read and write."""

    inputs: Tensor
    weights: Tensor
    errors: Tensor
    outputs: Tensor
    gradient: Tensor
    sent_back: Tensor | None

    def multiply(self) -> None:
        """Forward, the gradient of the weights, and the error of the layer before, if any."""
        torch.bmm(self.inputs, self.weights, out=self.outputs)
        torch.bmm(self.inputs.transpose(1, 2), self.errors, out=self.gradient)
        if self.sent_back is not None:
            torch.bmm(self.errors, self.weights.transpose(1, 2), out=self.sent_back)


def make_layer(group: int, batch: int, inputs: int, outputs: int, is_first: bool) -> Layer:
    """A layer with random numbers."""
    return Layer(
        torch.randn(group, batch, inputs),
        torch.randn(group, inputs, outputs),
        torch.randn(group, batch, outputs),
        torch.empty(group, batch, outputs),
        torch.empty(group, inputs, outputs),
        None if is_first else torch.empty(group, batch, inputs),
    )


def products_alone(job: Job, steps: int) -> Callable[[], object]:
    """The products of some training steps of all devices, and nothing else."""
    devices = job.network.num_devices
    group = min(devices, max(1, IN_CACHE // job.task.num_parameters))
    shapes = shapes_of(job.task.model)
    threads = Threads(torch.get_num_threads())
    layers = [
        [
            make_layer(group, job.batch_size, *shape, is_first=k == 0)
            for k, shape in enumerate(shapes)
        ]
        for _ in range(threads.number)
    ]

    def multiply(thread: int, _: int) -> None:
        for layer in layers[thread]:
            layer.multiply()

    groups = range(round(steps * job.local_steps * devices / group))

    def work() -> object:
        with one_thread_each():
            return threads.each(multiply, groups)

    return work


def pieces_of(matrix: Tensor) -> list[slice]:
    """Some rows at a time: few enough that starting a copy takes no time beside it."""
    rows = max(1, PIECE // matrix.shape[1])
    return [slice(start, start + rows) for start in range(0, len(matrix), rows)]


def bytes_once(job: Job, training_steps: int, steps: int) -> Callable[[], object]:
    """Copy every device's parameters at each step, and read its samples if it trains."""
    devices = job.network.num_devices
    X = torch.randn(devices, job.task.num_parameters)
    other = torch.empty_like(X)
    features = shapes_of(job.task.model)[0][0]
    samples = torch.randn(devices, job.batch_size * job.local_steps * features)
    seen = torch.empty(devices)
    threads = Threads(torch.get_num_threads())

    def move(_: int, rows: slice) -> None:
        other[rows].copy_(X[rows])

    def read(_: int, rows: slice) -> None:
        torch.sum(samples[rows], dim=1, out=seen[rows])

    def work() -> None:
        with one_thread_each():
            for step in range(steps):
                threads.each(move, pieces_of(X))
                if step < training_steps:
                    threads.each(read, pieces_of(samples))

    return work
