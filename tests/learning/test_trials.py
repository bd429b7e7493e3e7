"""Losses and metrics of users are tried before training, and refused with the remedy."""

import numpy as np
import pytest
import torch

from ssdfl.errors import InputError
from ssdfl.learning import Dataset, build_model, iid, make_task


def mean_error(outputs, targets):
    return (outputs - targets).abs().mean()


def error_of_each(outputs, targets):
    return (outputs - targets).abs()


def plain_number(outputs, targets):
    return (outputs - targets).abs().mean().item()


def raises(outputs, targets):
    raise KeyError("age")


def a_text(outputs, targets):
    return "0.5"


def own(function):
    return f"{__name__}:{function.__name__}"


def task_with(loss="auto", metrics=()):
    rng = np.random.default_rng(0)
    inputs, targets = rng.standard_normal((12, 3), np.float32), rng.standard_normal(12, np.float32)
    data = Dataset(inputs, targets, inputs, targets, num_classes=0)
    model = build_model("logreg", (3,), 1, seed=0)
    return make_task(model, data, iid(targets, 2, rng), loss=loss, metrics=metrics)


def test_a_mean_is_taken_as_loss_and_metric():
    task = task_with(own(mean_error), (own(mean_error), "r2"))
    assert [metric.score.name for metric in task.metrics] == [own(mean_error), "r2"]
    outputs = torch.tensor([[1.0], [4.0]])
    assert float(task.loss(outputs, torch.tensor([0.0, 2.0]))) == 1.5


def test_a_metric_may_be_a_plain_number():
    assert task_with(metrics=(own(plain_number),)).metrics[0].score.label == "plain number"


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (error_of_each, r"one number.*not shape \(2,\).*mean"),
        (plain_number, "differentiate"),
        (raises, r"outputs \(2, 1\) and targets \(2,\).*KeyError"),
        (a_text, "not str"),
    ],
)
def test_a_loss_that_cannot_be_trained_is_refused(function, says):
    with pytest.raises(InputError, match=f"task.loss.*{function.__name__}.*{says}"):
        task_with(own(function))


@pytest.mark.parametrize("function", [error_of_each, raises, a_text])
def test_a_metric_that_is_no_number_is_refused(function):
    with pytest.raises(InputError, match=f"task.metrics.*{function.__name__}"):
        task_with(metrics=("r2", own(function)))
