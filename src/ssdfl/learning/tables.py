"""Convert tables to data sets: standardise numbers, encode categories, and note what was done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssdfl.arrays import BoolArray, IntArray
from ssdfl.errors import InputError
from ssdfl.lazy import LazyModule
from ssdfl.learning.columns import (
    check_column,
    encode_targets,
    encoded,
    input_columns,
    summarise_column,
)
from ssdfl.learning.dataset import Dataset
from ssdfl.learning.summaries import Summary, merged
from ssdfl.rng import generator

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = LazyModule("pyarrow")

SPLIT = "split"
"""The column that marks rows for testing."""
FILE = "file"
"""The column of a data set that names the file of each row."""
TARGETS = ("target", "label", "y")
"""The usual names of a target's column."""
_DIFFERENT_TARGETS = {"auto": "classes", "classes": "all", "numbers": "none", "labels": "none"}
"""Whose distinct values are listed, by the kind of targets."""


@dataclass(frozen=True)
class Reading:
    """How a file becomes a data set.

    Attributes:
        target: the target's column, or several separated by commas; by default one of `TARGETS`, or
            the last column.
        column: a column by which samples can be dealt, such as a user; it is not an input.
        kind: the kind of targets; ``auto`` treats texts and few whole numbers as classes.
        test_share: the share that is split off for testing, if the data do not mark test rows.
        known: the summary by which the data are encoded, such as that of all devices' data; by
            default, the summary of these data.
    """

    target: str = ""
    column: str = ""
    kind: Literal["auto", "classes", "numbers", "labels"] = "auto"
    test_share: float = 0.2
    known: Summary | None = None


AS_IT_IS = Reading()
"""The default settings."""


class Files(NamedTuple):
    """The origin of a table's rows: (rows,) the index of each row's file, and the files' names."""

    codes: IntArray
    names: list[str]


def table_dataset(
    table: pa.Table, reading: Reading = AS_IT_IS, files: Files | None = None
) -> Dataset:
    """A data set from a table with one row per sample.

    Numbers are scaled to mean 0 and deviation 1 over the training rows; missing ones become the
    mean. A text or boolean becomes one input for each value in the training rows. Rows whose column
    ``split`` is ``test`` are for testing. Without that column, a share of the rows is drawn from a
    fixed seed.

    Args:
        files: the file of each row.

    Raises:
        InputError: a column is missing, targets are not valid, or there are no inputs.
    """
    test = _test_rows(table, reading, files)
    summary = reading.known or _summarised(table, reading, files, ~test)
    columns, notes = input_columns(summary.inputs)
    targets = encode_targets(table, summary.targets, reading.kind)
    names = tuple(column.name for column in summary.targets)
    encoding = replace(targets.encoding, columns=columns, targets=names)
    inputs = encoding.inputs(table)
    return Dataset(
        train_inputs=inputs[~test],
        train_targets=targets.values[~test],
        test_inputs=inputs[test],
        test_targets=targets.values[test],
        num_classes=len(encoding.classes),
        loss="multilabel" if reading.kind == "labels" else "auto",
        columns=_dealing_columns(table, reading, files, ~test),
        test_columns=_dealing_columns(table, reading, files, test),
        notes=(*notes, targets.told),
        encoding=encoding,
        summary=summary,
    )


def _summarised(
    table: pa.Table, reading: Reading, files: Files | None, train: BoolArray
) -> Summary:
    """The summary of all rows, merged from one summary per file, as devices would do."""
    targets = _target_names(table, reading)
    reserved = {*targets, reading.column, SPLIT}
    inputs = [name for name in table.column_names if name not in reserved]
    different = _DIFFERENT_TARGETS[reading.kind]

    def of_rows(rows: slice) -> Summary:
        part, chosen = table.slice(rows.start, rows.stop - rows.start), train[rows]
        return Summary(
            tuple(
                summarise_column(name, part.column(name), chosen, "categories") for name in inputs
            ),
            tuple(summarise_column(name, part.column(name), chosen, different) for name in targets),
        )

    return merged(map(of_rows, _stretches(len(table), files)))


def _stretches(rows: int, files: Files | None) -> list[slice]:
    """The rows of each file."""
    if files is None:
        return [slice(0, rows)]
    ends = np.cumsum(np.bincount(files.codes)).tolist()
    return list(map(slice, [0, *ends[:-1]], ends))


def _target_names(table: pa.Table, reading: Reading) -> list[str]:
    return _named_targets(table, reading) if reading.target else [_usual_target(table, reading)]


def _named_targets(table: pa.Table, reading: Reading) -> list[str]:
    names = [name.strip() for name in reading.target.split(",")]
    for name in names:
        check_column(table, name, "data.target")
    return names


def _usual_target(table: pa.Table, reading: Reading) -> str:
    """A column with a usual name, or the last one."""
    others = [name for name in table.column_names if name not in (reading.column, SPLIT)]
    if len(others) < 2:
        expected = "a column of targets in addition to inputs"
        raise InputError("columns", ", ".join(table.column_names), expected, "Add a target.")
    return next(filter(others.__contains__, TARGETS), others[-1])


def _test_rows(table: pa.Table, reading: Reading, files: Files | None) -> BoolArray:
    """(rows,) which rows are for testing."""
    if SPLIT in table.column_names:
        return _said_test(table)
    parts = [rows.stop - rows.start for rows in _stretches(len(table), files)]
    if len(parts) == 1:
        return split_off(len(table), reading.test_share)
    return np.concatenate([_split_file(count, reading.test_share) for count in parts])


def _split_file(count: int, share: float) -> BoolArray:
    """The test rows, as on a device that has only this file; none if the file is too small."""
    return split_off(count, share) if round(share * count) else np.zeros(count, dtype=bool)


def _said_test(table: pa.Table) -> BoolArray:
    said = table.column(SPLIT).cast(pa.string()).to_numpy(zero_copy_only=False)
    test: BoolArray = said == "test"
    if not 0 < test.sum() < len(test):
        got = ", ".join(np.unique(said.astype(str))[:5])
        raise InputError(f"column {SPLIT}", got, "test in some rows, not all", "Mark them.")
    return test


def split_off(count: int, share: float, groups: IntArray | None = None) -> BoolArray:
    """(count,) a share of samples, or of each group's samples, drawn from a fixed seed.

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
        raise InputError("samples", count, "enough to train and to test", remedy)
    return test


def _dealing_columns(
    table: pa.Table, reading: Reading, files: Files | None, rows: BoolArray
) -> dict[str, NDArray[Any]]:
    """The columns by which samples can be dealt, for some rows."""
    columns: dict[str, NDArray[Any]] = {}
    if reading.column:
        check_column(table, reading.column, "data.column")
        codes, names = encoded(table.column(reading.column))
        columns[reading.column] = np.array(names)[codes[rows]]
    if files is not None:
        columns[FILE] = np.array(files.names)[files.codes[rows]]
    return columns
