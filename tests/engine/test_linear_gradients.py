"""Gradients derived by hand: what autograd finds, and only for models that are known."""

import dataclasses

import pytest
import torch
from torch import nn
from torch.func import grad, vmap

from helpers import tiny_job, tiny_task
from ssdfl.engine import run
from ssdfl.engine.linear_gradients import ACTIVATIONS, layers_of, linear_gradients
from ssdfl.learning.losses import cross_entropy, huber, mse

SIZE, CLASSES = 16, 4
NUMBERS = torch.randn(24, CLASSES, generator=torch.Generator().manual_seed(0))


def _task(model: nn.Module, **changes):
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    changes = {"loss": cross_entropy} | changes
    return dataclasses.replace(tiny_task(6), model=model.double(), **changes)


def _known(activation: nn.Module, bias: bool, outputs: int = CLASSES) -> nn.Sequential:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(SIZE, 5, bias=bias),
        activation,
        nn.Sequential(nn.Linear(5, 6), nn.Linear(6, outputs, bias=bias)),
    )


def _in_double(task):
    inputs = task.inputs.double()
    targets = task.targets if task.loss is cross_entropy else task.targets.double()
    return dataclasses.replace(task, inputs=inputs, targets=targets)


def assert_as_autograd(task):
    samples = torch.arange(12).reshape(4, 3)
    Θ = task.initial_parameters + 0.1 * torch.randn(4, task.num_parameters).double()
    inputs, targets = task.batch(samples)
    expected = vmap(grad(task.batch_loss))(Θ, inputs, targets)
    before = Θ.clone()
    found = torch.cat(linear_gradients(task)(Θ, samples), dim=1)
    assert expected.abs().max() > 1e-3
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    assert torch.equal(Θ, before)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_labels(activation, bias):
    assert_as_autograd(_in_double(_task(_known(activation(), bias))))


@pytest.mark.parametrize("outputs", [1, CLASSES])
def test_numbers(outputs):
    targets = NUMBERS[:, 0] if outputs == 1 else NUMBERS
    model = _known(nn.Tanh(), True, outputs)
    assert_as_autograd(_in_double(_task(model, loss=mse, targets=targets)))


def test_an_activation_may_come_last():
    model = nn.Sequential(nn.Flatten(), nn.Linear(SIZE, 1), nn.Sigmoid())
    targets = NUMBERS[:, :1]
    assert_as_autograd(_in_double(_task(model, loss=mse, targets=targets)))


def _hooked() -> nn.Module:
    model = _known(nn.ReLU(), True)
    model[1].register_forward_hook(lambda module, given, found: 2 * found)
    return model


def _frozen() -> nn.Module:
    model = _known(nn.ReLU(), True)
    model[1].weight.requires_grad_(False)
    return model


def _tied() -> nn.Module:
    layer = nn.Linear(SIZE, SIZE)
    return nn.Sequential(nn.Flatten(), layer, nn.ReLU(), layer)


class _Doubled(nn.Sequential):
    def forward(self, x):
        return 2 * super().forward(x)


UNKNOWN = {
    "dropout": lambda: nn.Sequential(nn.Flatten(), nn.Linear(SIZE, 4), nn.Dropout(0.5)),
    "two activations": lambda: nn.Sequential(nn.Linear(SIZE, 4), nn.ReLU(), nn.Tanh()),
    "flattened later": lambda: nn.Sequential(nn.Linear(4, 1), nn.Flatten()),
    "a sequence of its own kind": lambda: _Doubled(nn.Flatten(), nn.Linear(SIZE, 4)),
    "hook": _hooked,
    "frozen": _frozen,
    "tied": _tied,
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_other_models_are_left_to_autograd(name):
    assert layers_of(UNKNOWN[name]()) == []


def test_other_tasks_are_left_to_autograd():
    task = _in_double(_task(_known(nn.ReLU(), True)))
    assert linear_gradients(task) is not None
    numbers = _in_double(_task(_known(nn.ReLU(), True), loss=mse, targets=NUMBERS))
    for other in (
        dataclasses.replace(numbers, loss=huber),
        dataclasses.replace(numbers, targets=NUMBERS[:, 0].double()),  # broadcast by the loss
        dataclasses.replace(task, inputs=task.inputs.float()),
        dataclasses.replace(task, precision="bf16"),
    ):
        assert linear_gradients(other) is None


@pytest.mark.parametrize("optimizers", ["sgd", "momentum"])
def test_runs_are_those_of_recorded_gradients(optimizers, monkeypatch):
    job = tiny_job(model="mlp", optimizers=optimizers, cycles=3)
    (*_, (_, here)) = run(job)
    for place in ("gradients", "local"):
        monkeypatch.setattr(f"ssdfl.engine.{place}.linear_gradients", lambda task: None)
    (*_, (_, there)) = run(job)
    assert torch.allclose(here.X, there.X, atol=1e-6)
