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

from ssdfl.engine.checkpoint import FROZEN, PARAMETERS, facts_in
from ssdfl.errors import InputError

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
    facts: dict[str, Any]
    device: int | None
    cycle: int


def read_model(paths: Sequence[Path], device: int | str, names: dict[str, int] | None = None) -> SavedModel:
    """The model of a device, or the mean of all, in the checkpoints of a run.

    Args:
        paths: one file of all devices, or one for each.
        device: its number or name, or ``mean``.
        names: other names of devices than those in the files, and their numbers.

    Raises:
        InputError: a damaged file, one of an earlier version, or no such device.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(_opened(path)) for path in paths]
        facts = [_checked_facts(file, path) for file, path in zip(files, paths, strict=True)]
        places = {
            number: (file, row)
            for file, known in zip(files, facts, strict=True)
            for row, number in enumerate(known["devices"].values())
        }
        known_names = {name: number for one in facts for name, number in one["devices"].items()}
        chosen = _number(device, known_names | (names or {}), places.keys())
        own = _mean(files) if chosen is None else _own(*places[chosen])
        shared = {
            name.removeprefix(FROZEN): files[0].get_tensor(name)
            for name in files[0].keys()  # noqa: SIM118 - not a dict
            if name.startswith(FROZEN)
        }
        order = {name: place for place, name in enumerate(facts[0]["state"])}
        state = own | shared
        in_order = {name: state[name] for name in sorted(state, key=order.__getitem__)}
        return SavedModel(in_order, facts[0]["model"], chosen, min(one["cycle"] for one in facts))


def _opened(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (OSError, SafetensorError) as error:
        raise InputError("checkpoint", str(path), "a whole file", f"({error})") from None


def _checked_facts(file: Any, path: Path) -> dict[str, Any]:
    try:
        return facts_in(file, path)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise InputError("checkpoint", str(path), "one that ssdfl wrote", f"({error})") from None


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


def _names(file: Any) -> list[str]:
    return [name for name in file.keys() if name.startswith(PARAMETERS)]  # noqa: SIM118 - not a dict


def _own(file: Any, row: int) -> dict[str, Tensor]:
    return {name.removeprefix(PARAMETERS): file.get_slice(name)[row : row + 1][0] for name in _names(file)}


def _mean(files: Sequence[Any]) -> dict[str, Tensor]:
    """The mean of everyone's numbers; of whole numbers the largest, as `mean_of_home` has it."""
    found = {}
    for name in _names(files[0]):
        stack = torch.cat([file.get_tensor(name) for file in files])
        found[name.removeprefix(PARAMETERS)] = stack.mean(0) if stack.is_floating_point() else stack.amax(0)
    return found
