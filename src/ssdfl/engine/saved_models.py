"""Models out of checkpoints: one device's, or the mean of all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ssdfl.engine.checkpoint import FROZEN, PARAMETERS
from ssdfl.engine.checkpoint_file import read_facts
from ssdfl.errors import InputError
from ssdfl.mappings import picked
from ssdfl.records.config import Experiment

MEAN = "mean"


@dataclass(frozen=True, eq=False)
class SavedModel:
    """One model as a checkpoint has it.

    Attributes:
        state: its parameters and buffers, named and shaped as its ``state_dict``.
        facts: what it takes and gives, and how inputs were normalised.
        device: the number of its device; None for the mean of all.
        cycle: after which it was saved.
    """

    state: dict[str, Tensor]
    facts: dict[str, Any] | None
    device: int | None
    cycle: int


def read_model(paths: Sequence[Path], device: int | str) -> SavedModel:
    """The model of a device, or the mean of all, in the checkpoints of a run.

    Args:
        paths: one file of all devices, or one for each.
        device: its number or name, or ``mean``; of one device alone it is the only one.

    Raises:
        InputError: a damaged file, one of an earlier version, or no such device.
    """
    with ExitStack() as stack:
        files = [_File(stack.enter_context(_opened(path)), path) for path in paths]
        _check_alike(files)
        chosen = _chosen(files, device)
        state = _state(files, chosen) | files[0].shared()
        cycle = min(file.facts.cycle for file in files)
        in_order = picked(state, files[0].facts.state)
        return SavedModel(in_order, files[0].facts.model, chosen, cycle)


def _chosen(files: Sequence[_File], device: int | str) -> int | None:
    """The number of a device, of the only one if there are no others; None for the mean of all."""
    numbers = dict.fromkeys(chain.from_iterable(file.rows for file in files))
    if len(numbers) == 1:
        return next(iter(numbers))
    names = dict(chain.from_iterable(file.facts.devices.items() for file in files))
    return _number(device, names, numbers)


def _state(files: Sequence[_File], device: int | None) -> dict[str, Tensor]:
    """What a device has of the model, or the mean of all devices."""
    if device is None:
        return _mean(files)
    file = next(file for file in files if device in file.rows)
    return file.own(file.rows[device])


def about_model(
    experiment: Experiment, method: str, seed: int, saved: SavedModel
) -> dict[str, Any]:
    """Where a model comes from, for the file that it is written into."""
    return {
        "experiment": experiment.name,
        "model": {"name": experiment.model.name, "options": experiment.model.options},
        "data": experiment.data.name,
        "method": method,
        "seed": seed,
        "device": MEAN if saved.device is None else saved.device,
        "cycle": saved.cycle,
    }


class _File:
    """An open checkpoint."""

    def __init__(self, file: Any, path: Path) -> None:
        self.file, self.path, self.facts = file, path, read_facts(file, path)
        self.rows = {number: row for row, number in enumerate(self.facts.devices.values())}

    def names(self, prefix: str) -> dict[str, str]:
        """The names in the model of tensors whose names in the file begin so."""
        names = self.file.keys()  # a method: the file is no mapping
        found = [name for name in names if name.startswith(prefix)]
        return {name.removeprefix(prefix): name for name in found}

    def shapes(self) -> dict[str, list[int]]:
        """The shapes of what belongs to a device.

        Raises:
            InputError: not one row for each device.
        """
        found = {}
        for name, key in self.names(PARAMETERS).items():
            rows, *found[name] = self.file.get_slice(key).get_shape() or [0]
            if rows != len(self.facts.devices):
                expected = f"{len(self.facts.devices)} rows, one for each device"
                raise InputError(
                    f"shape of {name} in {self.path}", rows, expected, "It is damaged."
                )
        return found

    def own(self, row: int) -> dict[str, Tensor]:
        """What belongs to the device in a row."""
        names = self.names(PARAMETERS)
        return {name: self.file.get_slice(key)[row : row + 1][0] for name, key in names.items()}

    def shared(self) -> dict[str, Tensor]:
        """What all devices share."""
        return {name: self.file.get_tensor(key) for name, key in self.names(FROZEN).items()}


def _check_alike(files: Sequence[_File]) -> None:
    """Refuse files of different models."""
    first = files[0].shapes()
    for file in files[1:]:
        if file.shapes() != first:
            remedy = "Is it of another run?"
            raise InputError(
                f"parameters in {file.path}", "others", f"those in {files[0].path}", remedy
            )


def _opened(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (OSError, SafetensorError) as error:
        raise InputError("checkpoint", str(path), "a whole file", f"({error})") from None


def _number(device: int | str, names: dict[str, int], known: Collection[int]) -> int | None:
    """A device's number, by its number or name; None for the mean."""
    if device == MEAN:
        return None
    number = names.get(device) if isinstance(device, str) else device
    if number is None and isinstance(device, str) and device.isdecimal():
        number = int(device)
    if number not in known:
        expected = f"a number from 0 to {max(known)}, a device's name, or {MEAN}"
        raise InputError("device", device, expected, "Choose one whose model was saved.")
    return number


def _mean(files: Sequence[_File]) -> dict[str, Tensor]:
    """The mean of everyone's numbers; of whole numbers the largest, as `mean_of_home` has it."""
    found = {}
    for name, key in files[0].names(PARAMETERS).items():
        stack = torch.cat([one.file.get_tensor(key) for one in files])
        found[name] = stack.mean(0) if stack.is_floating_point() else stack.amax(0)
    return found
