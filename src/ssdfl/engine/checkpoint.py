"""A run's state on disk, in safetensors: readable anywhere, executable nowhere.

model.NAME          (n, …) a parameter or buffer of n devices' models, named as in `state_dict`
frozen.NAME         (…) one that all devices share
memory.OWNER.NAME   (k, w) memory of optimizers and rules, in the order of the metadata's layout
trained, ready_s    (N,) which devices trained last, and when each device is ready

The metadata ``ssdfl`` is JSON: a checksum of the rest, the method, the progress of the run, the
devices, the inputs and outputs of their models, and the layout of a row, in which ssdfl keeps a
model's values while it trains. Each rank writes its models and memory into a separate part, next to
the checkpoint (`engine.checkpoint_parts`).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.engine.checkpoint_file import (
    ANEW,
    FORMAT,
    FORMAT_IN_PARTS,
    FROZEN,
    MEMORY,
    PARAMETERS,
    Facts,
    facts_of,
    read_facts,
    write_tensors,
)
from ssdfl.engine.checkpoint_parts import (
    Holder,
    check_tensor,
    damaged,
    gathered,
    holders_of,
    opened,
    part_name,
    remove_parts,
    write_part,
)
from ssdfl.engine.job import Job
from ssdfl.engine.ranks import all_succeed, find_on_rank_0, rank, texts_of_ranks, wait_for_ranks
from ssdfl.engine.shares import RankShares
from ssdfl.engine.state import (
    MODEL,
    State,
    home_of,
    initial_memory,
    lasting,
    lasting_memory,
    memory_keepers,
    memory_name,
    own_rows,
)
from ssdfl.errors import InputError
from ssdfl.files import atomic_path
from ssdfl.learning import Home
from ssdfl.learning.layout import flat
from ssdfl.mappings import prefixed, without


def save_state(state: State, job: Job, path: Path, devices: IntArray | None = None) -> None:
    """Write a state; optimizers' memory is only written if later steps need it.

    Each rank writes the rows of its own devices. When all parts are on disk, rank 0 writes their
    list. All ranks have to call this at the same time.

    Args:
        devices: the devices of the state; all of the job's by default.
    """
    if isinstance(state.shares, RankShares):
        _save_parts(state, job, path, state.shares)
        return
    tensors = _rows_to_save(job, state) | _common_to_save(job, state)
    _write(tensors, path, _facts(job, state, devices))
    remove_parts(path.parent, ())


def _save_parts(state: State, job: Job, path: Path, shares: RankShares) -> None:
    """Write this rank's part of a state, and in rank 0 the list of parts."""
    rows = _on_cpu(_rows_to_save(job, state))
    checksum = write_part(path.parent, rank(), rows, _facts(job, state, shares.devices))
    ready_s = shares.everyone(torch.from_numpy(state.ready_s[shares.devices])).numpy()
    checksums = texts_of_ranks(checksum)  # now rank 0 knows that all parts are written
    if rank() == 0:
        parts = {
            part_name(number, found): {"checksum": found, "devices": devices.tolist()}
            for number, (found, devices) in enumerate(zip(checksums, shares.parts, strict=True))
        }
        facts = _facts(job, state, None) | {"format": FORMAT_IN_PARTS, "parts": parts}
        _write(_common_to_save(job, replace(state, ready_s=ready_s)), path, facts)
    wait_for_ranks()
    remove_parts(path.parent, [part_name(rank(), checksum)], rank(), len(shares.parts))


def _rows_to_save(job: Job, state: State) -> dict[str, Tensor]:
    """The tensors of devices: their models and memory."""
    kept = state.memory if lasting(job, state) else lasting_memory(state.memory)
    own = home_of(kept)
    memory = prefixed(MEMORY, without(kept, _names_at_home(own)))
    return prefixed(PARAMETERS, _models(job, state, own)) | memory


def _common_to_save(job: Job, state: State) -> dict[str, Tensor]:
    """The tensors that all devices share."""
    return prefixed(FROZEN, job.task.shared_state()) | {
        "trained": torch.from_numpy(state.trained),
        "ready_s": torch.from_numpy(state.ready_s),
    }


def _write(tensors: dict[str, Tensor], path: Path, facts: dict[str, object]) -> None:
    with atomic_path(path) as temporary:
        write_tensors(_on_cpu(tensors), temporary, facts)


def _on_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.cpu() for name, tensor in tensors.items()}


def _names_at_home(home: Home) -> set[str]:
    return {memory_name(MODEL, name) for name in home}


def _models(job: Job, state: State, home: Home) -> dict[str, Tensor]:
    """(n, …) the model's tensors, from rows and from buffers at home."""
    shapes = job.task.layout.home
    at_home = {name: rows.reshape(-1, *shapes[name][0]) for name, rows in home.items()}
    return job.task.layout.stacked(state.X) | at_home


def _facts(job: Job, state: State, devices: IntArray | None) -> dict[str, object]:
    """The file's metadata."""
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


@dataclass(frozen=True, eq=False)
class Common:
    """The part of a checkpoint that concerns all devices."""

    facts: Facts
    trained: Tensor
    ready_s: Tensor

    def to_text(self) -> str:
        """JSON text, which keeps every bit of a number."""
        return json.dumps([self.facts.raw, self.trained.tolist(), self.ready_s.tolist()])

    @classmethod
    def from_text(cls, text: str) -> Common:
        """The inverse of `to_text`."""
        facts, trained, ready_s = json.loads(text)
        doubles = torch.tensor(ready_s, dtype=torch.double)
        return cls(facts_of(facts), torch.tensor(trained, dtype=torch.bool), doubles)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A saved state, from which each process reads the rows of its own devices.

    Attributes:
        common: the part that concerns all devices; only rank 0 needs it.
    """

    path: Path
    common: Common | None = None

    def part(self, job: Job, devices: IntArray) -> State:
        """The state of some devices. All ranks have to call this at the same time.

        Each asks for its own devices. Only rank 0 reads the common part, since other machines may
        have only their own parts.

        Raises:
            InputError: some rank finds a mistake in the files; raised in all ranks.
        """
        text = find_on_rank_0(lambda: (self.common or read_common(self.path)).to_text())
        common = Common.from_text(text)
        return all_succeed(lambda: _state(self.path, common, job, devices))


def load_state(path: Path, job: Job, devices: IntArray | None = None) -> State:
    """The state that `save_state` wrote.

    Args:
        devices: the devices whose rows to read; all of the job's by default.

    Raises:
        InputError: the file is damaged, or belongs to another model, network, rule or optimizers.
    """
    return _state(path, read_common(path), job, _all_devices(job) if devices is None else devices)


def load_moved_state(path: Path, job: Job, device: int) -> State:
    """The state of one device, which may have been written when the network had other devices.

    Args:
        device: its number in the job.

    Raises:
        InputError: the file is damaged, or belongs to another device, model, rule or optimizer.
    """
    common = read_common(path)
    num_devices, here = job.network.num_devices, _devices(job, np.array([device]))
    same_place = common.facts.devices == here and common.trained.numel() == num_devices
    if common.facts.devices.keys() == here.keys() and not same_place:
        trained = torch.zeros(num_devices, dtype=torch.bool)
        trained[device] = bool(common.trained.any())
        latest_s = float(common.ready_s.max())
        ready_s = torch.full((num_devices,), latest_s, dtype=torch.double)
        moved = common.facts.model_copy(update={"devices": here})
        common = Common(moved, trained, ready_s)
    return _state(path, common, job, np.array([device]))


def saved_step(path: Path) -> int:
    """The step of a checkpoint.

    Raises:
        InputError: the file is damaged.
    """
    return read_common(path).facts.step


def read_common(path: Path) -> Common:
    """The part of a checkpoint that concerns all devices.

    Raises:
        InputError: the file is damaged.
    """
    with opened(path) as file:
        facts = read_facts(file, path)
        return Common(facts, file.get_tensor("trained"), file.get_tensor("ready_s"))


def _all_devices(job: Job) -> IntArray:
    return np.arange(job.network.num_devices)


def _state(path: Path, common: Common, job: Job, devices: IntArray) -> State:
    """The state of some devices in a checkpoint, if it fits the job."""
    facts = common.facts
    _check_job(path, facts, job)
    _check_devices(path, facts, job, devices)
    num_devices = job.network.num_devices
    trained = _checked(path, "trained", common.trained, num_devices, torch.bool)
    ready_s = _checked(path, "ready_s", common.ready_s, num_devices, torch.double)
    _check_times(path, ready_s)
    memory = own_rows(job, initial_memory(job), devices)
    state = State(
        step=facts.step,
        X=job.task.initial_parameters[None, :0],
        memory=memory,
        trained=trained,
        ready_s=ready_s,
        transmissions=facts.transmissions,
        real_s=facts.real_s,
    )
    with holders_of(path, facts, devices) as holders:
        memory = _memory(holders, job, state, devices)
        return replace(state, X=_rows(holders, job, devices), memory=memory)


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


def _check_devices(path: Path, facts: Facts, job: Job, wanted: IntArray) -> None:
    """Refuse a checkpoint of other devices."""
    found, expected = facts.devices, _devices(job, wanted)
    known = expected.items() <= found.items() <= _devices(job, None).items()
    if not known or list(found.values()) != sorted(found.values()):
        raise InputError(f"devices in {path}", ", ".join(found), ", ".join(expected), ANEW)


def _check_times(path: Path, ready_s: FloatArray) -> None:
    if (ready_s < 0).any():
        raise InputError(f"ready_s in {path}", float(ready_s.min()), "seconds of at least 0", ANEW)


def _checked(
    path: Path, name: str, tensor: Tensor, length: int, dtype: torch.dtype
) -> np.ndarray[Any, Any]:
    """The values of a tensor, after checking its length and type."""
    check_tensor(path, name, tensor, (length,), dtype)
    return np.asarray(tensor.numpy())


def load_parameters(path: Path) -> FloatArray:
    """(n, P) the trained parameters in a checkpoint, in the order of rows.

    Raises:
        InputError: the file is missing or damaged.
    """
    facts = read_common(path).facts
    with holders_of(path, facts) as holders:
        try:
            rows = torch.cat([_trained_rows(holder) for holder in holders])
        except RuntimeError as error:
            raise damaged(path, error) from None
        devices = np.concatenate([holder.devices for holder in holders])
        if len(rows) != len(devices):
            expected = f"{len(devices)}, one for each device"
            raise InputError(f"rows of parameters in {path}", len(rows), expected, ANEW)
        order = np.argsort(devices)
        return np.asarray(rows[torch.from_numpy(order)].double().numpy())


def _trained_rows(holder: Holder) -> Tensor:
    """(n, P) the trained parameters in a file."""
    names = holder.facts.trained_names
    stacks = [holder.file.get_tensor(PARAMETERS + name) for name in names]
    return torch.cat([torch.stack([flat(one) for one in stack]) for stack in stacks], dim=1)


def _rows(holders: list[Holder], job: Job, devices: IntArray) -> Tensor:
    """(n, d) rows of the parameters in files."""
    start = job.task.initial_parameters
    X = start.new_empty((len(devices), len(start)))
    for name, place in job.task.layout.stacked(X).items():
        place.copy_(gathered(holders, PARAMETERS + name, place, _all_devices(job), devices))
    return X


def _memory(holders: list[Holder], job: Job, state: State, devices: IntArray) -> dict[str, Tensor]:
    """The memory of devices: from files if later steps need it, otherwise the initial memory."""
    memory, keepers = dict(state.memory), memory_keepers(job)
    for name in memory if lasting(job, state) else lasting_memory(memory):
        key, like = _saved_as(job, name, memory[name])
        for holder in holders:
            if key not in holder.file.keys():  # noqa: SIM118 - not a dict
                expected = f"{name}, which this rule and these optimizers keep"
                raise InputError(f"memory in {holder.path}", "none", expected, ANEW)
        found = gathered(holders, key, like, keepers[name], devices)
        memory[name] = found.reshape(memory[name].shape)
    return memory


def _saved_as(job: Job, name: str, rows: Tensor) -> tuple[str, Tensor]:
    """The name of memory in files, and rows of its shape; buffers at home are with the models."""
    owner = memory_name(MODEL, "")
    if not name.startswith(owner):
        return MEMORY + name, rows
    inside = name.removeprefix(owner)
    shape = job.task.layout.home[inside][0]
    return PARAMETERS + inside, rows.reshape(-1, *shape)


def _layout(job: Job) -> dict[str, dict[str, object]]:
    """The position of each parameter and mixed buffer in a row, for JSON."""
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
