"""A run's state on disk, in safetensors: readable anywhere, executable nowhere."""

from __future__ import annotations

import errno
import json
import math
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.engine.job import Job
from ssdfl.engine.state import State, initial_memory, lasting, lasting_memory, own_rows
from ssdfl.errors import InputError
from ssdfl.files import atomic_path

_MEMORY = "memory."


def save_state(state: State, job: Job, path: Path) -> None:
    """Write a state; what optimizers keep only if it matters for what comes.

    The file's metadata ``ssdfl`` is JSON with the shape, strides and offset of every model parameter, so that
    ``torch.as_strided(X[i], shape, stride, i * d + offset)`` is a parameter of device i's model, without this
    library.
    """
    memory = state.memory if lasting(job, state) else lasting_memory(state.memory)
    tensors = {
        "X": state.X,
        "trained": torch.from_numpy(state.trained),
        "ready_s": torch.from_numpy(state.ready_s),
        **{_MEMORY + name: rows for name, rows in memory.items()},
    }
    progress = {"step": state.step, "transmissions": state.transmissions, "layout": _layout(job)}
    if not math.isnan(state.real_s):
        progress["real_s"] = state.real_s
    with atomic_path(path) as temporary:
        there = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
        write_tensors(there, temporary, json.dumps(progress))


def write_tensors(tensors: dict[str, Tensor], path: Path, facts: str) -> None:
    """Write tensors with a text as their metadata ``ssdfl``; a full disk raises OSError."""
    try:
        save_file(tensors, path, metadata={"ssdfl": facts})  # one key: several are stored in random order
    except SafetensorError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error


def load_state(path: Path, job: Job, devices: IntArray | None = None) -> State:
    """The state that `save_state` wrote.

    Args:
        devices: those that the file is of; all of the job's by default.

    Raises:
        InputError: a damaged file, or one of another model, network, rule or optimizers.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            progress = json.loads(file.metadata()["ssdfl"])
        place = job.task.device
        state = State(
            step=progress["step"],
            X=tensors["X"].to(place),
            memory={},
            trained=tensors["trained"].numpy(),
            ready_s=tensors["ready_s"].numpy(),
            transmissions=progress["transmissions"],
            real_s=progress.get("real_s", math.nan),
        )
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            "checkpoint", str(path), "a whole file", f"({error}) Delete it to start this run anew."
        ) from error
    if progress.get("layout") != _layout(job):
        this = "this model's, by this version of ssdfl"
        raise InputError(f"layout in {path}", "another", this, "Delete it to start this run anew.")
    number = job.network.num_devices if devices is None else len(devices)
    _check_tensor(path, "X", state.X, (number, job.task.num_parameters), job)
    memory = initial_memory(job)
    if devices is not None:
        memory = own_rows(job, memory, devices)
    return replace(state, memory=_memory(path, tensors, job, state, memory))


def load_parameters(path: Path) -> FloatArray:
    """(n, d) the parameters in a checkpoint, as they lie there.

    Raises:
        InputError: it is missing or damaged.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            parameters: FloatArray = file.get_tensor("X").astype(float)
            return parameters
    except (OSError, SafetensorError) as error:
        raise InputError("checkpoint", str(path), "a whole file", f"({error})") from None


def _memory(
    path: Path, tensors: dict[str, Tensor], job: Job, state: State, memory: dict[str, Tensor]
) -> dict[str, Tensor]:
    """What devices keep: from the file where it matters for what comes, else as at the start."""
    needed = memory if lasting(job, state) else lasting_memory(memory)
    for name in needed:
        if _MEMORY + name not in tensors:
            expected = f"{name}, which this rule and these optimizers keep"
            raise InputError(f"memory in {path}", "none", expected, "Delete it to start this run anew.")
        found = tensors[_MEMORY + name].to(job.task.device)
        _check_tensor(path, name, found, tuple(memory[name].shape), job)
        memory[name] = found
    return memory


def _check_tensor(path: Path, name: str, tensor: Tensor, shape: tuple[int, ...], job: Job) -> None:
    """Refuse a tensor of another shape or type, or with numbers that are not finite."""
    dtype, remedy = job.task.initial_parameters.dtype, "Delete it to start anew."
    if tuple(tensor.shape) != shape:
        what = "shape" if name == "X" else f"shape of {name}"
        raise InputError(f"{what} in {path}", tuple(tensor.shape), f"{shape}", remedy)
    if tensor.dtype != dtype:
        raise InputError(f"type of {name} in {path}", str(tensor.dtype), f"{dtype}", remedy)
    if not torch.isfinite(tensor).all():
        raise InputError(f"{name} in {path}", "not finite", "finite numbers", remedy)


def _layout(job: Job) -> dict[str, dict[str, object]]:
    """Where each parameter lies in a row of ``X``, as JSON has it."""
    return {
        name: {"shape": list(slot.shape), "stride": list(slot.stride), "offset": slot.offset}
        for name, slot in job.task.layout.items()
    }
