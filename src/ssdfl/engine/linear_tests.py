"""Tests of stacks of linear layers, batched over devices, with features in rows.

As in `engine.linear_gradients`, products read weights in the order in which they lie in a device's
row, and maxima and sums over classes run along rows.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ssdfl.engine.linear_gradients import layers_of, stacked_values, takes_rows
from ssdfl.learning import Task
from ssdfl.learning.losses import cross_entropy
from ssdfl.learning.metrics import accuracy

LinearTest = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, list[Tensor]]]
"""(n,) sums of losses and (n, 2) right and all answers, of (n, d) rows on labels and inputs."""


def linear_test(task: Task) -> LinearTest | None:
    """The test of a task whose model, loss and only metric are known here; None for others."""
    layers = layers_of(task.model)
    if not layers or not takes_rows(task, task.test_inputs) or not _counts_right_labels(task):
        return None
    sizes = [slot.size for slot in task.layout.parameters.values()]

    def test(Θ: Tensor, labels: Tensor, inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
        shared = inputs.flatten(1).T.contiguous().expand(len(Θ), -1, -1)
        *_, outputs = stacked_values(layers, Θ.split(sizes, dim=1), shared)[1]
        return losses_and_right(outputs, labels)

    return test


def _counts_right_labels(task: Task) -> bool:
    has_labels = task.test_targets.dim() == 1 and task.test_targets.dtype == torch.int64
    only_accuracy = [metric.sums for metric in task.metrics] == [accuracy]
    return task.loss is cross_entropy and has_labels and only_accuracy and task.units is None


def losses_and_right(outputs: Tensor, labels: Tensor) -> tuple[Tensor, list[Tensor]]:
    """(n,) sums of cross entropies, and (n, 2) numbers of right and of all answers.

    Args:
        outputs: (n, C, M) scores of classes, which are overwritten.
        labels: (M,) the right classes.

    Examples:
        >>> outputs = torch.tensor([[[2.0, 0.0], [1.0, 0.0]]])  # the second sample is a tie
        >>> losses, sums = losses_and_right(outputs, torch.tensor([0, 1]))
        >>> sums[0].tolist(), round(float(losses), 4)
        ([[1.0, 2.0]], 1.0064)
    """
    n, _, samples = outputs.shape
    own = outputs.gather(1, labels.expand(n, 1, samples)).squeeze(1)
    most = outputs.amax(1)
    is_right = own == most
    if int((outputs == most.unsqueeze(1)).sum()) != most.numel():  # ties, or not a number
        is_right = outputs.argmax(1) == labels
    right = is_right.sum(1).to(outputs.dtype)
    sums = outputs.sub_(most.unsqueeze(1)).exp_().sum(1)
    losses = sums.log_().add_(most).sub_(own).sum(1)
    return losses, [torch.stack([right, torch.full_like(right, samples)], dim=1)]
