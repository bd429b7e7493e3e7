"""The file of a checkpoint: tensors, facts about them, and a checksum that detects any change."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from ssdfl.errors import InputError, unfit_value

FORMAT, FORMAT_IN_PARTS = 3, 4
_WITHOUT_CHECKSUM = 2
PARAMETERS, FROZEN, MEMORY = "model.", "frozen.", "memory."
"""Prefixes of tensor names: for models, for shared tensors, for memory."""
ANEW = "Delete it to restart this run from the beginning."
_KEY = "ssdfl"
_BYTES_AT_ONCE = 1 << 24
_TYPE_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.complex64: "C64",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""The names of types in files."""
_UNKNOWN = "0" * 64
"""The placeholder for the checksum while it is computed."""

Count = Annotated[int, Field(ge=0, lt=2**63)]
PartName = Annotated[str, Field(pattern=r"^part-\d+-[0-9a-f]{16}\.safetensors$")]


class Slot(BaseModel):
    """The facts about a tensor in a model's row that readers of checkpoints need."""

    model_config = ConfigDict(strict=True, frozen=True)

    trains: bool


class Part(BaseModel):
    """A file with the rows of some devices.

    Attributes:
        checksum: the checksum in its metadata.
        devices: the numbers of the devices, ascending.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    checksum: str
    devices: list[Count]


class Facts(BaseModel):
    """The validated metadata of a checkpoint.

    Attributes:
        checksum: SHA-256 of everything else in the file; empty in files of format 2.
        method: the method of the state; empty if unknown, as in files of format 2.
        devices: the devices' numbers by name, in the order of rows.
        state: the names in a model's ``state_dict``, in its order.
        model: the inputs and outputs of a model.
        layout: the position of each tensor in a row.
        parts: by name, the other files that hold devices' rows; empty if this file does.
        raw: the unparsed JSON values.
    """

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)

    format: int
    checksum: str = ""
    method: str = ""
    step: Count
    cycle: Count
    transmissions: Count
    devices: dict[str, Count] = Field(min_length=1)
    state: list[str]
    model: dict[str, Any] | None
    layout: dict[str, Slot] = Field(min_length=1)
    parts: dict[PartName, Part] = Field({})
    real_s: Annotated[float, Field(ge=0)] = Field(math.nan, validate_default=False)
    raw: dict[str, Any]

    @property
    def trained_names(self) -> list[str]:
        """The names of parameters that are trained, in the order of a row."""
        return [name for name, slot in self.layout.items() if slot.trains]


def write_tensors(tensors: dict[str, Tensor], path: Path, facts: dict[str, object]) -> None:
    """Write tensors, facts as metadata, and a checksum of both; a full disk raises OSError."""
    write_sealed(tensors, path, sealed(tensors, facts)[0])


def sealed(tensors: dict[str, Tensor], facts: dict[str, object]) -> tuple[str, str]:
    """The metadata of a file of tensors, and the checksum in it."""
    unsigned = json.dumps({"checksum": _UNKNOWN} | facts)
    checksum = _checksum(unsigned, sorted(tensors.items()))
    return unsigned.replace(_UNKNOWN, checksum, 1), checksum


def write_sealed(tensors: dict[str, Tensor], path: Path, text: str) -> None:
    """Write tensors with their metadata; a full disk raises OSError.

    This is the format of safetensors. Its own writer needs tensors in one piece each, so that
    columns of a large matrix would have to be copied.
    """
    # Wide numbers first, so that all are aligned.
    in_order = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))
    header: dict[str, object] = {"__metadata__": {_KEY: text}}
    end = 0
    for name, tensor in in_order:
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _TYPE_NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    path.unlink(missing_ok=True)  # tensors may be mapped from the old file
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for _, tensor in in_order:
            for piece in _pieces(tensor):
                file.write(piece)


def read_facts(file: Any, path: Path) -> Facts:
    """The metadata of an open checkpoint, after checking that the whole file is undamaged.

    Raises:
        InputError: another version of ssdfl wrote it, it is damaged, or it is not a checkpoint.
    """
    text = (file.metadata() or {}).get(_KEY, "")
    facts = _parsed(text, path)
    has_checksum = facts.format != _WITHOUT_CHECKSUM or bool(facts.checksum)
    if has_checksum and facts.checksum != _found_checksum(file, text, facts.checksum):
        expected = "the bytes that were written: its checksum says that it is damaged"
        raise InputError("checkpoint", str(path), expected, f"Restore a copy. {ANEW}")
    return facts


def _found_checksum(file: Any, text: str, written: str) -> str:
    """The checksum of an open file's content."""
    unsigned = text.replace(written, _UNKNOWN, 1) if written else text
    names = sorted(file.keys())
    return _checksum(unsigned, zip(names, map(file.get_tensor, names), strict=True))


def facts_of(raw: dict[str, Any]) -> Facts:
    """Facts from JSON values, validated."""
    return Facts(**{**raw, "raw": raw})


def _parsed(text: str, path: Path) -> Facts:
    """The facts in a text, after validation."""
    try:
        raw = json.loads(text)
        found = raw.get("format", 1)
        if found in (_WITHOUT_CHECKSUM, FORMAT, FORMAT_IN_PARTS):
            return facts_of(raw)
    except ValidationError as error:
        raise unfit_value(error.errors()[0], str(path), f"It is damaged. {ANEW}") from None
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise InputError("checkpoint", str(path), "a whole file", f"({error}) {ANEW}") from None
    expected = f"format {FORMAT}, in which every parameter has its name and shape"
    remedy = f"Finish the run with the version of ssdfl that began it. {ANEW}"
    raise InputError(f"checkpoint {path}", f"format {found!r}", expected, remedy)


def _checksum(text: str, tensors: Iterable[tuple[str, Tensor]]) -> str:
    """SHA-256 of a text and of tensors: their names, types, shapes and bytes."""
    digest = sha256(text.encode())
    for name, tensor in tensors:
        digest.update(f"\n{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        for piece in _pieces(tensor):
            digest.update(piece)
    return digest.hexdigest()


def _pieces(tensor: Tensor) -> Iterator[memoryview]:
    """The bytes of a tensor, some rows at a time."""
    rows = tensor if tensor.dim() else tensor.reshape(1)
    bytes_per_row = rows[:1].numel() * rows.element_size()
    for some in rows.split(max(1, _BYTES_AT_ONCE // max(1, bytes_per_row))):
        yield some.contiguous().reshape(-1).view(torch.uint8).numpy().data
