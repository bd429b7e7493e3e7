"""Read data sets from files and folders: tables, arrays, images, a file per device. No pickles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssdfl.claims import check_arrays
from ssdfl.errors import InputError
from ssdfl.lazy import LazyModule
from ssdfl.learning.arrow_files import joined_batches, read_parquet
from ssdfl.learning.columns import listed, places
from ssdfl.learning.dataset import IMAGES_SCALED, Dataset
from ssdfl.learning.encoding import Encoding
from ssdfl.learning.formats import broken, decode_image, image_cells
from ssdfl.learning.normalisation import Normalisation
from ssdfl.learning.summaries import (
    CATEGORY,
    NUMBER,
    OTHER,
    ColumnSummary,
    Summary,
    read_summary,
    summarised_numbers,
)
from ssdfl.learning.tables import AS_IT_IS, Files, Reading, split_off, table_dataset

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet
else:
    pa = LazyModule("pyarrow")
    csv = LazyModule("pyarrow.csv")
    parquet = LazyModule("pyarrow.parquet")

TABLES: dict[str, Callable[[Path], pa.Table]] = {
    ".parquet": read_parquet,
    ".csv": lambda path: csv.read_csv(path),
}
"""Readers of tables, by the suffix of the file."""
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
_READING_THREADS = 4
_INPUTS = ("inputs", "x", "X", "images", "data")
_TARGETS = ("targets", "y", "Y", "labels", "target")
"""The names that arrays may have."""


def read_path(path: Path, reading: Reading = AS_IT_IS) -> Dataset:
    """The data set in a file or folder; its content decides the reader.

    Raises:
        InputError: there is nothing that can be read, or a file is damaged; the error names it.
    """
    for holds, read in _KINDS:
        if holds(path):
            with reading_file(path):
                return read(path, reading)
    kinds = (
        "a .parquet, .csv or .npz file, "
        "or a folder of tables, of images by class, or from Hugging Face's save_to_disk"
    )
    raise InputError("data.name", str(path), kinds, "See docs/data.md.")


def read_summary_of(path: Path, reading: Reading = AS_IT_IS) -> Summary:
    """The summary of a file or folder that its encoding needs; a JSON file is such a summary.

    Raises:
        InputError: the path cannot be read.
    """
    if path.suffix == ".json":
        return read_summary(path)
    summary = read_path(path, reading).summary
    assert summary is not None, "whatever is read from files has one"
    return summary


def read_pair(train: Path, test: Path, reading: Reading = AS_IT_IS) -> Dataset:
    """The data set in two tables or two `.npz` files: one for training, one for testing.

    Raises:
        InputError: a file is of another kind or damaged; the error names it.
    """
    for holds, read in ((_is_table, _read_table_pair), (_is_npz, _read_npz_pair)):
        if holds(train) and holds(test):
            return read(train, test, reading)
    got = f"{train} and {test}"
    raise InputError(
        "data.train and data.test", got, "two tables, or two .npz files", "Check the paths."
    )


def _read_table_pair(train: Path, test: Path, reading: Reading) -> Dataset:
    tables = read_table(train), read_table(test)
    _check_columns((train, test), tables)
    marked = [
        _with_split(table, split) for table, split in zip(tables, ("train", "test"), strict=True)
    ]
    return table_dataset(pa.concat_tables(marked, promote_options="permissive"), reading)


def _read_npz_pair(train: Path, test: Path, reading: Reading) -> Dataset:
    arrays: dict[str, NDArray[Any]] = {}
    for path, part in ((train, "train"), (test, "test")):
        found = _part(_arrays_in(path), "")
        if found is None:
            raise InputError(f"arrays in {path}", "others", "inputs and targets", "Name them so.")
        arrays |= {f"{part}_inputs": found[0], f"{part}_targets": found[1]}
    return _from_parts(train, arrays, reading)


def _arrays_in(path: Path) -> dict[str, NDArray[Any]]:
    with reading_file(path):
        check_arrays(path)
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}


@contextmanager
def reading_file(path: Path) -> Iterator[None]:
    """Turn a reader's exceptions for a broken file into one clear line that names the file."""
    try:
        yield
    except InputError:
        raise
    except broken() as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            "data file", str(path), "a whole file", f"It cannot be read ({reason})."
        ) from error


def read_table(path: Path) -> pa.Table:
    """The table in a Parquet or CSV file.

    Raises:
        InputError: the file is damaged.
    """
    with reading_file(path):
        return TABLES[path.suffix](path)


def _is_table(path: Path) -> bool:
    return path.is_file() and path.suffix in TABLES


def _read_table_file(path: Path, reading: Reading) -> Dataset:
    table = read_table(path)
    images = image_cells(table)
    return table_dataset(table, reading) if images is None else _image_table(table, images, reading)


def device_files(folder: Path) -> list[Path]:
    """The tables in a folder, one per device, sorted by name."""
    return sorted(path for path in folder.glob("*") if _is_table(path)) if folder.is_dir() else []


def _read_device_files(folder: Path, reading: Reading) -> Dataset:
    """Read one file per device; all files must have the same columns."""
    paths = device_files(folder)
    with ThreadPoolExecutor(_READING_THREADS) as pool:
        tables = list(pool.map(read_table, paths))
    _check_columns(paths, tables)
    joined = pa.concat_tables(tables, promote_options="permissive")
    codes = np.repeat(np.arange(len(paths)), [len(table) for table in tables])
    return table_dataset(joined, reading, Files(codes, [path.stem for path in paths]))


def _check_columns(paths: Sequence[Path], tables: Sequence[pa.Table]) -> None:
    first = tables[0].column_names
    for path, table in zip(paths, tables, strict=True):
        if table.column_names != first:
            expected = f"the columns {', '.join(first)}, as in {paths[0].name}"
            raise InputError(
                f"columns of {path}", ", ".join(table.column_names), expected, "Make them alike."
            )
        if not len(table):
            raise InputError(
                "data file", str(path), "at least one row", "Remove it, or add samples."
            )


def _is_npz(path: Path) -> bool:
    return path.is_file() and path.suffix == ".npz"


def _read_npz(path: Path, reading: Reading) -> Dataset:
    """Read arrays ``inputs`` and ``targets`` (or x, y), or ``train_`` and ``test_`` parts.

    Another array with a value for each sample can decide its device (``data.column``).
    """
    arrays = _arrays_in(path)
    whole = _part(arrays, "")
    if whole is not None:
        columns = {reading.column: arrays[reading.column]} if reading.column in arrays else {}
        return arrays_dataset(*whole, reading, columns)
    return _from_parts(path, arrays, reading)


def _from_parts(path: Path, arrays: dict[str, NDArray[Any]], reading: Reading) -> Dataset:
    """A data set from arrays for training and arrays for testing."""
    train, test = _part(arrays, "train"), _part(arrays, "test")
    if train is None or test is None:
        expected = (
            "inputs and targets, or train_inputs, train_targets, test_inputs and test_targets"
        )
        raise InputError(f"arrays in {path}", ", ".join(arrays), expected, "Name them so.")
    rows = np.arange(len(train[1]) + len(test[1]))
    inputs, targets = (np.concatenate(both) for both in zip(train, test, strict=True))
    return arrays_dataset(inputs, targets, reading, {}, rows >= len(train[1]))


def _part(arrays: dict[str, NDArray[Any]], part: str) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """The inputs and targets of a part, by any of their usual names."""
    inputs = _first_of(arrays, _spellings(_INPUTS, part))
    targets = _first_of(arrays, _spellings(_TARGETS, part))
    return None if inputs is None or targets is None else (inputs, targets)


def _spellings(names: Sequence[str], part: str) -> list[str]:
    """``train_inputs``, ``inputs_train`` and so on."""
    if not part:
        return list(names)
    return [f"{part}_{name}" for name in names] + [f"{name}_{part}" for name in names]


def _first_of(arrays: dict[str, NDArray[Any]], names: Sequence[str]) -> NDArray[Any] | None:
    return next((arrays[name] for name in names if name in arrays), None)


def arrays_dataset(
    inputs: NDArray[Any],
    targets: NDArray[Any],
    reading: Reading = AS_IT_IS,
    columns: dict[str, NDArray[Any]] | None = None,
    test: NDArray[np.bool_] | None = None,
) -> Dataset:
    """A data set from arrays: images of bytes, rows of numbers, or sequences of tokens.

    Images (n, channels, height, width) are normalised, numbers are standardised, and tokens are
    kept.

    Args:
        test: (n,) which samples are for testing; a share is split off by default.
    """
    if len(inputs) != len(targets):
        got = f"{len(inputs)} and {len(targets)}"
        raise InputError("inputs and targets", got, "equally many", "Make them match.")
    chosen = split_off(len(targets), reading.test_share) if test is None else test
    dealt = {name: values[~chosen] for name, values in (columns or {}).items()}
    summary = reading.known or _summarised(inputs, targets, ~chosen)
    described, target = summary.inputs[0], summary.targets[0]
    normalisation = described.normalisation if described.kind == NUMBER else None
    ready = inputs.astype(np.int64) if normalisation is None else normalisation.applied_to(inputs)
    values, num_classes, scale = _ready_targets(targets, target, reading)
    return Dataset(
        ready[~chosen],
        values[~chosen],
        ready[chosen],
        values[chosen],
        num_classes,
        columns=dealt,
        notes=(
            _TOKENS if normalisation is None else _SCALED,
            *([] if scale is None else [_SCALED_TARGETS]),
        ),
        encoding=Encoding(normalisation, target=scale),
        summary=summary,
    )


_TOKENS = "Whole numbers are used as tokens, unchanged."
_SCALED = (
    "Inputs: scaled to mean 0 and deviation 1 over the training set, "
    "each channel of images or else each column."
)
_SCALED_TARGETS = (
    "Targets: scaled to mean 0 and deviation 1 for training; scores are in their own units."
)


def _summarised(inputs: NDArray[Any], targets: NDArray[Any], train: NDArray[np.bool_]) -> Summary:
    """The summary of training samples; classes are those of all samples."""
    inputs = inputs[train]
    tokens = inputs.dtype.kind in "iu" and inputs.dtype != np.uint8
    described = (
        ColumnSummary("inputs", OTHER, len(inputs)) if tokens else _summarised_inputs(inputs)
    )
    numbers = _summarised_targets(targets, train)
    return Summary((described,), (numbers,))


def _summarised_targets(targets: NDArray[Any], train: NDArray[np.bool_]) -> ColumnSummary:
    """The summary of targets: the largest whole number, or mean and spread of training samples."""
    if targets.dtype.kind in "iub":
        return ColumnSummary(
            "targets", NUMBER, int(train.sum()), values=(str(int(targets.max(initial=0))),)
        )
    numbers = summarised_numbers(targets[train])
    return ColumnSummary("targets", NUMBER, int(train.sum()), whole=False, **numbers)


def _summarised_inputs(inputs: NDArray[Any]) -> ColumnSummary:
    """The summary of inputs: by channel for images (n, channels, height, width), else by value."""
    axes = (0, 2, 3) if inputs.ndim == 4 else 0
    return ColumnSummary("inputs", NUMBER, len(inputs), **summarised_numbers(inputs, axes))


def _ready_targets(
    targets: NDArray[Any], summary: ColumnSummary, reading: Reading
) -> tuple[NDArray[Any], int, Normalisation | None]:
    """Targets, their number of classes, and the standardisation of numbers."""
    classes = summary.whole if reading.kind == "auto" else reading.kind == "classes"
    if classes:
        values = targets.astype(np.int64)
        return values, max(int(values.max()), *map(int, summary.values)) + 1, None
    if reading.kind == "labels":
        return targets.astype(np.float32), 0, None
    scale = summary.normalisation
    return scale.applied_to(targets), 0, scale


def _is_image_folder(path: Path) -> bool:
    return path.is_dir() and any(_image_files(path))


def _image_files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.suffix.lower() in IMAGES)


def _read_image_folder(folder: Path, reading: Reading) -> Dataset:
    """Read folders named by class, directly or below ``train`` and ``test``."""
    paths = list(_image_files(folder))
    names = sorted({path.parent.name for path in paths})
    labels = np.array([names.index(path.parent.name) for path in paths], dtype=np.int64)
    parts = np.array([path.relative_to(folder).parts[0] for path in paths])
    test = (
        parts == "test" if "test" in parts else split_off(len(labels), reading.test_share, labels)
    )
    return _images(_decoded(paths), labels, test, names, reading)


def _decoded(paths: Sequence[Path]) -> NDArray[np.uint8]:
    """(n, channels, height, width) images of one shape."""
    images = [_decoded_file(path) for path in paths]
    for path, image in zip(paths, images, strict=True):
        if image.shape != images[0].shape:
            expected = f"{images[0].shape}, as {paths[0].name} has"
            raise InputError(f"shape of {path}", image.shape, expected, "Resize the images.")
    return np.stack(images)


def _decoded_file(path: Path) -> NDArray[np.uint8]:
    with reading_file(path):
        return decode_image(path.read_bytes())


def _images(
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    test: NDArray[np.bool_],
    names: Sequence[str],
    reading: Reading,
) -> Dataset:
    """A data set of images; labels index names. All devices' summary is used, if known."""
    classes = ColumnSummary("class", CATEGORY, len(labels), values=tuple(names))
    summary = reading.known or Summary((_summarised_inputs(images[~test]),), (classes,))
    normalisation, known = summary.inputs[0].normalisation, summary.targets[0].ordered_values
    ready = normalisation.applied_to(images)
    codes = places(names, known, "class")[labels]
    return Dataset(
        ready[~test],
        codes[~test],
        ready[test],
        codes[test],
        num_classes=len(known),
        notes=(IMAGES_SCALED, f"Target: {len(known)} classes, {listed(known)}."),
        encoding=Encoding(normalisation, classes=tuple(known)),
        summary=summary,
    )


def _image_table(table: pa.Table, images: NDArray[np.uint8], reading: Reading) -> Dataset:
    """A data set from a table with encoded images in a column ``image`` or ``img``."""
    target = reading.target or "label"
    if target not in table.column_names:
        raise InputError(
            "data.target", target, f"one of {', '.join(table.column_names)}", "Name the labels."
        )
    labels = table.column(target).to_numpy(zero_copy_only=False)
    names, codes = np.unique(labels, return_inverse=True)
    test = split_off(len(labels), reading.test_share)
    if "split" in table.column_names:
        test = table.column("split").to_numpy(zero_copy_only=False) == "test"
    return _images(images, codes.astype(np.int64), test, [str(name) for name in names], reading)


def _is_hugging_face(path: Path) -> bool:
    return (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()


def _read_hugging_face(folder: Path, reading: Reading) -> Dataset:
    """Read a folder of Hugging Face's ``save_to_disk``, without its library."""
    if not (folder / "dataset_dict.json").is_file():
        table = _arrow_files(folder)
    else:
        with reading_file(folder / "dataset_dict.json"):
            splits = json.loads((folder / "dataset_dict.json").read_text(encoding="utf-8"))[
                "splits"
            ]
        tables = [_with_split(_arrow_files(folder / split), split) for split in splits]
        table = pa.concat_tables(tables, promote_options="permissive")
    images = image_cells(table)
    return table_dataset(table, reading) if images is None else _image_table(table, images, reading)


def _with_split(table: pa.Table, split: str) -> pa.Table:
    """Add the column ``split``; rows of all splits but ``test`` are for training."""
    return table.append_column("split", pa.array([split] * len(table)))


def _arrow_files(folder: Path) -> pa.Table:
    with reading_file(folder / "state.json"):
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        paths = [folder / Path(one["filename"]).name for one in state["_data_files"]]
    tables = []
    for path in paths:
        with reading_file(path), pa.memory_map(str(path)) as source:
            reader = pa.ipc.open_stream(source)
            tables.append(joined_batches(path, reader, reader.schema))
    return pa.concat_tables(tables)


_KINDS: tuple[tuple[Callable[[Path], bool], Callable[[Path, Reading], Dataset]], ...] = (
    (_is_table, _read_table_file),
    (_is_npz, _read_npz),
    (_is_hugging_face, _read_hugging_face),
    (lambda path: bool(device_files(path)), _read_device_files),
    (_is_image_folder, _read_image_folder),
)
"""Tests for kinds of paths, and the reader of each; the first match is used."""
