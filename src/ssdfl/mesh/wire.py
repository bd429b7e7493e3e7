"""Messages and samples as bytes and back; a message that does not fit is refused with a reason.

A compressed message is sent as its parts, one after the other (`ssdfl.methods.compressors`). It
names neither type nor number: both ends know the compressor from the experiment, whose digest they
have compared.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssdfl.arrays import FloatArray
from ssdfl.mesh.mesh_pb2 import Parameters, Samples
from ssdfl.methods import Compressor, Message, Moment
from ssdfl.methods.compressors import BITS, part_bytes

assert sys.byteorder == "little", "messages are little-endian, so this machine has to be"
_DTYPES = {torch.float32: ("float32", "<f4"), torch.float64: ("float64", "<f8")}
MAX_SAMPLE_NUMBERS = 1 << 20
MAX_SAMPLES = 256
MAX_ABSOLUTE = 1e12


class BadMessageError(Exception):
    """A message that must not be used."""


def pack(message: Message, at: Moment) -> Parameters:
    """A device's message of a step, one row."""
    if message.compressor is not None:
        return Parameters(step=at.t, data=_compressed(message.compressor, message.exact, at))
    return pack_row(message.rows[0], at.t)


def pack_row(θ: Tensor, step: int) -> Parameters:
    """(k,) numbers of a step."""
    name, code = _DTYPES[θ.dtype]
    data = θ.detach().cpu().numpy().astype(code, copy=False).tobytes()
    return Parameters(step=step, dtype=name, count=θ.numel(), data=data)


def unpack(message: Parameters, own: Message, at: Moment) -> Tensor:
    """(k,) a neighbour's message.

    Args:
        own: this device's message of the step, which the neighbour's has to be like.
        at: the neighbour's moment.

    Raises:
        BadMessageError: another step, dtype, number or size, or numbers that are not finite.
    """
    if message.step != at.t:
        raise BadMessageError(f"step {message.step} instead of {at.t}")
    like: Tensor = own.rows[0]
    if own.compressor is not None:
        return _decompressed(own.compressor, message.data, like, at)
    return unpack_row(message, like)


def unpack_row(message: Parameters, like: Tensor) -> Tensor:
    """(k,) numbers of any step.

    Raises:
        BadMessageError: another dtype, number or size, or numbers that are not finite.
    """
    name, code = _DTYPES[like.dtype]
    if message.dtype != name:
        raise BadMessageError(f"dtype {message.dtype!r} instead of {name}")
    data = message.data  # read once: protobuf copies it every time
    fits = message.count == like.numel() and len(data) == like.numel() * like.element_size()
    if not fits:
        raise BadMessageError(
            f"{message.count} numbers in {len(data)} bytes instead of {like.numel()}"
        )
    _check_magnitude(np.frombuffer(data, dtype=code))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given buffer is not writable")  # it is only read
        return torch.frombuffer(data, dtype=like.dtype).to(like.device)


def _compressed(compressor: Compressor, exact: Tensor, at: Moment) -> bytes:
    """The parts of one row, one after the other."""
    layout = compressor.layout(exact.shape[1], exact.element_size())
    parts = compressor.encoded(exact, at)
    return b"".join(
        _part_to_bytes(code, part[0].cpu().numpy())
        for (code, _), part in zip(layout, parts, strict=True)
    )


def _part_to_bytes(code: str, numbers: NDArray[Any]) -> bytes:
    return (np.packbits(numbers) if code == BITS else numbers.astype(code)).tobytes()


def _decompressed(compressor: Compressor, data: bytes, like: Tensor, at: Moment) -> Tensor:
    """(k,) what a compressed message says.

    Raises:
        BadMessageError: another size, impossible positions, or numbers that are not finite.
    """
    count = like.numel()
    size = compressor.size_bytes(count, like.element_size())
    if len(data) != size:
        raise BadMessageError(f"{len(data)} bytes instead of {size}")
    parts, start = [], 0
    for code, number in compressor.layout(count, like.element_size()):
        stop = start + part_bytes(code, number)
        parts.append(_part_from_bytes(code, number, data[start:stop], count).to(like.device))
        start = stop
    seen: Tensor = compressor.decoded(tuple(parts), count, like, at)[0]
    _check_magnitude(seen.cpu().numpy())
    return seen


def _part_from_bytes(code: str, number: int, data: bytes, count: int) -> Tensor:
    """(1, number) a part; unsigned numbers are positions among ``count``."""
    if code == BITS:
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=number)
        return torch.from_numpy(bits.astype(bool))[None]
    numbers = np.frombuffer(data, dtype=code)
    if numbers.dtype.kind != "u":
        return torch.from_numpy(numbers.copy())[None]
    if len(np.unique(numbers)) < number or numbers.max(initial=0) >= count:
        raise BadMessageError(f"positions that repeat or are not below {count}")
    return torch.from_numpy(numbers.astype(np.int64))[None]


def pack_samples(samples: FloatArray) -> Samples:
    """A few samples, one in a row."""
    rows, columns = samples.shape
    return Samples(rows=rows, columns=columns, data=samples.astype("<f8").tobytes())


def unpack_samples(message: Samples, columns: int) -> FloatArray:
    """A neighbour's samples.

    Raises:
        BadMessageError: other features, too many, or numbers that are not finite.
    """
    data = message.data
    count = message.rows * message.columns
    fits = message.columns == columns and len(data) == 8 * count
    if not fits or not 0 < count <= MAX_SAMPLE_NUMBERS or message.rows > MAX_SAMPLES:
        raise BadMessageError(
            f"{message.rows} samples of {message.columns} features instead of {columns}"
        )
    samples: FloatArray = np.frombuffer(data, dtype="<f8").reshape(message.rows, message.columns)
    _check_magnitude(samples)
    return samples


def _check_magnitude(numbers: FloatArray) -> None:
    largest = max(-numbers.min(), numbers.max())
    if not largest <= MAX_ABSOLUTE:  # NaN is not
        raise BadMessageError(f"numbers that are not finite, or beyond {MAX_ABSOLUTE:g}")
