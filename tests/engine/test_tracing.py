"""Recorded operations: the same bits as the function, and inputs left as they were."""

import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap

from ssdfl.engine.tracing import traced


def _layer_loss(weights: Tensor, bias: Tensor, inputs: Tensor) -> Tensor:
    hidden = (inputs @ weights + bias).relu()
    return (hidden @ weights.T + hidden).square().mean()


def _reads_twice(left: Tensor, right: Tensor) -> Tensor:
    product = left @ right
    doubled = product @ right
    return (product + 1).relu() + product + (doubled + doubled)


def _numbers(*shapes: tuple[int, ...]) -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(shape) for shape in shapes]


CASES = {
    "gradients": (
        vmap(grad(_layer_loss, argnums=(0, 1))),
        _numbers((3, 4, 4), (3, 4), (3, 5, 4)),
    ),
    "a product read twice": (vmap(_reads_twice), _numbers((3, 4, 4), (3, 4, 4))),
    "an input added to": (lambda a, b: (a + b).relu() + a, _numbers((4, 4), (4, 4))),
    "a smaller product": (lambda a, b, c: a @ b + c, _numbers((3, 1, 4), (3, 4, 4), (3, 4, 4))),
}


@pytest.mark.parametrize("name", CASES)
def test_a_recorded_function_gives_the_same_bits_and_changes_no_input(name: str) -> None:
    function, tensors = CASES[name]
    before = [tensor.clone() for tensor in tensors]
    recorded = traced(function, calls_before=0)
    expected = function(*tensors)
    for _ in range(2):
        torch.testing.assert_close(recorded(*tensors), expected, rtol=0, atol=0)
    torch.testing.assert_close(tensors, before, rtol=0, atol=0)
