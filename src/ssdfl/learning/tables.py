"""Tables as data sets: numbers standardised, categories encoded, and a line for people on what was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ssdfl.arrays import BoolArray, IntArray
from ssdfl.errors import InputError
from ssdfl.learning.dataset import Dataset
from ssdfl.learning.encoding import Column, Encoding, as_numbers, as_texts
from ssdfl.learning.normalisation import column_normalisation
from ssdfl.rng import generator

MOST_CATEGORIES = 50
MOST_CLASSES = 20
"""Whole numbers with more different values than this are numbers, not classes."""
SPLIT = "split"
"""The column that says which rows are for testing."""
FILE = "file"
"""The column of a data set that says which file a row came from."""
TARGETS = ("target", "label", "y")
"""What a target's column is called where nobody says."""


@dataclass(frozen=True)
class Reading:
    """How a file becomes a data set.

    Attributes:
        target: the target's column, or several with commas between; by default one of `TARGETS`, or the last.
        column: one by which samples can be dealt, such as a user; it is no input.
        kind: what targets are; ``auto`` takes texts and few whole numbers for classes.
        test_share: how much is split off for testing, if the data do not say.
    """

    target: str = ""
    column: str = ""
    kind: Literal["auto", "classes", "numbers", "labels"] = "auto"
    test_share: float = 0.2


AS_IT_IS = Reading()
"""What is done if nobody says how."""


class Files(NamedTuple):
    """From which file each row of a table came: (rows,) its number, and the files' names."""

    codes: IntArray
    names: list[str]


def table_dataset(table: pa.Table, reading: Reading = AS_IT_IS, files: Files | None = None) -> Dataset:
    """A data set of a table with a row for each sample.

    Numbers get mean 0 and deviation 1 over the training rows, missing ones that mean. A text or truth value
    becomes one input for each value that training rows have. Rows whose column ``split`` is ``test`` are for
    testing; without that column, a share of the rows, drawn from a fixed seed.

    Args:
        files: from which file each row came.

    Raises:
        InputError: a column that is not there, targets that cannot be used, or nothing to learn from.
    """
    targets = _target_names(table, reading)
    test = _test_rows(table, reading, files)
    columns, notes = _input_columns(table, {*targets, reading.column, SPLIT}, ~test)
    wanted = _targets(table, targets, reading, ~test)
    encoding = replace(wanted.encoding, columns=columns, targets=tuple(targets))
    inputs = encoding.inputs(table)
    return Dataset(
        train_inputs=inputs[~test],
        train_targets=wanted.values[~test],
        test_inputs=inputs[test],
        test_targets=wanted.values[test],
        num_classes=len(encoding.classes),
        loss="multilabel" if reading.kind == "labels" else "auto",
        columns=_dealing_columns(table, reading, files, ~test),
        notes=(*notes, wanted.told),
        encoding=encoding,
    )


def _target_names(table: pa.Table, reading: Reading) -> list[str]:
    return _named_targets(table, reading) if reading.target else [_usual_target(table, reading)]


def _named_targets(table: pa.Table, reading: Reading) -> list[str]:
    names = [name.strip() for name in reading.target.split(",")]
    for name in names:
        _check_column(table, name, "data.target")
    return names


def _usual_target(table: pa.Table, reading: Reading) -> str:
    """A column of the usual name, or the last one."""
    others = [name for name in table.column_names if name not in (reading.column, SPLIT)]
    if len(others) < 2:
        expected = "a column of targets beside inputs"
        raise InputError("columns", ", ".join(table.column_names), expected, "Add what is to be learnt.")
    return next(filter(others.__contains__, TARGETS), others[-1])


def _check_column(table: pa.Table, name: str, what: str) -> None:
    if name not in table.column_names:
        raise InputError(what, name, f"one of the columns {', '.join(table.column_names)}", "Correct it.")


def _test_rows(table: pa.Table, reading: Reading, files: Files | None) -> BoolArray:
    """(rows,) which rows are for testing."""
    if SPLIT in table.column_names:
        return _said_test(table)
    return split_off(len(table), reading.test_share, None if files is None else files.codes)


def _said_test(table: pa.Table) -> BoolArray:
    said = table.column(SPLIT).cast(pa.string()).to_numpy(zero_copy_only=False)
    test: BoolArray = said == "test"
    if not 0 < test.sum() < len(test):
        got = ", ".join(np.unique(said.astype(str))[:5])
        raise InputError(f"column {SPLIT}", got, "some rows with test, and others", "Say which.")
    return test


def split_off(count: int, share: float, groups: IntArray | None = None) -> BoolArray:
    """(count,) a share of samples, drawn from a fixed seed; of each group, if there are groups.

    Examples:
        >>> int(split_off(10, 0.2).sum()), int(split_off(10, 0.2, np.arange(10) // 5).sum())
        (2, 2)
    """
    drawn = generator(0, "test split").random(count)
    among = np.zeros(count, dtype=np.int64) if groups is None else groups
    order = np.argsort(among + drawn)
    sizes = np.bincount(among)
    rank = np.arange(count) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    test = np.zeros(count, dtype=bool)
    test[order[rank < np.repeat(np.round(share * sizes), sizes)]] = True
    if not test.any() or test.all():
        remedy = "Add samples, or change data.test_share."
        raise InputError("samples", count, "enough to train and to test with", remedy)
    return test


class _Described(NamedTuple):
    """A column, how it becomes inputs unless it is left out, which kind it is, and what is said of it."""

    kind: str
    told: str
    column: Column | None


_TOLD = {
    "number": "Columns standardised to mean 0 and deviation 1",
    "category": "Columns encoded as one input for each value",
    "": f"Columns left out, as no numbers nor at most {MOST_CATEGORIES} categories",
}
"""What is done to each kind of column."""


def _input_columns(
    table: pa.Table, reserved: set[str], train: BoolArray
) -> tuple[tuple[Column, ...], list[str]]:
    """How columns become inputs, and what is said of them."""
    names = [name for name in table.column_names if name not in reserved]
    found = [_described_column(name, table.column(name), train) for name in names]
    columns = tuple(one.column for one in found if one.column is not None)
    if not columns:
        raise InputError("columns", ", ".join(table.column_names), "inputs beside the target", "Add some.")
    return columns, list(filter(None, (_told_kind(kind, found) for kind in _TOLD)))


def _told_kind(kind: str, columns: Sequence[_Described]) -> str:
    names = [one.told for one in columns if one.kind == kind]
    return f"{_TOLD[kind]}: {', '.join(names)}." if names else ""


def _described_column(name: str, column: pa.ChunkedArray, train: BoolArray) -> _Described:
    if is_number(column.type):
        return _Described("number", _told_gaps(name, column), _number_column(name, column, train))
    values = _categories(column, train)
    if values is None:
        return _Described("", name, None)
    return _Described("category", f"{name} ({len(values)})", Column(name, values=values))


def _told_gaps(name: str, column: pa.ChunkedArray) -> str:
    return f"{name} ({column.null_count} missing, taken as the mean)" if column.null_count else name


def _number_column(name: str, column: pa.ChunkedArray, train: BoolArray) -> Column:
    values = as_numbers(column)
    known = values[train & np.isfinite(values)]
    if not len(known):
        return Column(name)
    return Column(name, float(known.mean()), float(known.std()) or 1.0)


def _categories(column: pa.ChunkedArray, train: BoolArray) -> tuple[str, ...] | None:
    """The values of the training rows in alphabetical order.

    None of a column with no categories, or with so many that hardly two rows share one, such as names.
    """
    if not is_category(column.type):
        return None
    codes, names = encoded(column)
    if len(names) > min(MOST_CATEGORIES, len(codes) / 2):
        return None
    seen = np.flatnonzero(np.bincount(codes[train], minlength=len(names)))
    return tuple(names[code] for code in seen)


def is_number(kind: pa.DataType) -> bool:
    """Whether a column holds numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_category(kind: pa.DataType) -> bool:
    """Whether a column holds texts or truth values."""
    texts = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    return bool(texts or pa.types.is_boolean(kind))


def encoded(column: pa.ChunkedArray) -> tuple[IntArray, list[str]]:
    """(rows,) the number of each row's text, and the texts in order; missing ones are a text of their own.

    Examples:
        >>> codes, names = encoded(pa.chunked_array([["b", "a", None]]))
        >>> codes.tolist(), names
        ([2, 1, 0], ['', 'a', 'b'])
    """
    coded = as_texts(column).combine_chunks().dictionary_encode()
    found = np.array(coded.dictionary.to_pylist(), dtype=object)
    order = np.argsort(found)
    place = np.empty(len(found), dtype=np.int64)
    place[order] = np.arange(len(found))
    codes: IntArray = place[coded.indices.to_numpy(zero_copy_only=False)]
    return codes, [str(name) for name in found[order]]


class _Targets(NamedTuple):
    """(rows, …) targets, how they were made, and what is said of them."""

    values: NDArray[Any]
    encoding: Encoding
    told: str


def _targets(table: pa.Table, names: Sequence[str], reading: Reading, train: BoolArray) -> _Targets:
    columns = {name: table.column(name) for name in names}
    for name, column in columns.items():
        _check_whole(name, column)
    if reading.kind == "labels":
        return _labels(columns)
    first = columns[names[0]]
    if len(columns) == 1 and _are_classes(first, reading):
        codes, classes = _classes(first)
        told = f"Target {names[0]}: {len(classes)} classes, {_listed(classes)}."
        return _Targets(codes, Encoding(classes=tuple(classes)), told)
    return _numbers(columns, train)


def _check_whole(name: str, column: pa.ChunkedArray) -> None:
    if column.null_count:
        got = f"{column.null_count} missing"
        raise InputError(f"column {name}", got, "a target in every row", "Fill them.")


def _check_numeric(name: str, column: pa.ChunkedArray) -> None:
    if not is_number(column.type):
        raise InputError(f"column {name}", str(column.type), "numbers", "Or name one target of classes.")


def _are_classes(column: pa.ChunkedArray, reading: Reading) -> bool:
    if reading.kind != "auto":
        return reading.kind == "classes"
    if is_category(column.type):
        return True
    return pa.types.is_integer(column.type) and len(pc.unique(column)) <= MOST_CLASSES


def _classes(column: pa.ChunkedArray) -> tuple[IntArray, list[str]]:
    """Classes in the order of their numbers, or of their texts."""
    if is_category(column.type):
        return encoded(column)
    found, codes = np.unique(as_numbers(column), return_inverse=True)
    return codes.astype(np.int64), [f"{one:g}" for one in found]


def _listed(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")


def _labels(columns: Mapping[str, pa.ChunkedArray]) -> _Targets:
    values = np.stack([*map(as_numbers, columns.values())], axis=1)
    names = ", ".join(columns)
    if not np.isin(values, (0, 1)).all():
        raise InputError("targets", names, "0 or 1 in every row, for labels", "Or data.targets.")
    told = f"Targets {names}: {len(columns)} labels, each 0 or 1."
    return _Targets(values.astype(np.float32), Encoding(), told)


def _numbers(columns: Mapping[str, pa.ChunkedArray], train: BoolArray) -> _Targets:
    for name, column in columns.items():
        _check_numeric(name, column)
    values = np.stack([*map(as_numbers, columns.values())], axis=1)
    if len(columns) == 1:
        values = values[:, 0]
    scale = column_normalisation(values[train])
    told = map(_told_scale, columns, np.atleast_1d(scale.mean), np.atleast_1d(scale.deviation))
    return _Targets(scale.applied_to(values), Encoding(target=scale), f"{'; '.join(told)}.")


def _told_scale(name: str, mean: float, deviation: float) -> str:
    return f"Target {name}: mean {mean:.4g}, deviation {deviation:.4g}; scores are in its own units"


def _dealing_columns(
    table: pa.Table, reading: Reading, files: Files | None, train: BoolArray
) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {}
    if reading.column:
        _check_column(table, reading.column, "data.column")
        codes, names = encoded(table.column(reading.column))
        columns[reading.column] = np.array(names)[codes[train]]
    if files is not None:
        columns[FILE] = np.array(files.names)[files.codes[train]]
    return columns
