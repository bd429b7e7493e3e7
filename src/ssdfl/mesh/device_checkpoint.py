"""A device's state on disk, in safetensors."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from ssdfl.arrays import FloatArray
from ssdfl.engine.checkpoint import write_tensors
from ssdfl.engine.job import Job
from ssdfl.errors import InputError
from ssdfl.files import atomic_path
from ssdfl.mesh.node import DeviceState

_NUMBERS = ("step", "trained", "sent", "received", "busy_s")


def save_device(state: DeviceState, path: Path) -> None:
    """Write a device's state; the file before stays if that fails."""
    numbers = {name: getattr(state, name) for name in _NUMBERS}
    tensors = {"theta": state.θ.cpu().contiguous(), "carry": state.carry.cpu().contiguous()}
    with atomic_path(path) as temporary:
        write_tensors(tensors, temporary, json.dumps(numbers))


def load_parameters(path: Path) -> FloatArray:
    """(d,) the parameters in a checkpoint.

    Raises:
        InputError: it is missing or damaged.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            parameters: FloatArray = file.get_tensor("theta").astype(float)
            return parameters
    except (OSError, SafetensorError) as error:
        raise InputError("checkpoint", str(path), "a whole file", f"({error})") from None


def load_device(path: Path, job: Job) -> DeviceState:
    """The state that `save_device` wrote.

    Raises:
        InputError: a damaged file, or one of another model.
    """
    remedy = "Delete it: the device then starts at the first model and catches up."
    try:
        with safe_open(path, framework="pt") as file:
            θ, carry = file.get_tensor("theta"), file.get_tensor("carry")
            numbers = json.loads(file.metadata()["ssdfl"])
        state = DeviceState(θ=θ, carry=carry, **{name: numbers[name] for name in _NUMBERS})
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError("checkpoint", str(path), "a whole file", f"({error}) {remedy}") from error
    like = job.task.initial_parameters
    for name, tensor, shapes in (("theta", θ, {like.shape}), ("carry", carry, {like.shape, like[:0].shape})):
        if tensor.shape not in shapes or tensor.dtype != like.dtype or not torch.isfinite(tensor).all():
            expected = f"{len(like)} finite numbers of {like.dtype}"
            raise InputError(f"{name} in {path}", tuple(tensor.shape), expected, remedy)
    return state
