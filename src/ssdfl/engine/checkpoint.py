"""A run's state on disk, in safetensors: readable anywhere, executable nowhere."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ssdfl.engine.job import Job, State, no_carry
from ssdfl.errors import InputError
from ssdfl.files import atomic_path


def save_state(state: State, job: Job, path: Path) -> None:
    """Write a state; what optimizers carry only if someone is in the middle of a regime.

    The file's metadata ``ssdfl`` is JSON with the shape, strides and offset of every model parameter, so that
    ``torch.as_strided(X[i], shape, stride, i * d + offset)`` is a parameter of device i's model, without this
    library.
    """
    tensors = {
        "X": state.X,
        "trained": torch.from_numpy(state.trained),
        "ready_s": torch.from_numpy(state.ready_s),
    }
    if state.trained.any():
        tensors["carry"] = state.carry
    progress = {"cycle": state.cycle, "transmissions": state.transmissions, "layout": _layout(job)}
    with atomic_path(path) as temporary:
        there = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
        write_tensors(there, temporary, json.dumps(progress))


def write_tensors(tensors: dict[str, Tensor], path: Path, facts: str) -> None:
    """Write tensors with a text as their metadata ``ssdfl``; a full disk raises OSError."""
    try:
        save_file(tensors, path, metadata={"ssdfl": facts})  # one key: several are stored in random order
    except SafetensorError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error


def load_state(path: Path, job: Job) -> State:
    """The state that `save_state` wrote.

    Raises:
        InputError: a damaged file, or one of another model or network.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            progress = json.loads(file.metadata()["ssdfl"])
        place = job.task.inputs.device
        in_a_regime = bool(tensors["trained"].any())
        state = State(
            cycle=progress["cycle"],
            X=tensors["X"].to(place),
            carry=tensors["carry"].to(place) if in_a_regime else no_carry(job),
            trained=tensors["trained"].numpy(),
            ready_s=tensors["ready_s"].numpy(),
            transmissions=progress["transmissions"],
        )
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            "checkpoint", str(path), "a whole file", f"({error}) Delete it to start this run anew."
        ) from error
    expected = (job.network.num_devices, job.task.num_parameters)
    if progress.get("layout") != _layout(job):
        this = "this model's, by this version of ssdfl"
        raise InputError(f"layout in {path}", "another", this, "Delete it to start this run anew.")
    if tuple(state.X.shape) != expected:
        raise InputError(f"shape in {path}", tuple(state.X.shape), f"{expected}", "Delete it to start anew.")
    return state


def _layout(job: Job) -> dict[str, dict[str, object]]:
    """Where each parameter lies in a row of ``X``, as JSON has it."""
    return {
        name: {"shape": list(slot.shape), "stride": list(slot.stride), "offset": slot.offset}
        for name, slot in job.task.layout.items()
    }
