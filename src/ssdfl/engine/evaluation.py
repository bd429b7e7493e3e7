"""Test all devices: many at once, and devices that agree only once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from ssdfl.arrays import IntArray
from ssdfl.engine.indices import index_of, rows_at
from ssdfl.engine.job import Job
from ssdfl.engine.linear_tests import linear_test
from ssdfl.engine.threads import Threads
from ssdfl.engine.tracing import kept_with, traced
from ssdfl.learning import Home, Task, parts_of
from ssdfl.learning.inputs import like

AGREEMENT = 1e-6
_NUMBERS_IN_CACHE = 1 << 19
_CLEARLY = 4  # a row agrees with the next one's leader, so it is twice as far at most; and rounding
_FEW_COLUMNS = 8
_DEVICES_AT_ONCE, _DEVICES_BY_HAND = 32, 16
_LOOPED_STRETCH = 64


class Evaluation:
    """Mean test loss and scores of parameter vectors."""

    def __init__(self, job: Job, tasks: Sequence[Task], threads: Threads) -> None:
        self.task, self.threads = job.task, threads
        if self.task.stackable:
            by_hand = linear_test(self.task)
            test = _stacked_test(self.task) if by_hand is None else _without_home(by_hand)
            self._tests = [test] * len(tasks)
            widest = max(
                slot.shape[0] if slot.shape else 1 for slot in self.task.layout.slots.values()
            )
            self._devices = _DEVICES_AT_ONCE if by_hand is None else _DEVICES_BY_HAND
            stretch = max(1, _NUMBERS_IN_CACHE // (self._devices * widest))
        else:
            self._tests = [_looped_test(task) for task in tasks]
            self._devices, stretch = 1, _LOOPED_STRETCH
        pieces = -(-len(self.task.test_targets) // stretch)
        tested = [self.task.test_targets, *parts_of(self.task.test_inputs)]
        self._stretches = list(zip(*(part.chunk(pieces) for part in tested), strict=True))

    def __call__(self, X: Tensor, home: Home | None = None) -> tuple[Tensor, Tensor]:
        """(n,) losses and (n, metrics) scores of the rows of X; rows that agree are tested once."""
        first = np.arange(len(X)) if home else agreeing(X)
        tested, place = np.unique(first, return_inverse=True)
        # About equal, so that few shapes are recorded.
        groups = np.array_split(tested, math.ceil(len(tested) / self._devices))

        @torch.inference_mode()
        def test(thread: int, item: tuple[IntArray, tuple[Tensor, ...]]) -> list[Tensor]:
            devices, stretch = item
            rows = index_of(devices, X.device)
            own = {name: kept[rows] for name, kept in (home or {}).items()}
            loss, sums = self._tests[thread](own, rows_at(X, rows), *stretch)
            return [loss, *sums]

        results = self.threads.each(test, list(product(groups, self._stretches)))
        everyone = torch.from_numpy(place)
        losses, *sums = (self._gathered(column)[everyone] for column in zip(*results, strict=True))
        return losses / len(self.task.test_targets), scores_of(self.task, sums)

    def _gathered(self, sums: Sequence[Tensor]) -> Tensor:
        """(n, …) the sums over stretches, from sums for each group and stretch."""
        stretches = len(self._stretches)
        groups = [sums[k : k + stretches] for k in range(0, len(sums), stretches)]
        return torch.cat([torch.stack(tuple(of_group)).sum(0) for of_group in groups]).cpu()


def scores_of(task: Task, sums: Sequence[Tensor]) -> Tensor:
    """(n, metrics) scores of devices, from each metric's (n, k) sums over the test samples."""
    values = [
        metric.value(of_metric).double()
        for metric, of_metric in zip(task.metrics, sums, strict=True)
    ]
    return torch.stack(values, dim=-1)


def agreeing(X: Tensor, tolerance: float = AGREEMENT) -> IntArray:
    """(n,) for each row, the first row that it equals within a tolerance of the largest entry.

    Rows that agree have nearly equal means under any weights. So rows are sorted by one such mean,
    and only adjacent ones are compared, and of those only the ones that are alike in a few columns.

    Examples:
        >>> agreeing(torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])).tolist()
        [0, 1, 0]
    """
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(X.shape[1], generator=generator).to(X.device, X.dtype)
    # Piece by piece, so that all three read a piece while it is in cache.
    every = max(1, X.shape[1] // _FEW_COLUMNS)
    pieces = X.split(max(1, _NUMBERS_IN_CACHE // X.shape[1]))
    found = [
        (piece @ weights, torch.stack(piece.aminmax()), piece[:, ::every].clone())
        for piece in pieces
    ]
    sums, extremes, columns = zip(*found, strict=True)
    means = (torch.cat(sums) / weights.abs().sum()).cpu().double().numpy()
    allowed = tolerance * float(torch.stack(extremes).abs().max())
    few = torch.cat(columns).cpu().numpy()
    order = np.argsort(means, kind="stable")
    first = np.arange(len(X))
    near = np.diff(means[order]) <= allowed
    alike = np.abs(np.diff(few[order], axis=0)).max(axis=1) <= _CLEARLY * allowed
    for place in np.flatnonzero(near & alike):
        leader, here = first[order[place]], order[place + 1]
        if float((X[here] - X[leader]).abs_().max()) <= allowed:
            first[here] = leader
    return first


Test = Callable[..., tuple[Tensor, Sequence[Tensor]]]
"""Returns (n,) sums of losses, and each metric's (n, k) sums.

The arguments are buffers at home, if any, parameters (n, d), targets and parts of inputs.
"""


def _stacked_test(task: Task) -> Test:
    """The test of models without buffers at home."""
    axes = (0, *[None] * (1 + len(parts_of(task.test_inputs))))
    stacked = kept_with(task, "_tests", lambda: traced(vmap(_test_of_parts(task), in_dims=axes)))
    return _without_home(stacked)


def _without_home(test: Callable[..., tuple[Tensor, Sequence[Tensor]]]) -> Test:
    return lambda home, *tensors: test(*tensors)


def _looped_test(task: Task) -> Test:
    one = _test_of_parts(task)

    def test(home: Home, Θ: Tensor, *stretch: Tensor) -> tuple[Tensor, list[Tensor]]:
        own = [{name: rows[[i]] for name, rows in home.items()} for i in range(len(Θ))]
        losses, sums = zip(
            *(one(θ, *stretch, home=kept) for θ, kept in zip(Θ, own, strict=True)), strict=True
        )
        return torch.stack(losses), [
            torch.stack(of_metric) for of_metric in zip(*sums, strict=True)
        ]

    return test


def _test_of_parts(task: Task) -> Callable[..., tuple[Tensor, tuple[Tensor, ...]]]:
    """`Task.test` as a function of tensors only."""

    def test(
        θ: Tensor, targets: Tensor, *parts: Tensor, home: Home | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        return task.test(θ, like(task.test_inputs, parts), targets, home)

    return test
