"""Optimizers by their texts, drawn for devices; what they compute is tested with the engines."""

import numpy as np
import pytest
import torch

from ssdfl.errors import InputError
from ssdfl.learning import (
    KINDS,
    OPTIMIZERS,
    Optimizer,
    OptimizerKind,
    draw_optimizers,
    paper_optimizer,
    parse_optimizer,
)


def test_the_papers_draw():
    drawn = draw_optimizers("mixed", 300, np.random.default_rng(0))
    by_kind = {name: [o for o in drawn if o.kind is OPTIMIZERS[name]] for name in OPTIMIZERS}
    assert all(len(by_kind[name]) > 60 for name in ("sgd", "momentum", "proximal"))
    assert sum(map(len, by_kind.values())) == 300
    assert {o.rho for o in by_kind["momentum"]} == {0.8, 0.85}
    assert {o.mu for o in by_kind["proximal"]} == {5e-5, 1e-4}
    assert {(o.rho, o.mu) for o in by_kind["sgd"]} == {(0.0, 0.0)}


@pytest.mark.parametrize("kind", KINDS[1:])
def test_all_of_a_kind(kind):
    drawn = draw_optimizers(kind, 9, np.random.default_rng(0))
    assert {o.kind.name for o in drawn} == {kind}


def test_a_kind_with_its_own_values_is_not_drawn():
    drawn = draw_optimizers("adam:beta1=0.5,rate=0.01", 3, np.random.default_rng(0))
    assert {(o.hyper["beta1"], o.hyper["beta2"], o.rate) for o in drawn} == {(0.5, 0.999, 0.01)}


@pytest.mark.parametrize(
    "text", ["sgd", "momentum:0.9", "nesterov:0.5", "proximal:0.001", "effective:rho=0.9,mu=0.001"]
)
def test_texts_are_read_and_written(text):
    assert str(parse_optimizer(text)) == text


def test_every_known_optimizer_survives_its_text():
    for optimizer in draw_optimizers("mixed", 20, np.random.default_rng(1)):
        assert parse_optimizer(str(optimizer)) == optimizer
    adam = parse_optimizer("adamw:decay=0.1,rate=0.02")
    assert parse_optimizer(str(adam)) == adam


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("momentum", "expected a value of rho"),
        ("momentum:1.5", "expected a number in"),
        ("momentum:fast", "expected a number"),
        ("momentum:rho=0.9,mu=0.1", "expected one of rho, rate"),
        ("sgd:0.9", "expected sgd with no number"),
        ("adagrad", "expected one of sgd, momentum"),
        ("adam:rate=0", "expected a number above 0"),
        ("adam:epsilon=nan", "expected a finite number"),
        ("math:pi", "expected an update function"),
        ("math:sqrt", r"expected a function \(gradient, theta, memory, \*, name=value\)"),
    ],
)
def test_bad_optimizers(text, message):
    with pytest.raises(InputError, match=message):
        parse_optimizer(text)


def test_the_papers_family_by_its_two_numbers():
    assert paper_optimizer() == Optimizer(OPTIMIZERS["sgd"])
    both = paper_optimizer(rho=0.5, mu=0.1)
    assert (both.rho, both.mu, both.kind.name) == (0.5, 0.1, "effective")
    with pytest.raises(InputError, match="rho"):
        paper_optimizer(rho=1.0)


def test_an_optimizer_with_memory_of_ones_own():
    def update(gradient, theta, memory, *, beta=0.9):
        mean = beta * memory["mean"] + (1 - beta) * gradient
        return mean, {"mean": mean}

    kind = OptimizerKind("own", update, init=lambda theta: {"mean": torch.zeros_like(theta)})
    assert kind.defaults == {"beta": 0.9}
    direction, memory = kind.update(
        torch.ones(1, 2), torch.zeros(1, 2), kind.init(torch.zeros(1, 2))
    )
    assert torch.allclose(direction, torch.full((1, 2), 0.1))
    assert memory["mean"] is direction


@pytest.mark.parametrize("kind", ["nesterov", "adamw"])
def test_directions_agree_with_torch(kind):
    """Three steps beside torch.optim, which is written anew by others."""
    start = torch.randn(1, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    theirs = start.clone().requires_grad_()
    make = {
        "nesterov": lambda: torch.optim.SGD([theirs], lr=0.1, momentum=0.8, nesterov=True),
        "adamw": lambda: torch.optim.AdamW([theirs], lr=0.1, weight_decay=0.05),
    }
    text = {"nesterov": "nesterov:0.8", "adamw": "adamw:decay=0.05"}[kind]
    optimizer, ours, torchs = parse_optimizer(text), start.clone(), make[kind]()
    hyper = {
        name: torch.tensor([[value]], dtype=torch.float64)
        for name, value in optimizer.hyper.items()
    }
    memory = optimizer.kind.init(ours)
    for _ in range(3):
        torchs.zero_grad()
        theirs.pow(4).sum().backward()
        torchs.step()
        direction, memory = optimizer.kind.update(4 * ours.pow(3), ours, memory, **hyper)
        ours = ours - 0.1 * direction
    assert torch.allclose(ours, theirs.detach(), atol=1e-12)
