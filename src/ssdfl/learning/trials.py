"""Losses and metrics of users, tried on a few samples before anything is computed with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ssdfl.errors import InputError
from ssdfl.learning.inputs import map_inputs
from ssdfl.learning.losses import LOSSES
from ssdfl.learning.metrics import METRICS

if TYPE_CHECKING:
    from ssdfl.learning.task import Task

_SAMPLES = 2


def check_own_functions(task: Task, loss: str, metrics: Sequence[str]) -> None:
    """Try a user's own loss and metrics; those that come with ssdfl are not tried.

    Raises:
        InputError: one raises an error or does not return one number, or the loss has no gradient.
    """
    own_loss = loss != "auto" and loss not in LOSSES
    own_metrics = {name: k for k, name in enumerate(metrics) if name not in METRICS}
    if not own_loss and not own_metrics:
        return
    inputs = map_inputs(lambda part: part[:_SAMPLES], task.test_inputs)
    targets = task.test_targets[:_SAMPLES]
    outputs = task.scores(task.initial_parameters, inputs).detach()
    if own_loss:
        _check_loss(task.loss, loss, outputs, targets)
    scored = task.in_units(outputs), task.in_units(targets)
    for name, k in own_metrics.items():
        value = _tried("task.metrics", name, task.metrics[k], *scored)
        _check_number("task.metrics", name, value)


def _check_loss(
    function: Callable[[Tensor, Tensor], Tensor], name: str, outputs: Tensor, targets: Tensor
) -> None:
    value = _tried("task.loss", name, function, outputs.requires_grad_(), targets)
    _check_number("task.loss", name, value)
    if not isinstance(value, Tensor) or not value.requires_grad:
        expected = "a loss that torch can differentiate by the outputs"
        remedy = "Compute it from the outputs with torch, without item(), numpy() or detach()."
        raise InputError("task.loss", name, expected, remedy)


def _tried(
    key: str,
    name: str,
    function: Callable[[Tensor, Tensor], object],
    outputs: Tensor,
    targets: Tensor,
) -> object:
    try:
        return function(outputs, targets)
    except Exception as error:  # a user's function may raise anything
        shapes = f"outputs {tuple(outputs.shape)} and targets {tuple(targets.shape)}"
        says = f"({type(error).__name__}: {error})"
        raise InputError(key, name, f"a function of {shapes}", says) from error


def _check_number(key: str, name: str, value: object) -> None:
    shape = tuple(torch.as_tensor(value).shape) if isinstance(value, Tensor | float | int) else None
    if shape == ():
        return
    found = type(value).__name__ if shape is None else f"shape {shape}"
    expected = f"one number, the mean over the batch, not {found}"
    raise InputError(key, name, expected, "Return the mean, as with .mean().")
