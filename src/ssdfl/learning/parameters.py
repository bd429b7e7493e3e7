"""Load parameters into a model, from an initial file or a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from ssdfl.errors import InputError


def fill_model(
    model: nn.Module, tensors: Mapping[str, Tensor], source: str, partial: bool = False
) -> None:
    """Write named tensors into a model's parameters and buffers, in place.

    Args:
        source: where the tensors come from, for messages.
        partial: whether tensors may be missing; the model then keeps its own.

    Raises:
        InputError: the model does not have a tensor, or has it in another shape or type; or a
            tensor is missing.
    """
    state = model.state_dict(keep_vars=True)
    for name, tensor in tensors.items():
        _check(name, tensor, state, source)
    missing = _missing(state, tensors)
    if missing and not partial:
        expected = f"all {len(state)} parameters and buffers of the model"
        raise InputError(
            f"{missing[0]} in {source}", "missing", expected, "Does it belong to another model?"
        )
    with torch.no_grad():
        for name, tensor in tensors.items():
            state[name].copy_(tensor)


def _check(name: str, tensor: Tensor, state: Mapping[str, Tensor], source: str) -> None:
    what = f"{name} in {source}"
    if name not in state:
        *others, last = state
        known = f"one of {', '.join(others)} and {last}" if others else last
        raise InputError(what, "unknown", known, "Does it belong to another model?")
    place = state[name]
    if tensor.shape != place.shape:
        raise InputError(
            f"shape of {what}", tuple(tensor.shape), f"{tuple(place.shape)}", "Leave it out."
        )
    if tensor.is_floating_point() != place.is_floating_point():
        raise InputError(f"type of {what}", str(tensor.dtype), str(place.dtype), "Convert it.")
    if not torch.isfinite(tensor).all():
        raise InputError(what, "not finite", "finite numbers", "Train it again.")


def _missing(state: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> list[str]:
    """Names without a tensor; a parameter with several names needs only one."""
    given = {id(state[name]) for name in tensors}
    return [
        name for name, tensor in state.items() if name not in tensors and id(tensor) not in given
    ]


def start_from(model: nn.Module, path: Path | str) -> None:
    """Load a model's parameters from a safetensors file; missing ones keep their random values.

    Raises:
        InputError: there is no such file, or its tensors do not fit; the error names them.
    """
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        expected = "a safetensors file with parameters"
        raise InputError("model.initial", str(path), expected, f"({error})") from None
    if not tensors:
        raise InputError("model.initial", str(path), "at least one parameter", "The file has none.")
    fill_model(model, tensors, str(path), partial=True)
