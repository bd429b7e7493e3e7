"""The rows of devices on disk: in one checkpoint, or in parts that ranks write in parallel.

checkpoint.safetensors              everything; or only shared tensors, and the list of parts
part-RANK-CHECKSUM.safetensors      the models and memory of one rank's devices

A part never overwrites another one, since its checksum is in its name. So the last checkpoint stays
complete until the new list replaces the old one. Only then are the old parts removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ssdfl.arrays import IntArray
from ssdfl.engine.checkpoint_file import (
    ANEW,
    PARAMETERS,
    Facts,
    Part,
    read_facts,
    sealed,
    write_sealed,
)
from ssdfl.errors import InputError
from ssdfl.files import atomic_path

PARTS = "part-*.safetensors"
"""A pattern for the names of parts, for `glob`."""
_DIGITS = 16


@dataclass(frozen=True, eq=False)
class Holder:
    """An open file with the rows of some devices.

    Attributes:
        devices: (n,) the devices of the rows, in ascending order.
    """

    file: Any
    path: Path
    facts: Facts
    devices: IntArray

    def rows(self, name: str, like: Tensor, keepers: IntArray) -> tuple[Tensor, IntArray]:
        """The rows in the file under a name, and their devices.

        Args:
            like: a tensor with rows of the right shape and type.
            keepers: the devices that have such a row, in this or another file.

        Raises:
            InputError: the tensor has another shape or type.
        """
        devices = self.devices[np.isin(self.devices, keepers)]
        found: Tensor = self.file.get_tensor(name)
        check_tensor(self.path, name, found, (len(devices), *like.shape[1:]), like.dtype)
        return found, devices


def gathered(
    holders: Sequence[Holder], name: str, like: Tensor, keepers: IntArray, wanted: IntArray
) -> Tensor:
    """(k, …) the rows of the wanted devices that have one, in ascending order."""
    kept = wanted[np.isin(wanted, keepers)]
    gathered = like.new_empty((len(kept), *like.shape[1:]))
    for holder in holders:
        found, devices = holder.rows(name, like, keepers)
        chosen = np.isin(devices, kept)
        places = torch.from_numpy(np.searchsorted(kept, devices[chosen]))
        some = found[torch.from_numpy(chosen)]
        gathered[places.to(like.device)] = some.to(like.device)
    return gathered


@contextmanager
def holders_of(path: Path, facts: Facts, wanted: IntArray | None = None) -> Iterator[list[Holder]]:
    """The open files with rows of some devices, or of all: the checkpoint itself, or its parts.

    Raises:
        InputError: a file is missing, damaged, or not the one that the checkpoint lists.
    """
    with ExitStack() as stack:
        if not facts.parts:
            file = stack.enter_context(opened(path))
            devices = np.array(list(facts.devices.values()), dtype=np.int64)
            yield [Holder(file, path, facts, devices)]
            return
        _check_parts(path, facts)
        yield [
            _holder(stack, path.parent / name, part, facts)
            for name, part in facts.parts.items()
            if wanted is None or np.isin(part.devices, wanted).any()
        ]


def _check_parts(path: Path, facts: Facts) -> None:
    """Refuse parts that do not have exactly one row for each device."""
    listed = [device for part in facts.parts.values() for device in part.devices]
    if sorted(listed) != list(facts.devices.values()):
        expected = "one row for each device"
        raise InputError(f"parts in {path}", ", ".join(facts.parts), expected, ANEW)


def _holder(stack: ExitStack, path: Path, listed: Part, of: Facts) -> Holder:
    """Open a part, and check that it is the listed one."""
    if not path.exists():
        remedy = f"Put the parts of all machines into one folder. {ANEW}"
        raise InputError("part of a checkpoint", str(path), "an existing file", remedy)
    file = stack.enter_context(opened(path))
    facts = read_facts(file, path)
    same = facts.checksum == listed.checksum and facts.step == of.step
    if not same or list(facts.devices.values()) != listed.devices:
        expected = "the one that the checkpoint lists"
        raise InputError("part of a checkpoint", str(path), expected, f"Restore it. {ANEW}")
    return Holder(file, path, facts, np.array(listed.devices, dtype=np.int64))


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a file of tensors; its errors become an `InputError`."""
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> InputError:
    """The error for a damaged file."""
    return InputError("checkpoint", str(path), "a whole file", f"({error}) {ANEW}")


def check_tensor(
    path: Path, name: str, tensor: Tensor, shape: Sequence[int], dtype: torch.dtype
) -> None:
    """Refuse a tensor of another shape or type, or with numbers that are not finite."""
    of_model = name.removeprefix(PARAMETERS)
    if tuple(tensor.shape) != tuple(shape):
        raise InputError(
            f"shape of {of_model} in {path}", tuple(tensor.shape), f"{tuple(shape)}", ANEW
        )
    if tensor.dtype != dtype:
        raise InputError(f"type of {of_model} in {path}", str(tensor.dtype), f"{dtype}", ANEW)
    if not torch.isfinite(tensor).all():
        raise InputError(f"{of_model} in {path}", "not finite", "finite numbers", ANEW)


def write_part(
    folder: Path, rank: int, tensors: dict[str, Tensor], facts: dict[str, object]
) -> str:
    """Write one rank's part; returns its checksum."""
    text, checksum = sealed(tensors, facts)
    with atomic_path(folder / part_name(rank, checksum)) as temporary:
        write_sealed(tensors, temporary, text)
    return checksum


def part_name(rank: int, checksum: str) -> str:
    """The name of a part's file."""
    return f"part-{rank}-{checksum[:_DIGITS]}.safetensors"


def remove_parts(folder: Path, kept: Sequence[str], rank: int = 0, num_ranks: int = 1) -> None:
    """Remove parts that are no longer listed.

    Each rank removes its own, and a share of the parts of ranks that no longer exist. So no rank
    removes a part that another rank is about to list.
    """
    for path in folder.glob(PARTS):
        number = path.name.split("-")[1]
        mine = number.isdecimal() and int(number) % num_ranks == rank
        if mine and path.name not in kept:
            path.unlink(missing_ok=True)
