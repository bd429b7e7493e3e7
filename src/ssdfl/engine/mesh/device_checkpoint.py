"""A device's state on disk, in safetensors."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ssdfl.engine.job import Job
from ssdfl.engine.mesh.node import DeviceState
from ssdfl.errors import InputError
from ssdfl.files import atomic_path

_NUMBERS = ("step", "first_step", "trained", "sent", "received", "busy_s")


def save_device(state: DeviceState, path: Path) -> None:
    """Write a device's state; the file before stays if that fails."""
    numbers = {name: getattr(state, name) for name in _NUMBERS}
    with atomic_path(path) as temporary:
        save_file(
            {"theta": state.θ.cpu().contiguous(), "carry": state.carry.cpu().contiguous()},
            temporary,
            metadata={"ssdfl": json.dumps(numbers)},
        )


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
    if θ.shape != job.task.initial_parameters.shape or not torch.isfinite(θ).all():
        expected = f"{job.task.num_parameters} finite numbers"
        raise InputError(f"parameters in {path}", tuple(θ.shape), expected, remedy)
    return state
