"""Readers of image data sets. Files are only data: nothing in them is unpickled or executed."""

from __future__ import annotations

import gzip
import io
import math
import pickletools
import struct
import tarfile
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssdfl.claims import check_expansion, check_memory
from ssdfl.errors import InputError
from ssdfl.lazy import LazyModule
from ssdfl.learning.arrow_files import read_parquet

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa = LazyModule("pyarrow")
    pc = LazyModule("pyarrow.compute")

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]
Split = tuple[Images, Labels]

_CIFAR_IMAGE = (3, 32, 32)
_CIFAR_BATCH_BYTES, _CIFAR_BYTES = 40_000_000, 240_000_000
"""Limits: a batch has 31 MB in either version, and an archive of six batches 186 MB."""
_MOST_OPCODES = 200_000
"""A limit on the opcodes of a pickled batch; 10,000 labels and file names need 50,000."""
MOST_PIXELS = 1 << 24
_IMAGE_FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "GIF", "TIFF")
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


_BROKEN = (
    *(OSError, EOFError, MemoryError, RecursionError, NotImplementedError),
    *(ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError),
    *(struct.error, zlib.error, zipfile.BadZipFile, tarfile.TarError),
    *(tokenize.TokenError, SyntaxError),  # numpy parses the header of an array as Python
)


def broken() -> tuple[type[BaseException], ...]:
    """The exceptions that readers raise for broken files; pyarrow is imported only here."""
    return (*_BROKEN, pa.ArrowException)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn a reader's exceptions for a broken file into one clear line."""
    try:
        yield
    except InputError:
        raise
    except broken() as error:
        raise InputError(
            "data file",
            str(path),
            "a whole file",
            f"It is truncated or damaged ({error}); delete it and run: ssdfl data fetch.",
        ) from error


def read_idx(path: Path) -> NDArray[np.uint8]:
    """An IDX file of bytes, gzipped: images (n, height, width) or labels (n,)."""
    with readable(path), gzip.open(path) as file:
        start = file.read(4)
        if len(start) < 4 or start[:3] != b"\0\0\x08":
            raise ValueError("no IDX header")
        shape = tuple(np.frombuffer(file.read(4 * start[3]), ">u4", start[3]).tolist())
        check_expansion(path, math.prod(shape))
        content = file.read(math.prod(shape))
        if file.read(1):
            raise ValueError(f"more than the header's {shape} bytes")
        return np.frombuffer(content, np.uint8).reshape(shape)


def read_image_parquet(paths: list[Path]) -> Split:
    """Read the Hugging Face layout: encoded files in ``img`` or ``image``, and ``label``."""
    images: list[Images] = []
    labels: list[Labels] = []
    for path in paths:
        with readable(path):
            table = read_parquet(path)
            cells = image_cells(table)
            if cells is None:
                raise ValueError("no column img or image of encoded images")
            images.append(cells)
            labels.append(table.column("label").cast("int64").to_numpy())
    return np.concatenate(images), np.concatenate(labels)


def image_cells(table: pa.Table) -> Images | None:
    """(n, channels, height, width) images of an Arrow table's column ``img`` or ``image``.

    Raises:
        ValueError: a cell is not an image, or not of the first one's shape.
    """
    name = next((name for name in ("img", "image") if name in table.column_names), None)
    if name is None or "bytes" not in [
        field.name for field in getattr(table.column(name).type, "fields", [])
    ]:
        return None
    return stacked_images(cell.as_py() for cell in pc.struct_field(table.column(name), "bytes"))


def stacked_images(contents: Iterable[bytes | None]) -> Images:
    """(n, channels, height, width) decoded images, which must have the same shape.

    Raises:
        ValueError: there are no images, or one cannot be decoded or has another shape.
    """
    images: list[Images] = []
    for number, content in enumerate(contents):
        image = decode_image(content)
        if image.shape != (images or [image])[0].shape:
            raise ValueError(
                f"image {number} has the shape {image.shape}, the first {images[0].shape}"
            )
        images.append(image)
        check_memory("images", f"{number + 1} so far", 2 * image.nbytes * len(images))
    return np.stack(images)


def decode_image(content: bytes | None) -> Images:
    """(channels, height, width) the decoded image: one channel if it is grey, otherwise three.

    Raises:
        ValueError: it is not an image, or has more than `MOST_PIXELS`.
    """
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content or b""), formats=_IMAGE_FORMATS) as image:
                if math.prod(image.size) > MOST_PIXELS:
                    raise ValueError(f"{image.size} pixels, more than {MOST_PIXELS:,}")
                grey = image.mode in ("1", "L", "I;16")
                pixels = np.asarray(image.convert("L" if grey else "RGB"))
    except Exception as error:  # decoders raise many kinds of errors for broken images
        raise ValueError(f"an image cannot be decoded: {type(error).__name__}: {error}") from error
    return pixels[None] if grey else pixels.transpose(2, 0, 1)


def parse_cifar_binary(raw: bytes) -> Split:
    """CIFAR-10's binary version: one label byte and 3,072 pixel bytes per image."""
    records = np.frombuffer(raw, np.uint8).reshape(-1, 1 + int(np.prod(_CIFAR_IMAGE)))
    return records[:, 1:].reshape(-1, *_CIFAR_IMAGE), records[:, 0].astype(np.int64)


def parse_cifar_python(raw: bytes) -> Split:
    """CIFAR-10's python version, a pickle of ``data`` and ``labels``, read without unpickling.

    Walks the pickle's opcodes as text: the pixels are its longest string, the labels the integers
    that follow the key ``labels``.
    """
    pixels, labels, key = b"", [], b""
    for number, (opcode, argument, _) in enumerate(pickletools.genops(raw)):
        if number > _MOST_OPCODES:
            raise ValueError("more parts than a batch has")
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
    with (
        readable(path),
        _LimitedGzip(path) as unpacked,
        tarfile.open(fileobj=unpacked, mode="r:") as archive,
    ):
        for member in archive:
            name = Path(member.name).name
            content = (
                archive.extractfile(member)
                if name.startswith(("data_batch", "test_batch"))
                else None
            )
            if member.size > _CIFAR_BATCH_BYTES:  # a sparse member may claim any size
                raise ValueError(f"a member of {member.size:,} bytes")
            if content is not None:
                parts[name] = parse_cifar(name, content.read())
        return join_cifar(parts)


class _LimitedGzip(gzip.GzipFile):
    """A gzipped archive, read at most to the length of CIFAR-10 and one batch at a time."""

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes."""
        if size is None or not 0 <= size <= _CIFAR_BATCH_BYTES:
            raise ValueError(f"a member of {size} bytes")
        return super().read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position."""
        if offset > _CIFAR_BYTES:
            raise ValueError(f"a member at byte {offset:,}")
        return super().seek(offset, whence)


def read_cifar_folder(folder: Path) -> tuple[Split, Split]:
    """Train and test of CIFAR-10 from the unpacked batches of either official version."""
    parts: dict[str, Split] = {}
    for path in sorted([*folder.glob("data_batch_*"), *folder.glob("test_batch*")]):
        with readable(path):
            if path.stat().st_size > _CIFAR_BATCH_BYTES:
                raise ValueError("longer than a batch is")
            parts[path.name] = parse_cifar(path.name, path.read_bytes())
    with readable(folder):
        return join_cifar(parts)


def parse_cifar(name: str, raw: bytes) -> Split:
    """One batch of CIFAR-10; the suffix of its name decides the format."""
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
