"""Read models from checkpoints: one device's, or the mean of all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ssdfl.engine.checkpoint_file import FROZEN, PARAMETERS, Facts, read_facts
from ssdfl.engine.checkpoint_parts import Holder, holders_of, opened
from ssdfl.errors import InputError
from ssdfl.mappings import picked
from ssdfl.records.config import Experiment

MEAN = "mean"


@dataclass(frozen=True, eq=False)
class SavedModel:
    """One model in a checkpoint.

    Attributes:
        state: its parameters and buffers, named and shaped as its ``state_dict``.
        facts: its inputs and outputs, and how inputs were normalised.
        device: the number of its device; None for the mean of all.
        cycle: the cycle after which it was saved.
    """

    state: dict[str, Tensor]
    facts: dict[str, Any] | None
    device: int | None
    cycle: int


def read_model(paths: Sequence[Path], device: int | str) -> SavedModel:
    """The model of a device, or the mean of all, in the checkpoints of a run.

    Args:
        paths: one checkpoint of all devices, or one for each.
        device: its number or name, or ``mean``; ignored if there is only one device.

    Raises:
        InputError: a file is damaged or of an earlier version, or there is no such device.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(_opened(path)) for path in paths]
        first, holders = files[0], [holder for file in files for holder in file.holders]
        _check_alike(holders)
        places = {
            number: (holder, row)
            for holder in holders
            for row, number in enumerate(holder.devices.tolist())
        }
        names = {name: number for file in files for name, number in file.facts.devices.items()}
        chosen = next(iter(places)) if len(places) == 1 else _number(device, names, places.keys())
        own = _mean(holders) if chosen is None else _own(*places[chosen])
        state = own | first.shared()
        in_order = picked(state, first.facts.state)
        cycle = min(file.facts.cycle for file in files)
        return SavedModel(in_order, first.facts.model, chosen, cycle)


def about_model(
    experiment: Experiment, method: str, seed: int, saved: SavedModel
) -> dict[str, Any]:
    """The origin of a model, for the metadata of exported files."""
    return {
        "experiment": experiment.name,
        "model": {"name": experiment.model.name, "options": experiment.model.options},
        "data": experiment.data.name,
        "method": method,
        "seed": seed,
        "device": MEAN if saved.device is None else saved.device,
        "cycle": saved.cycle,
    }


@dataclass(frozen=True, eq=False)
class _Opened:
    """An open checkpoint, and the open files with the rows of its devices."""

    file: Any
    facts: Facts
    holders: list[Holder]

    def shared(self) -> dict[str, Tensor]:
        """The tensors that all devices share."""
        names = _names(self.file, FROZEN)
        return {name: self.file.get_tensor(key) for name, key in names.items()}


@contextmanager
def _opened(path: Path) -> Iterator[_Opened]:
    with opened(path) as file:
        facts = read_facts(file, path)
        with holders_of(path, facts) as holders:
            yield _Opened(file, facts, holders)


def _names(file: Any, prefix: str) -> dict[str, str]:
    """The names in the model of tensors whose names in a file have a prefix."""
    found = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118 - not a dict
    return {name.removeprefix(prefix): name for name in found}


def _shapes(holder: Holder) -> dict[str, list[int]]:
    """The shapes of a device's tensors.

    Raises:
        InputError: a tensor does not have one row for each device.
    """
    found = {}
    for name, key in _names(holder.file, PARAMETERS).items():
        rows, *found[name] = holder.file.get_slice(key).get_shape() or [0]
        if rows != len(holder.devices):
            expected = f"{len(holder.devices)} rows, one for each device"
            raise InputError(f"shape of {name} in {holder.path}", rows, expected, "It is damaged.")
    return found


def _own(holder: Holder, row: int) -> dict[str, Tensor]:
    """The tensors of the device in a row."""
    names = _names(holder.file, PARAMETERS)
    return {name: holder.file.get_slice(key)[row : row + 1][0] for name, key in names.items()}


def _check_alike(holders: Sequence[Holder]) -> None:
    """Refuse files of different models."""
    first = _shapes(holders[0])
    for holder in holders[1:]:
        if _shapes(holder) != first:
            what, expected = f"parameters in {holder.path}", f"those in {holders[0].path}"
            raise InputError(what, "others", expected, "Is it from another run?")


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


def _mean(holders: Sequence[Holder]) -> dict[str, Tensor]:
    """The mean over devices; for whole numbers the maximum, as in `mean_of_home`.

    Files are memory-mapped and added one by one, since all together may be too large.
    """
    found = {}
    number = sum(len(holder.devices) for holder in holders)
    for name, key in _names(holders[0].file, PARAMETERS).items():
        stacks = [holder.file.get_tensor(key) for holder in holders]
        if stacks[0].is_floating_point():
            found[name] = torch.stack([stack.sum(0) for stack in stacks]).sum(0) / number
        else:
            found[name] = torch.stack([stack.amax(0) for stack in stacks]).amax(0)
    return found
