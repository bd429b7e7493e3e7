"""Parameters and samples as bytes and back; a message that does not fit is refused with a reason."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import torch
from torch import Tensor

from ssdfl.arrays import FloatArray
from ssdfl.mesh.mesh_pb2 import Parameters, Samples

assert sys.byteorder == "little", "messages are little-endian, so this machine has to be"
_DTYPES = {torch.float32: ("float32", "<f4"), torch.float64: ("float64", "<f8")}
MAX_SAMPLE_NUMBERS = 1 << 20
MAX_ABSOLUTE = 1e12


class BadMessageError(Exception):
    """A message that must not be used."""


def pack(θ: Tensor, step: int) -> Parameters:
    """Parameters at the start of a step."""
    name, code = _DTYPES[θ.dtype]
    data = θ.detach().cpu().numpy().astype(code, copy=False).tobytes()
    return Parameters(step=step, dtype=name, count=θ.numel(), data=data)


def unpack(message: Parameters, like: Tensor, step: int) -> Tensor:
    """A neighbour's parameters.

    Args:
        like: parameters of the model in use.
        step: the step that was asked for.

    Raises:
        BadMessageError: another step, dtype, number or size, or numbers that are not finite.
    """
    name, code = _DTYPES[like.dtype]
    if message.step != step:
        raise BadMessageError(f"step {message.step} instead of {step}")
    if message.dtype != name:
        raise BadMessageError(f"dtype {message.dtype!r} instead of {name}")
    data = message.data  # read once: protobuf copies it every time
    fits = message.count == like.numel() and len(data) == like.numel() * like.element_size()
    if not fits:
        raise BadMessageError(f"{message.count} numbers in {len(data)} bytes instead of {like.numel()}")
    _check_magnitude(np.frombuffer(data, dtype=code))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given buffer is not writable")  # it is only read
        return torch.frombuffer(data, dtype=like.dtype).to(like.device)


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
    if not fits or not 0 < count <= MAX_SAMPLE_NUMBERS:
        raise BadMessageError(f"{message.rows} samples of {message.columns} features instead of {columns}")
    samples: FloatArray = np.frombuffer(data, dtype="<f8").reshape(message.rows, message.columns)
    _check_magnitude(samples)
    return samples


def _check_magnitude(numbers: FloatArray) -> None:
    largest = max(-numbers.min(), numbers.max())
    if not largest <= MAX_ABSOLUTE:  # NaN is not
        raise BadMessageError(f"numbers that are not finite, or beyond {MAX_ABSOLUTE:g}")
