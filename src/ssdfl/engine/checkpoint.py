"""A run's state on disk, in safetensors: readable anywhere, executable nowhere.

model.NAME          (n, …) a parameter or buffer of n devices' models, named as in `state_dict`
frozen.NAME         (…) one that all devices share
memory.OWNER.NAME   (k, w) what optimizers and rules keep, in the order of the metadata's layout
trained, ready_s    (N,) who trained last, and when each device is ready

The metadata ``ssdfl`` is JSON: a checksum of the rest, the method, how far the run is, whose models
these are, what they take and give, and the layout of a row in which ssdfl keeps a model's numbers
while it trains.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.engine.checkpoint_file import ANEW, FORMAT, Facts, read_facts, write_tensors
from ssdfl.engine.job import Job
from ssdfl.engine.state import (
    MODEL,
    State,
    home_of,
    initial_memory,
    lasting,
    lasting_memory,
    memory_name,
    own_rows,
)
from ssdfl.errors import InputError
from ssdfl.files import atomic_path
from ssdfl.learning import Home
from ssdfl.learning.layout import flat

PARAMETERS, FROZEN, _MEMORY = "model.", "frozen.", "memory."


def save_state(state: State, job: Job, path: Path, devices: IntArray | None = None) -> None:
    """Write a state; what optimizers keep only if it matters for what comes.

    Args:
        devices: those that the state is of; all of the job's by default.
    """
    kept = state.memory if lasting(job, state) else lasting_memory(state.memory)
    own = home_of(kept)
    memory = {name: rows for name, rows in kept.items() if name not in _names_at_home(own)}
    tensors = {
        **{PARAMETERS + name: stack for name, stack in _models(job, state, own).items()},
        **{FROZEN + name: tensor for name, tensor in job.task.shared_state().items()},
        **{_MEMORY + name: rows for name, rows in memory.items()},
        "trained": torch.from_numpy(state.trained),
        "ready_s": torch.from_numpy(state.ready_s),
    }
    with atomic_path(path) as temporary:
        there = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
        write_tensors(there, temporary, _facts(job, state, devices))


def _names_at_home(home: Home) -> set[str]:
    return {memory_name(MODEL, name) for name in home}


def _models(job: Job, state: State, home: Home) -> dict[str, Tensor]:
    """(n, …) each: what lies in rows and at home, as the model has it."""
    shapes = job.task.layout.home
    at_home = {name: rows.reshape(-1, *shapes[name][0]) for name, rows in home.items()}
    return job.task.layout.stacked(state.X) | at_home


def _facts(job: Job, state: State, devices: IntArray | None) -> dict[str, object]:
    """What the file's metadata says."""
    facts: dict[str, object] = {
        "format": FORMAT,
        "method": job.method,
        "step": state.step,
        "cycle": state.step // job.steps_per_cycle,
        "transmissions": state.transmissions,
        "devices": _devices(job, devices),
        "state": list(job.task.model.state_dict()),
        "model": job.task.facts.to_json() if job.task.facts else None,
        "layout": _layout(job),
    }
    return facts if math.isnan(state.real_s) else facts | {"real_s": state.real_s}


def _devices(job: Job, devices: IntArray | None) -> dict[str, int]:
    """The numbers of some devices, or of all, by their names."""
    here = range(job.network.num_devices) if devices is None else devices.tolist()
    return {job.network.names[device]: device for device in here}


def load_state(path: Path, job: Job, devices: IntArray | None = None) -> State:
    """The state that `save_state` wrote.

    Args:
        devices: those that the file is of; all of the job's by default.

    Raises:
        InputError: a damaged file, or one of another model, network, rule or optimizers.
    """
    facts, tensors = _read(path)
    return _state(path, facts, tensors, job, devices)


def load_moved_state(path: Path, job: Job, device: int) -> State:
    """The state of one device, which may have been written when the network had other devices.

    Args:
        device: its number in the job.

    Raises:
        InputError: a damaged file, or one of another device, model, rule or optimizer.
    """
    facts, tensors = _read(path)
    num_devices, here = job.network.num_devices, _devices(job, np.array([device]))
    if not tensors.keys() >= {"trained", "ready_s"}:
        raise _damaged(path, KeyError("trained, ready_s"))
    same_place = facts.devices == here and tensors["trained"].numel() == num_devices
    if facts.devices.keys() == here.keys() and not same_place:
        trained = torch.zeros(num_devices, dtype=torch.bool)
        trained[device] = bool(tensors["trained"].any())
        ready_s = torch.full((num_devices,), float(tensors["ready_s"].max()), dtype=torch.double)
        tensors |= {"trained": trained, "ready_s": ready_s}
        facts = facts.model_copy(update={"devices": here})
    return _state(path, facts, tensors, job, np.array([device]))


def saved_step(path: Path) -> int:
    """The step of a checkpoint.

    Raises:
        InputError: a damaged file.
    """
    return _read(path)[0].step


def _read(path: Path) -> tuple[Facts, dict[str, Tensor]]:
    """What is in a file."""
    try:
        with safe_open(path, framework="pt") as file:
            facts = read_facts(file, path)
            names = file.keys()  # a method: the file is no mapping
            tensors = {name: file.get_tensor(name) for name in names}
    except InputError:
        raise
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, error) from error
    return facts, tensors


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError("checkpoint", str(path), "a whole file", f"({error}) {ANEW}")


def _state(
    path: Path, facts: Facts, tensors: dict[str, Tensor], job: Job, devices: IntArray | None
) -> State:
    """The state in a file, if it fits the job."""
    num_devices = job.network.num_devices
    memory = initial_memory(job)
    if devices is not None:
        memory = own_rows(job, memory, devices)
    try:
        _check_job(path, facts, job)
        state = State(
            step=facts.step,
            X=_rows(path, tensors, job, num_devices if devices is None else len(devices)),
            memory=memory,
            trained=_checked(path, tensors, "trained", torch.zeros(num_devices, dtype=torch.bool)),
            ready_s=_checked(
                path, tensors, "ready_s", torch.zeros(num_devices, dtype=torch.double)
            ),
            transmissions=facts.transmissions,
            real_s=facts.real_s,
        )
    except InputError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, error) from error
    _check_devices(path, facts, _devices(job, devices), state)
    return replace(state, memory=_memory(path, tensors, job, state, memory))


def _check_job(path: Path, facts: Facts, job: Job) -> None:
    """Refuse a state of another method or model, or of a step that the job does not have."""
    if facts.method not in ("", job.method):
        raise InputError(f"method in {path}", facts.method, job.method, ANEW)
    if facts.raw["layout"] != _layout(job):
        raise InputError(f"layout in {path}", "another", "this model's", ANEW)
    if facts.step > job.last_step:
        raise InputError(f"step in {path}", facts.step, f"at most {job.last_step}, the last", ANEW)
    if facts.cycle != facts.step // job.steps_per_cycle:
        expected = f"{facts.step // job.steps_per_cycle}, the one of step {facts.step}"
        raise InputError(f"cycle in {path}", facts.cycle, expected, ANEW)


def _check_devices(path: Path, facts: Facts, devices: dict[str, int], state: State) -> None:
    if facts.devices != devices:
        raise InputError(f"devices in {path}", ", ".join(facts.devices), ", ".join(devices), ANEW)
    if (state.ready_s < 0).any():
        raise InputError(
            f"ready_s in {path}", float(state.ready_s.min()), "seconds of at least 0", ANEW
        )


def _checked(
    path: Path, tensors: dict[str, Tensor], name: str, like: Tensor
) -> np.ndarray[Any, Any]:
    """What a file has under a name, if it is like another tensor."""
    _check_tensor(path, name, tensors[name], like)
    return np.asarray(tensors[name].numpy())


def load_parameters(path: Path) -> FloatArray:
    """(n, P) the trained parameters in a checkpoint, as they lie in rows.

    Raises:
        InputError: it is missing or damaged.
    """
    try:
        with safe_open(path, framework="pt") as file:
            trained = read_facts(file, path).trained_names
            stacks = [file.get_tensor(PARAMETERS + name) for name in trained]
        rows = [torch.stack([flat(one) for one in stack]) for stack in stacks]
        return np.asarray(torch.cat(rows, dim=1).double().numpy())
    except InputError:
        raise
    except (OSError, SafetensorError, TypeError, ValueError, RuntimeError) as error:
        raise InputError("checkpoint", str(path), "a whole file", f"({error})") from None


def _rows(path: Path, tensors: dict[str, Tensor], job: Job, number: int) -> Tensor:
    """(n, d) rows of the parameters in a file."""
    start = job.task.initial_parameters
    X = start.new_empty((number, len(start)))
    for name, place in job.task.layout.stacked(X).items():
        found = tensors[PARAMETERS + name].to(X.device)
        _check_tensor(path, name, found, place)
        place.copy_(found)
    return X


def _memory(
    path: Path, tensors: dict[str, Tensor], job: Job, state: State, memory: dict[str, Tensor]
) -> dict[str, Tensor]:
    """What devices keep: from the file where it matters for what comes, else as at the start."""
    needed = memory if lasting(job, state) else lasting_memory(memory)
    for name in needed:
        found = _kept(tensors, name)
        if found is None:
            expected = f"{name}, which this rule and these optimizers keep"
            raise InputError(f"memory in {path}", "none", expected, ANEW)
        _check_tensor(path, name, found, memory[name])
        memory[name] = found.to(memory[name].device)
    return memory


def _kept(tensors: dict[str, Tensor], name: str) -> Tensor | None:
    """(k, w) what is kept under a name; buffers at home are with the models."""
    owner = memory_name(MODEL, "")
    if not name.startswith(owner):
        return tensors.get(_MEMORY + name)
    stack = tensors.get(PARAMETERS + name.removeprefix(owner))
    return None if stack is None else stack.reshape(len(stack), -1)


def _check_tensor(path: Path, name: str, tensor: Tensor, like: Tensor) -> None:
    """Refuse a tensor of another shape or type, or with numbers that are not finite."""
    if tensor.shape != like.shape:
        raise InputError(
            f"shape of {name} in {path}", tuple(tensor.shape), f"{tuple(like.shape)}", ANEW
        )
    if tensor.dtype != like.dtype:
        raise InputError(f"type of {name} in {path}", str(tensor.dtype), f"{like.dtype}", ANEW)
    if not torch.isfinite(tensor).all():
        raise InputError(f"{name} in {path}", "not finite", "finite numbers", ANEW)


def _layout(job: Job) -> dict[str, dict[str, object]]:
    """Where each parameter and mixed buffer lies in a row, as JSON has it."""
    layout = job.task.layout
    return {
        name: {
            "shape": list(slot.shape),
            "stride": list(slot.stride),
            "offset": slot.offset,
            "trains": name in layout.parameters,
        }
        for name, slot in layout.slots.items()
    }
