"""A run's state on disk, in safetensors: readable anywhere, executable nowhere."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ssdfl.engine.job import Job, State
from ssdfl.errors import InputError
from ssdfl.files import atomic_path


def save_state(state: State, job: Job, path: Path) -> None:
    """Write a state; momentum and anchors only if someone is in the middle of a regime.

    The file's metadata ``ssdfl`` is JSON with the name and shape of every model parameter, so that row i
    of ``X`` can be turned back into device i's model without this library.
    """
    tensors = {
        "X": state.X,
        "trained": torch.from_numpy(state.trained),
        "ready_s": torch.from_numpy(state.ready_s),
    }
    if state.trained.any():
        tensors |= {"V": state.V, "anchor": state.anchor}
    layout = {name: list(shape) for name, shape in job.task.layout.items()}
    progress = {"cycle": state.cycle, "transmissions": state.transmissions, "layout": layout}
    with atomic_path(path) as temporary:
        save_file(
            {name: tensor.contiguous() for name, tensor in tensors.items()},
            temporary,
            metadata={"ssdfl": json.dumps(progress)},  # one key: several would be stored in random order
        )


def load_state(path: Path, job: Job) -> State:
    """The state that `save_state` wrote.

    Raises:
        InputError: a damaged file, or one of another model or network.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            progress = json.loads(file.metadata()["ssdfl"])
        nothing = torch.zeros_like(tensors["X"])
        state = State(
            cycle=progress["cycle"],
            X=tensors["X"],
            V=tensors.get("V", nothing),
            anchor=tensors.get("anchor", nothing),
            trained=tensors["trained"].numpy(),
            ready_s=tensors["ready_s"].numpy(),
            transmissions=progress["transmissions"],
        )
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            "checkpoint", str(path), "a whole file", f"({error}) Delete it to start this run anew."
        ) from error
    expected = (job.network.num_devices, job.task.num_parameters)
    if tuple(state.X.shape) != expected:
        raise InputError(f"shape in {path}", tuple(state.X.shape), f"{expected}", "Delete it to start anew.")
    return state
