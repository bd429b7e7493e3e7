"""Metrics: sums over batches of test samples, and the score computed from them.

`ssdfl.records.scores` describes the scores; this module computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ssdfl.errors import InputError, find_function
from ssdfl.learning.losses import as_targets, cross_entropy, in_shape_of_targets
from ssdfl.records.scores import MOST_SCORES, SCORES, Score

Sums = Callable[[Tensor, Tensor], Tensor]
"""A function of a model's outputs and the targets that returns (k,) sums over a batch."""
Value = Callable[[Tensor], Tensor]
"""A function that returns (n,) scores for (n, k) sums over all test samples."""


@dataclass(frozen=True)
class TaskMetric:
    """A score and how it is computed.

    Attributes:
        score: its description.
        sums: the sums over test samples.
        value: computes the score from the sums; by default the ratio of the first two.
    """

    score: Score
    sums: Sums
    value: Value = lambda sums: sums[..., 0] / sums[..., 1]

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The score of one batch.

        Examples:
            >>> outputs, targets = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([1.0, 2, 6])
            >>> float(METRICS["mae"](outputs, targets))
            1.0
            >>> round(float(METRICS["r2"](outputs, targets)), 4)
            0.3571
        """
        return self.value(self.sums(outputs, targets))


def accuracy(scores: Tensor, labels: Tensor) -> Tensor:
    """The number of right answers, and of all answers."""
    right = (scores.argmax(-1) == labels).to(scores.dtype)
    return torch.stack([right.sum(), torch.ones_like(right).sum()])


def _binary_accuracy(outputs: Tensor, targets: Tensor) -> Tensor:
    right = ((as_targets(outputs, targets) > 0) == (targets > 0.5)).to(outputs.dtype)
    return torch.stack([right.sum(), torch.ones_like(right).sum()])


def _label_accuracy(outputs: Tensor, targets: Tensor) -> Tensor:
    """The number of samples whose labels are all right, and of all samples."""
    right = ((outputs > 0) == (targets > 0.5)).all(-1).to(outputs.dtype)
    return torch.stack([right.sum(), torch.ones_like(right).sum()])


def _f1(outputs: Tensor, targets: Tensor) -> Tensor:
    """2 TP, and 2 TP + FP + FN, over all labels."""
    said = (as_targets(outputs, targets) > 0).to(outputs.dtype)
    held = (targets > 0.5).to(outputs.dtype)
    return torch.stack([2 * (said * held).sum(), said.sum() + held.sum()])


def _f1_value(sums: Tensor) -> Tensor:
    return torch.where(sums[..., 1] > 0, sums[..., 0] / sums[..., 1].clamp(min=1), 1.0)


def _log_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    ones = torch.ones_like(targets, dtype=outputs.dtype)
    return torch.stack([cross_entropy(outputs, targets) * ones.sum(), ones.sum()])


def _squared_errors(outputs: Tensor, targets: Tensor) -> Tensor:
    """Σ (y − ŷ)², n, and Σ y and Σ y² for each value of the targets."""
    y = targets.double().reshape(len(targets), -1)
    errors = (as_targets(outputs, targets).double() - targets.double()).square().sum()
    count = torch.ones_like(y[:, 0]).sum()
    return torch.cat([torch.stack([errors, count]), y.sum(0), y.square().sum(0)])


def _r2(sums: Tensor) -> Tensor:
    """1 − Σ (y − ŷ)² / Σ (y − ȳ)²; predicting the mean of y scores 0."""
    errors, count = sums[..., 0], sums[..., 1]
    total, squares = sums[..., 2:].chunk(2, dim=-1)
    spread = (squares - total.square() / count[..., None]).sum(-1)
    return 1 - errors / spread.clamp(min=1e-12)


def _absolute_errors(outputs: Tensor, targets: Tensor) -> Tensor:
    errors = (as_targets(outputs, targets).double() - targets.double()).abs()
    return torch.stack([errors.sum(), torch.ones_like(errors).sum()])


def _rmse(sums: Tensor) -> Tensor:
    numbers = (sums.shape[-1] - 2) // 2
    return (sums[..., 0] / (sums[..., 1] * numbers)).sqrt()


METRICS = {
    metric.score.name: metric
    for metric in (
        TaskMetric(SCORES["accuracy"], accuracy),
        TaskMetric(SCORES["token_accuracy"], accuracy),
        TaskMetric(
            SCORES["perplexity"], _log_loss, lambda sums: (sums[..., 0] / sums[..., 1]).exp()
        ),
        TaskMetric(SCORES["binary_accuracy"], _binary_accuracy),
        TaskMetric(SCORES["label_accuracy"], _label_accuracy),
        TaskMetric(SCORES["f1"], _f1, _f1_value),
        TaskMetric(SCORES["r2"], _squared_errors, _r2),
        TaskMetric(SCORES["rmse"], _squared_errors, _rmse),
        TaskMetric(SCORES["mae"], _absolute_errors),
    )
}
"""The scores that come with ssdfl, and how they are computed."""


def find_metrics(names: Sequence[str]) -> tuple[TaskMetric, ...]:
    """Metrics by name, or a user's own by ``package.module:name``: a `TaskMetric`, or a function.

    A function of outputs and targets gives the mean over a batch. It is described by its name, and
    by its attributes ``label``, ``unit``, ``better`` and ``target`` if it has them.

    Raises:
        InputError: there is no metric with that name, or there are more than a record holds.
    """
    if not 0 < len(names) <= MOST_SCORES:
        raise InputError("task.metrics", len(names), f"1 to {MOST_SCORES} metrics", "Name fewer.")
    return tuple(METRICS[name] if name in METRICS else _own_metric(name) for name in names)


def _own_metric(name: str) -> TaskMetric:
    found: Any = find_function(METRICS, name, "task.metrics")
    if isinstance(found, TaskMetric):
        return found
    described = {
        key: getattr(found, key) for key in ("unit", "better", "target") if hasattr(found, key)
    }
    label = getattr(found, "label", name.rpartition(":")[2].replace("_", " "))
    return TaskMetric(Score(name, label, **described), _weighted(in_shape_of_targets(found)))


def _weighted(mean: Callable[[Tensor, Tensor], Tensor]) -> Sums:
    """The sums for a function that returns the mean over a batch."""

    def sums(outputs: Tensor, targets: Tensor) -> Tensor:
        value = torch.as_tensor(mean(outputs, targets), device=outputs.device).to(outputs.dtype)
        count = value.new_tensor(float(len(targets)))
        return torch.stack([value * count, count])

    return sums
