"""Tests computed by hand: what vmap finds, and only for tasks that are known."""

import dataclasses

import pytest
import torch
from torch import nn
from torch.func import vmap

from helpers import tiny_task
from ssdfl.engine.linear_gradients import ACTIVATIONS
from ssdfl.engine.linear_tests import linear_test, losses_and_right
from ssdfl.learning.losses import cross_entropy, huber
from ssdfl.learning.metrics import METRICS

SIZE, CLASSES = 16, 4


def _task(model, **changes):
    task = tiny_task(6)
    changes = {"loss": cross_entropy, "test_inputs": task.test_inputs.double()} | changes
    return dataclasses.replace(task, model=model.double(), **changes)


def _model(activation, bias):
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(SIZE, 5, bias=bias),
        activation(),
        nn.Linear(5, CLASSES, bias=bias),
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_losses_and_right_answers_are_those_of_the_task(activation, bias):
    task = _task(_model(activation, bias))
    Θ = task.initial_parameters + 0.5 * torch.randn(3, task.num_parameters).double()
    losses, (sums,) = vmap(task.test, in_dims=(0, None, None))(
        Θ, task.test_inputs, task.test_targets
    )
    found_losses, (found_sums,) = linear_test(task)(Θ, task.test_targets, task.test_inputs)
    torch.testing.assert_close(found_losses, losses, rtol=1e-12, atol=1e-12)
    assert torch.equal(found_sums, sums)


def test_among_equal_scores_the_first_class_is_the_answer():
    outputs = torch.zeros(1, CLASSES, 3)
    _, (sums,) = losses_and_right(outputs, torch.tensor([0, 1, 0]))
    assert sums.tolist() == [[2.0, 3.0]]


def test_what_is_not_a_number_is_the_answer_as_in_argmax():
    outputs = torch.tensor([[[1.0, 0.0], [torch.nan, 1.0]]])
    losses, (sums,) = losses_and_right(outputs, torch.tensor([1, 1]))
    assert sums.tolist() == [[2.0, 2.0]]
    assert losses.isnan().all()


def test_other_tasks_are_left_to_vmap():
    known = _task(_model(nn.ReLU, True))
    assert linear_test(known) is not None
    two = (METRICS["accuracy"], METRICS["perplexity"])
    numbers = known.test_targets.double()
    for other in (
        dataclasses.replace(known, loss=huber),
        dataclasses.replace(known, metrics=two),
        dataclasses.replace(known, test_targets=numbers),
        dataclasses.replace(known, test_inputs=known.test_inputs.float()),
        dataclasses.replace(known, model=nn.Sequential(known.model, nn.Dropout())),
    ):
        assert linear_test(other) is None
