"""Models out of checkpoints: one device's, or the mean of all."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ssdfl.engine.checkpoint import FROZEN, PARAMETERS
from ssdfl.engine.checkpoint_file import read_facts
from ssdfl.errors import InputError
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
        places = {number: (file, row) for file in files for number, row in file.rows.items()}
        known_names = {
            name: number for file in files for name, number in file.facts.devices.items()
        }
        chosen = (
            next(iter(places)) if len(places) == 1 else _number(device, known_names, places.keys())
        )
        own = _mean(files) if chosen is None else places[chosen][0].own(places[chosen][1])
        state = own | files[0].shared()
        in_order = {name: state[name] for name in files[0].facts.state if name in state}
        cycle = min(file.facts.cycle for file in files)
        return SavedModel(in_order, files[0].facts.model, chosen, cycle)


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


def _number(device: int | str, names: dict[str, int], known: Sequence[int] | Any) -> int | None:
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
