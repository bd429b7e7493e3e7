"""Testing everyone: many devices at once, and devices that agree only once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from ssdfl.arrays import IntArray
from ssdfl.engine.job import Job
from ssdfl.engine.threads import Threads
from ssdfl.engine.tracing import kept_with, traced
from ssdfl.learning import Task

AGREEMENT = 1e-6
_NUMBERS_IN_CACHE = 1 << 19
_DEVICES_AT_ONCE = 32
_LOOPED_STRETCH = 64


class Evaluation:
    """Mean test loss and test accuracy of parameter vectors."""

    def __init__(self, job: Job, tasks: Sequence[Task], threads: Threads) -> None:
        self.task, self.threads = job.task, threads
        if self.task.stackable:
            self._tests = [_stacked_test(self.task)] * len(tasks)
            widest = max(slot.shape[0] if slot.shape else 1 for slot in self.task.layout.values())
            self._devices = _DEVICES_AT_ONCE
            stretch = max(1, _NUMBERS_IN_CACHE // (_DEVICES_AT_ONCE * widest))
        else:
            self._tests = [_looped_test(task) for task in tasks]
            self._devices, stretch = 1, _LOOPED_STRETCH
        pieces = -(-len(self.task.test_labels) // stretch)
        self._stretches = list(
            zip(self.task.test_inputs.chunk(pieces), self.task.test_labels.chunk(pieces), strict=True)
        )

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """(n,) loss and accuracy of the rows of X; rows that agree are tested once."""
        first = agreeing(X)
        tested, place = np.unique(first, return_inverse=True)
        groups = [tested[k : k + self._devices] for k in range(0, len(tested), self._devices)]

        @torch.inference_mode()
        def test(thread: int, item: tuple[IntArray, tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
            devices, stretch = item
            return self._tests[thread](X[torch.from_numpy(devices).to(X.device)], *stretch)

        results = self.threads.each(test, list(product(groups, self._stretches)))
        count, everyone = len(self.task.test_labels), torch.from_numpy(place)
        losses, correct = (self._gathered(column)[everyone] / count for column in zip(*results, strict=True))
        return losses, correct

    def _gathered(self, sums: Sequence[Tensor]) -> Tensor:
        """(n,) of sums for each group and stretch, the sums over stretches."""
        stretches = len(self._stretches)
        groups = [sums[k : k + stretches] for k in range(0, len(sums), stretches)]
        return torch.cat([torch.stack(tuple(of_group)).sum(0) for of_group in groups]).cpu()


def agreeing(X: Tensor, tolerance: float = AGREEMENT) -> IntArray:
    """(n,) for each row the first of those that it equals within a tolerance of the largest entry.

    Rows that agree have nearly equal means with any weights, so that only neighbours in the order of one such
    mean are compared.

    Examples:
        >>> agreeing(torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])).tolist()
        [0, 1, 0]
    """
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(X.shape[1], generator=generator).to(X.device, X.dtype)
    means = (X @ weights / weights.abs().sum()).cpu().double().numpy()
    least, most = X.aminmax()
    allowed = tolerance * max(-float(least), float(most))
    order = np.argsort(means, kind="stable")
    first = np.arange(len(X))
    for place in np.flatnonzero(np.diff(means[order]) <= allowed):
        leader, here = first[order[place]], order[place + 1]
        if float((X[here] - X[leader]).abs_().max()) <= allowed:
            first[here] = leader
    return first


Test = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(n,) sums of losses and numbers of right answers, of parameters (n, d) on test samples and labels."""


def _stacked_test(task: Task) -> Test:
    def test(θ: Tensor, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        scores = task.scores(θ, inputs)
        return task.loss(scores, labels) * len(labels), (scores.argmax(-1) == labels).sum(-1)

    return kept_with(task, "_tests", lambda: traced(vmap(test, in_dims=(0, None, None))))


def _looped_test(task: Task) -> Test:
    def test(Θ: Tensor, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        scores = torch.stack([task.scores(θ, inputs) for θ in Θ])
        losses = torch.stack([task.loss(of_device, labels) for of_device in scores])
        return losses * len(labels), (scores.argmax(-1) == labels).sum(-1)

    return test
