"""Parameters as bytes and back; what does not fit is refused with a reason."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import torch
from torch import Tensor

from ssdfl.arrays import FloatArray
from ssdfl.mesh.mesh_pb2 import Parameters, Samples

assert sys.byteorder == "little", "numbers cross the wire little-endian, as this machine has to be"
_DTYPES = {torch.float32: ("float32", "<f4"), torch.float64: ("float64", "<f8")}
MOST_SAMPLES = 1 << 20
LARGEST = 1e12


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
    data = message.data  # once: every look at it copies
    if message.count != like.numel() or len(data) != like.numel() * like.element_size():
        raise BadMessageError(f"{message.count} numbers in {len(data)} bytes instead of {like.numel()}")
    numbers = np.frombuffer(data, dtype=code)
    if not max(-numbers.min(), numbers.max()) <= LARGEST:  # NaN is not
        raise BadMessageError(f"numbers that are not finite, or beyond {LARGEST:g}")
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
    count = message.rows * message.columns
    if message.columns != columns or not 0 < count <= MOST_SAMPLES or len(message.data) != 8 * count:
        raise BadMessageError(f"{message.rows} samples of {message.columns} features instead of {columns}")
    samples: FloatArray = np.frombuffer(message.data, dtype="<f8").reshape(message.rows, message.columns)
    if not np.abs(samples).max() <= LARGEST:
        raise BadMessageError(f"samples that are not finite, or beyond {LARGEST:g}")
    return samples
