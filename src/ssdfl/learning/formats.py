"""Readers of image data sets. Files are data: nothing in them is ever unpickled or executed."""

from __future__ import annotations

import gzip
import io
import pickletools
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssdfl.errors import InputError

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]
Split = tuple[Images, Labels]

_CIFAR_IMAGE = (3, 32, 32)
_STRINGS = {
    "STRING",
    "BINSTRING",
    "SHORT_BINSTRING",
    "BINBYTES",
    "SHORT_BINBYTES",
    "BINUNICODE",
    "SHORT_BINUNICODE",
}
_INTEGERS = {"BININT", "BININT1", "BININT2"}


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn whatever a broken file makes a reader raise into one clear line."""
    try:
        yield
    except InputError:
        raise
    except (OSError, EOFError, ValueError, KeyError, zlib.error, tarfile.TarError) as error:
        raise InputError(
            "data file",
            str(path),
            "a whole file",
            f"It is truncated or damaged ({error}); delete it and run: ssdfl data fetch.",
        ) from error


def read_idx(path: Path) -> NDArray[np.uint8]:
    """An IDX file of bytes, gzipped: images (n, height, width) or labels (n,)."""
    with readable(path):
        raw = gzip.decompress(path.read_bytes())
        if len(raw) < 4 or raw[:3] != b"\0\0\x08":
            raise ValueError("no IDX header")
        dimensions = raw[3]
        shape = tuple(np.frombuffer(raw, ">u4", dimensions, offset=4).tolist())
        return np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def read_image_parquet(paths: list[Path]) -> Split:
    """The Hugging Face layout: a column ``img`` or ``image`` of encoded files, and ``label``."""
    import pyarrow.parquet as parquet

    images: list[Images] = []
    labels: list[int] = []
    for path in paths:
        with readable(path):
            table = parquet.read_table(path)
            cells = image_cells(table)
            if cells is None:
                raise ValueError("no column img or image of encoded images")
            images.append(cells)
            labels += table.column("label").to_pylist()
    return np.concatenate(images), np.array(labels, dtype=np.int64)


def image_cells(table: Any) -> Images | None:
    """(n, channels, height, width) the images in an Arrow table's column ``img`` or ``image``, if any."""
    name = next((name for name in ("img", "image") if name in table.column_names), None)
    if name is None or "bytes" not in [
        field.name for field in getattr(table.column(name).type, "fields", [])
    ]:
        return None
    return np.stack([decode_image(cell["bytes"]) for cell in table.column(name).to_pylist()])


def decode_image(content: bytes) -> Images:
    """(channels, height, width) of an encoded image: one channel if it is grey, else three."""
    from PIL import Image

    with Image.open(io.BytesIO(content)) as image:
        grey = image.mode in ("1", "L", "I;16")
        pixels = np.asarray(image.convert("L" if grey else "RGB"))
    return pixels[None] if grey else pixels.transpose(2, 0, 1)


def parse_cifar_binary(raw: bytes) -> Split:
    """CIFAR-10's binary version: one label byte and 3,072 pixel bytes per image."""
    records = np.frombuffer(raw, np.uint8).reshape(-1, 1 + int(np.prod(_CIFAR_IMAGE)))
    return records[:, 1:].reshape(-1, *_CIFAR_IMAGE), records[:, 0].astype(np.int64)


def parse_cifar_python(raw: bytes) -> Split:
    """CIFAR-10's python version, a pickled dict of ``data`` and ``labels``, read without unpickling.

    Walks the pickle's opcodes as text: the pixels are its longest string, the labels the integers that
    follow the key ``labels``.
    """
    pixels, labels, key = b"", [], b""
    for opcode, argument, _ in pickletools.genops(raw):
        if opcode.name in _STRINGS:
            key = _as_bytes(argument)
            pixels = max(pixels, key, key=len)
        elif opcode.name in _INTEGERS and key == b"labels":
            labels.append(argument)
    images = np.frombuffer(pixels, np.uint8).reshape(len(labels), *_CIFAR_IMAGE)
    return images, np.array(labels, dtype=np.int64)


def _as_bytes(text: str | bytes | None) -> bytes:
    return text.encode("latin-1") if isinstance(text, str) else bytes(text or b"")


def read_cifar_archive(path: Path) -> tuple[Split, Split]:
    """Train and test of CIFAR-10 from either official ``.tar.gz``, read in place."""
    parts: dict[str, Split] = {}
    with readable(path), tarfile.open(path) as archive:
        for member in archive:
            name = Path(member.name).name
            content = archive.extractfile(member) if name.startswith(("data_batch", "test_batch")) else None
            if content is not None:
                parts[name] = parse_cifar(name, content.read())
        return join_cifar(parts)


def read_cifar_folder(folder: Path) -> tuple[Split, Split]:
    """Train and test of CIFAR-10 from the unpacked batches of either official version."""
    parts: dict[str, Split] = {}
    for path in sorted([*folder.glob("data_batch_*"), *folder.glob("test_batch*")]):
        with readable(path):
            parts[path.name] = parse_cifar(path.name, path.read_bytes())
    with readable(folder):
        return join_cifar(parts)


def parse_cifar(name: str, raw: bytes) -> Split:
    """One batch of CIFAR-10, by the ending of its name."""
    return parse_cifar_binary(raw) if name.endswith(".bin") else parse_cifar_python(raw)


def join_cifar(parts: dict[str, Split]) -> tuple[Split, Split]:
    """The batches of CIFAR-10 as one training and one test set."""
    train, test = _batches(parts, "data_batch"), _batches(parts, "test_batch")
    if len(train) != 5 or len(test) != 1:
        raise ValueError(f"{len(train)} training and {len(test)} test batches instead of 5 and 1")
    return _concatenate(train), _concatenate(test)


def _batches(parts: dict[str, Split], prefix: str) -> list[Split]:
    return [parts[name] for name in sorted(parts) if name.startswith(prefix)]


def _concatenate(parts: list[Split]) -> Split:
    arrays: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return arrays[0], arrays[1]
