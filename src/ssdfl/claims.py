"""Refuse small files that claim a huge content before anything is expanded."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from ssdfl.errors import InputError
from ssdfl.machine import memory_bytes

SMALL_BYTES = 64 << 20
"""The size to which any file may expand."""
MOST_EXPANSION = 200
"""The factor by which a larger file of samples may expand; images and tables need about 10."""
DEFLATE_EXPANSION = 1100
"""More than deflate (zip, gzip) can reach, which is 1,032; sparse networks come close."""
_ENCRYPTED = 1
"""The bit of a zip member that needs a password."""


class ArrayClaim(NamedTuple):
    """The claims in the header of an array."""

    name: str
    shape: tuple[int, ...]
    item_bytes: int

    @property
    def entries(self) -> int:
        """The number of values."""
        return math.prod(self.shape)


def check_expansion(path: Path, claimed_bytes: int, factor: int = MOST_EXPANSION) -> None:
    """Refuse a file that claims to hold many times its own size.

    Raises:
        InputError: it claims more than `SMALL_BYTES` and more than ``factor`` times its size.
    """
    limit = max(SMALL_BYTES, factor * path.stat().st_size)
    if claimed_bytes > limit:
        got = f"{_shown(claimed_bytes)} when expanded"
        expected = f"at most {_shown(limit)} in a file of {path.stat().st_size:,} bytes"
        raise InputError(
            f"data in {path}", got, expected, "If the size is right, store it uncompressed."
        )
    check_memory(f"data in {path}", f"{_shown(claimed_bytes)} when expanded", claimed_bytes)


def _shown(size_bytes: int) -> str:
    return f"{size_bytes // 1_000_000:,} MB"


def check_memory(what: str, got: str, needed_bytes: float, remedy: str = "Use less.") -> None:
    """Refuse an input that needs more memory than this machine has.

    Raises:
        InputError: the input is too large.
    """
    there = memory_bytes()
    if needed_bytes > there:
        needed = needed_bytes / 1e9 if needed_bytes < 1e300 else math.inf
        expected = f"at most {there / 1e9:.3g} GB of memory (this needs about {needed:.3g})"
        raise InputError(what, got, expected, remedy)


def array_claims(path: Path) -> Iterator[ArrayClaim]:
    """The headers of the arrays in a ``.npy`` or ``.npz`` file, without reading the arrays.

    Raises:
        ValueError, OSError, zipfile.BadZipFile: it is not such a file.
    """
    if path.suffix.lower() == ".npy":
        with path.open("rb") as file:
            yield _claim("", file)
        return
    with zipfile.ZipFile(path) as files:
        for member in files.infolist():
            if member.flag_bits & _ENCRYPTED:
                raise ValueError(f"{member.filename} is encrypted")
            with files.open(member) as file:
                yield _claim(member.filename.removesuffix(".npy"), file)


def _claim(name: str, file: IO[bytes]) -> ArrayClaim:
    version = np.lib.format.read_magic(file)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = read(file)
    return ArrayClaim(name, shape, dtype.itemsize)


def check_arrays(path: Path, factor: int = MOST_EXPANSION) -> dict[str, ArrayClaim]:
    """The headers of the arrays in a file, after checking that they fit into memory."""
    claims = {claim.name: claim for claim in array_claims(path)}
    check_expansion(
        path, sum(claim.entries * claim.item_bytes for claim in claims.values()), factor
    )
    return claims
