"""Compressors: how messages are encoded for the wire, and what receivers decode.

A compressor Q is a contraction: ‖x − Q(x)‖² ≤ (1 − δ) ‖x‖², for `randomk` on average. Its
randomness depends only on the seed, the step and the sender. So every engine draws the same
numbers, and receivers can repeat the sender's draws.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ssdfl.errors import InputError, check_range, find_function
from ssdfl.methods.moment import Moment, Rows
from ssdfl.rng import generator
from ssdfl.specs import call_with_options

BITS = "bits"
"""The type code of a part of booleans, which are packed eight to a byte."""

Layout = tuple[tuple[str, int], ...]
"""Parts of a compressed message: NumPy's type code, or `BITS`, and the number of values."""

STREAM = "compressor"


def part_bytes(code: str, count: int) -> int:
    """The bytes of a part on the wire.

    Examples:
        >>> part_bytes("<u2", 10), part_bytes(BITS, 10)
        (20, 2)
    """
    return (count + 7) // 8 if code == BITS else count * np.dtype(code).itemsize


class Compressor(ABC):
    """Makes messages smaller, at a loss of information.

    Attributes:
        gamma: the default γ of `choco`, its step towards its neighbours' public copies: the longer
            values wait until they are sent, the smaller.
    """

    gamma: float = 1.0

    def __call__(self, rows: Rows, at: Moment) -> Rows:
        """(n, k) the rows as receivers see them, encoded and decoded."""
        return self.decoded(self.encoded(rows, at), rows.shape[1], rows, at)

    def size_bytes(self, count: int, itemsize: int) -> int:
        """The bytes of a message of ``count`` numbers on the wire."""
        return sum(part_bytes(code, number) for code, number in self.layout(count, itemsize))

    @abstractmethod
    def contraction(self, count: int) -> float:
        """δ for messages of ``count`` numbers."""

    @abstractmethod
    def layout(self, count: int, itemsize: int) -> Layout:
        """The parts on the wire for ``count`` numbers of ``itemsize`` bytes each."""

    @abstractmethod
    def encoded(self, rows: Rows, at: Moment) -> tuple[Rows, ...]:
        """The parts on the wire, with one row per device."""

    @abstractmethod
    def decoded(self, parts: tuple[Rows, ...], count: int, like: Rows, at: Moment) -> Rows:
        """(n, count) the decoded rows, of the type of ``like``; ``at`` is the senders' moment."""


def _float(itemsize: int) -> str:
    return f"<f{itemsize}"


@dataclass(frozen=True)
class NoCompression(Compressor):
    """`none`: messages are sent unchanged, δ = 1.

        Q(x) = x

    The baseline for the others.
    """

    def contraction(self, count: int) -> float:
        """1."""
        return 1.0

    def layout(self, count: int, itemsize: int) -> Layout:
        """The numbers."""
        return ((_float(itemsize), count),)

    def encoded(self, rows: Rows, at: Moment) -> tuple[Rows, ...]:
        """The rows."""
        return (rows,)

    def decoded(self, parts: tuple[Rows, ...], count: int, like: Rows, at: Moment) -> Rows:
        """The rows."""
        return parts[0]


@dataclass(frozen=True)
class _Sparse(Compressor):
    """Sends some of the numbers; the others are 0.

    Attributes:
        fraction: the share of numbers that is sent.
        haste: γ of `choco` divided by the square root of that share, fitted by
            docs/studies/methods/gamma.py.
    """

    fraction: float = 0.05
    haste: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1:
            expected = "a share above 0 and at most 1"
            raise InputError(
                "fraction", self.fraction, expected, "Send a twentieth with fraction=0.05."
            )
        object.__setattr__(self, "gamma", self.haste * math.sqrt(self.fraction))

    def sent(self, count: int) -> int:
        """The number of values sent out of ``count``."""
        return math.ceil(self.fraction * count)

    def contraction(self, count: int) -> float:
        """The share that is sent."""
        return self.sent(count) / count


@dataclass(frozen=True)
class TopK(_Sparse):
    """`topk`: the numbers of largest magnitude and their positions, δ = k/d.

        Q(x)_i = x_i if |x_i| is among the k largest, else 0

    Source: Stich, Cordonnier and Jaggi, Sparsified SGD with memory, NeurIPS 2018.
    """

    def __call__(self, rows: Rows, at: Moment) -> Rows:
        """The result of encoding and decoding; a threshold on magnitudes makes it much faster."""
        if not rows.is_cpu:
            return super().__call__(rows, at)
        count, sent = rows.shape[1], self.sent(rows.shape[1])
        magnitudes = np.abs(rows.numpy())
        ordered = np.partition(magnitudes, count - sent, axis=1)
        kept = magnitudes >= ordered[:, count - sent, None]
        places = np.flatnonzero(kept)
        seen = rows.new_zeros(rows.shape)
        seen.numpy().reshape(-1)[places] = rows.numpy().reshape(-1)[places]
        if len(places) != sent * len(rows):
            tied = np.flatnonzero(np.count_nonzero(kept, axis=1) != sent).tolist()
            seen[tied] = super().__call__(rows[tied], at)
        return seen

    def layout(self, count: int, itemsize: int) -> Layout:
        """Positions, in two bytes if they fit, and numbers."""
        positions = "<u2" if count <= 1 << 16 else "<u4"
        return ((positions, self.sent(count)), (_float(itemsize), self.sent(count)))

    def encoded(self, rows: Rows, at: Moment) -> tuple[Rows, ...]:
        """Positions and numbers."""
        positions = rows.abs().topk(self.sent(rows.shape[1]), dim=1, sorted=False).indices
        return positions, rows.gather(1, positions)

    def decoded(self, parts: tuple[Rows, ...], count: int, like: Rows, at: Moment) -> Rows:
        """The numbers in their places."""
        positions, values = parts
        return like.new_zeros((len(values), count)).scatter_(1, positions, values)


@dataclass(frozen=True)
class RandomK(_Sparse):
    """`randomk`: numbers at random positions, which receivers can redraw, δ = k/d on average.

        Q(x)_i = x_i if i is among k places drawn from (seed, step, sender), else 0

    Source: Stich, Cordonnier and Jaggi, Sparsified SGD with memory, NeurIPS 2018.
    """

    haste = 0.7  # a large difference may wait long until it is sent

    def layout(self, count: int, itemsize: int) -> Layout:
        """Only the numbers."""
        return ((_float(itemsize), self.sent(count)),)

    def places(self, count: int, at: Moment) -> Rows:
        """(n, k) the positions of each device's numbers."""
        drawn = [
            generator(at.seed, STREAM, at.t, device).choice(count, self.sent(count), replace=False)
            for device in at.devices.tolist()
        ]
        return np.stack(drawn)

    def encoded(self, rows: Rows, at: Moment) -> tuple[Rows, ...]:
        """The numbers."""
        places = rows.new_tensor(self.places(rows.shape[1], at)).long()
        return (rows.gather(1, places),)

    def decoded(self, parts: tuple[Rows, ...], count: int, like: Rows, at: Moment) -> Rows:
        """The numbers in their places."""
        places = like.new_tensor(self.places(count, at)).long()
        return like.new_zeros((len(places), count)).scatter_(1, places, parts[0])


@dataclass(frozen=True)
class _Blocks(Compressor):
    """Sends a scale for every block of numbers.

    Attributes:
        block: the number of values that share a scale.
    """

    block: int = 256

    def number(self, count: int) -> int:
        """The number of blocks."""
        return -(-count // self.block)

    def in_blocks(self, rows: Rows) -> Rows:
        """(n, blocks, block) the rows, padded with zeros at the end."""
        n, count = rows.shape
        if count % self.block == 0:
            return rows.reshape(n, -1, self.block)
        padded = rows.new_zeros((n, self.number(count) * self.block))
        padded[:, :count] = rows
        return padded.view(n, -1, self.block)

    def scaled(self, signs: Rows, scales: Rows) -> Rows:
        """(n, count) each number times the scale of its block."""
        product = self.in_blocks(signs) * scales[:, :, None]
        return product.flatten(1)[:, : signs.shape[1]]


@dataclass(frozen=True)
class Int8(_Blocks):
    """`int8`: one byte per number, rounded at random without bias, δ ≥ 1 − block/127².

        Q(x) = s ⌊x / s + u⌋, u uniform in [0, 1), s = max |x| / 127 over a block

    Source: Alistarh, Grubic, Li, Tomioka and Vojnovic, QSGD, NeurIPS 2017.
    """

    def __post_init__(self) -> None:
        check_range("block", self.block, 1, 1 << 13)

    def contraction(self, count: int) -> float:
        """δ, since rounding errs by less than one step."""
        return 1 - min(self.block, count) / 127**2

    def layout(self, count: int, itemsize: int) -> Layout:
        """Scales and bytes."""
        return ((_float(itemsize), self.number(count)), ("<i1", count))

    def encoded(self, rows: Rows, at: Moment) -> tuple[Rows, ...]:
        """Scales and whole numbers."""
        drawn = [
            generator(at.seed, STREAM, at.t, device).random(rows.shape[1], dtype=np.float32)
            for device in at.devices.tolist()
        ]
        scales = self.in_blocks(rows).abs().amax(2) / 127
        steps = scales + (scales == 0)
        whole = self.scaled(rows, 1 / steps).add_(rows.new_tensor(np.stack(drawn))).floor_()
        return scales, whole.clamp_(-127, 127).char()

    def decoded(self, parts: tuple[Rows, ...], count: int, like: Rows, at: Moment) -> Rows:
        """Whole numbers times scales."""
        scales, whole = parts
        return self.scaled(whole.to(like.dtype), scales)


@dataclass(frozen=True)
class Sign(_Blocks):
    """`sign`: one bit per number and the mean magnitude of a block, δ ≥ 1/block.

        Q(x) = s sign(x), s = mean |x| over a block

    Source: Bernstein, Wang, Azizzadenesheli and Anandkumar, signSGD, ICML 2018; scaled as by
    Karimireddy, Rebjock, Stich and Jaggi, Error feedback fixes SignSGD, ICML 2019.
    """

    gamma = 0.5

    def __post_init__(self) -> None:
        check_range("block", self.block, 1)

    def contraction(self, count: int) -> float:
        """δ in the worst case, a block with one nonzero number."""
        return 1 / min(self.block, count)

    def layout(self, count: int, itemsize: int) -> Layout:
        """Scales and bits."""
        return ((_float(itemsize), self.number(count)), (BITS, count))

    def encoded(self, rows: Rows, at: Moment) -> tuple[Rows, ...]:
        """Scales, and the signs of numbers."""
        count = rows.shape[1]
        sizes = np.diff([*range(0, count, self.block), count])
        return self.in_blocks(rows).abs().sum(2) / rows.new_tensor(sizes), rows >= 0

    def decoded(self, parts: tuple[Rows, ...], count: int, like: Rows, at: Moment) -> Rows:
        """Signs times scales."""
        scales, positive = parts
        return self.scaled(positive.to(like.dtype).mul_(2).sub_(1), scales)


@dataclass(frozen=True)
class BFloat16(Compressor):
    """`bf16`: two bytes per number, rounded to the nearest, δ = 1 − 2⁻¹⁶.

        Q(x) = x with 8 significant bits

    Source: Kalamkar et al., A study of BFLOAT16 for deep learning training, 2019.
    """

    def contraction(self, count: int) -> float:
        """δ, from a relative error of 2⁻⁸."""
        return float(1 - 2.0**-16)

    def layout(self, count: int, itemsize: int) -> Layout:
        """Two bytes each."""
        return (("<i2", count),)

    def encoded(self, rows: Rows, at: Moment) -> tuple[Rows, ...]:
        """The bits of the rounded numbers."""
        return (rows.bfloat16().view(rows[:0].short().dtype),)

    def decoded(self, parts: tuple[Rows, ...], count: int, like: Rows, at: Moment) -> Rows:
        """The rounded numbers."""
        return parts[0].view(like[:0].bfloat16().dtype).to(like.dtype)


COMPRESSORS: dict[str, type[Compressor]] = {
    "none": NoCompression,
    "topk": TopK,
    "randomk": RandomK,
    "int8": Int8,
    "sign": Sign,
    "bf16": BFloat16,
}


def find_compressor(name: str, options: Mapping[str, str]) -> Compressor:
    """A compressor by its name, or a user's own by ``package.module:name``, with options.

    Raises:
        InputError: there is no such compressor, or it does not take an option.

    Examples:
        >>> find_compressor("topk", {"fraction": "0.1"})
        TopK(fraction=0.1)
    """
    make = find_function(COMPRESSORS, name, "compressor")
    found = make(**call_with_options(make, options, f"compressor {name}"))
    if not isinstance(found, Compressor):
        remedy = "Subclass ssdfl.methods.Compressor."
        raise InputError("compressor", name, "a compressor", remedy)
    return found
