"""Inputs of models: an array, or a tuple or dict of them, whose first dimension counts samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.func import functional_call

Inputs = Tensor | tuple[Tensor, ...] | dict[str, Tensor]
"""A tensor; or several, passed to a model as positional or named arguments."""


def map_inputs(function: Callable[[Any], Any], inputs: Any) -> Any:
    """The same structure with a function applied to every array.

    Examples:
        >>> map_inputs(lambda x: x + 1, {"a": 1, "b": 2})
        {'a': 2, 'b': 3}
    """
    if isinstance(inputs, dict):
        return {name: function(part) for name, part in inputs.items()}
    if isinstance(inputs, tuple):
        return tuple(function(part) for part in inputs)
    return function(inputs)


def parts_of(inputs: Any) -> list[Any]:
    """The arrays, in order.

    Examples:
        >>> parts_of((3, 4)), parts_of(5)
        ([3, 4], [5])
    """
    if isinstance(inputs, dict):
        return list(inputs.values())
    return list(inputs) if isinstance(inputs, tuple) else [inputs]


def like(inputs: Any, parts: list[Any] | tuple[Any, ...]) -> Any:
    """Arrays in the structure of inputs: the inverse of `parts_of`.

    Examples:
        >>> like({"a": 1, "b": 2}, [3, 4])
        {'a': 3, 'b': 4}
    """
    if isinstance(inputs, dict):
        return dict(zip(inputs, parts, strict=True))
    return tuple(parts) if isinstance(inputs, tuple) else parts[0]


def count(inputs: Any) -> int:
    """The number of samples."""
    return len(parts_of(inputs)[0])


def shapes(inputs: Any) -> Any:
    """The shape of one sample, in the structure of the inputs.

    Examples:
        >>> from torch import zeros
        >>> shapes(zeros(5, 2, 3))
        (2, 3)
    """
    return map_inputs(lambda part: tuple(part.shape[1:]), inputs)


def arguments_of(inputs: Inputs) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """The arguments for a model: a tuple becomes positional ones, a dict named ones."""
    if isinstance(inputs, dict):
        return (), inputs
    return (inputs if isinstance(inputs, tuple) else (inputs,)), {}


def call_model(
    model: nn.Module, inputs: Inputs, parameters: dict[str, Tensor] | None = None
) -> Any:
    """The model's outputs; a tuple is passed as positional arguments, a dict as named ones.

    Args:
        parameters: used instead of the model's own.
    """
    arguments, named = arguments_of(inputs)
    if parameters is None:
        return model(*arguments, **named)
    return functional_call(model, parameters, arguments, named)
