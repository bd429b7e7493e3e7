"""Refuse models that keep state outside parameters and buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ssdfl.errors import InputError

_NUMBERS = (bool, int, float)


def check_state(model: nn.Module, use: Callable[[nn.Module], object]) -> None:
    """Refuse state that devices could neither mix nor keep.

    A copy of the model is trained to find such state: anything that changes between two passes and
    is not in ``state_dict``.

    Args:
        use: applies a model to a few samples.

    Raises:
        InputError: there is such state; the error names the layer and the attribute.
    """
    for name, module in model.named_modules():
        if type(module).get_extra_state is not nn.Module.get_extra_state:
            raise _unknown(name, module, "extra state")
    for name, parameter in model.named_parameters():
        if is_lazy(parameter):
            expected = "a shape that is known after one pass"
            raise InputError("model parameter", name, expected, "Let forward use it, or remove it.")
    copy = deepcopy(model).train()
    use(copy)
    before = _unregistered(copy)
    use(copy)
    after = _unregistered(copy)
    for module_name, attribute in sorted(before.keys() | after.keys()):
        place = (module_name, attribute)
        if not _same(before.get(place), after.get(place)):
            raise _unknown(module_name, copy.get_submodule(module_name), attribute)


def _unknown(name: str, module: nn.Module, what: str) -> InputError:
    layer = f"{name} {type(module).__name__}".strip()
    remedy = "Keep it with register_buffer, or drop it."
    return InputError(
        "model layer", f"{layer}: {what}", "state in parameters and buffers only", remedy
    )


def _unregistered(model: nn.Module) -> dict[tuple[str, str], object]:
    """Tensors and numbers that modules keep outside ``state_dict``, by module and attribute."""
    return {
        (name, attribute): value.detach().clone() if isinstance(value, Tensor) else value
        for name, module in model.named_modules()
        for attribute, value in _outside(module)
    }


def _outside(module: nn.Module) -> Iterator[tuple[str, object]]:
    for attribute, value in vars(module).items():
        if isinstance(value, (Tensor, *_NUMBERS)):
            yield attribute, value
    for attribute in module._non_persistent_buffers_set:
        yield attribute, getattr(module, attribute)


def _same(before: object, after: object) -> bool:
    if isinstance(before, Tensor) and isinstance(after, Tensor):
        return before.shape == after.shape and torch.equal(before, after)
    return type(before) is type(after) and before == after
