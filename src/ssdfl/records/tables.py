"""Records and bounds as Parquet files; the schema of records follows from `Record`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdfl.errors import InputError
from ssdfl.files import atomic_path
from ssdfl.lazy import LazyModule
from ssdfl.records.record import TYPES, Record
from ssdfl.records.scores import READINGS

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as parquet
else:
    pa, parquet = LazyModule("pyarrow"), LazyModule("pyarrow.parquet")

Row = dict[str, Any]
"""A record, read from a file; it has ``method`` and ``seed`` if there are several of them."""

SWEEP_RECORDS = "records.parquet"
"""The records of all combinations, in the folder of a sweep."""

_DEFAULTS: Row = {one.name: one.default for one in fields(Record) if one.default is not MISSING}

_NEW_NAMES = {
    "accuracy": "score",
    "accuracy_std": "score_std",
    "accuracy_worst": "score_worst",
    "average_model_accuracy": "average_model_score",
    "device_accuracy": "device_score",
}


def record_schema() -> pa.Schema:
    """The columns of a method's records."""
    types = {int: pa.int64(), float: pa.float64(), tuple[float, ...]: pa.list_(pa.float64())}
    return pa.schema([(one.name, types[TYPES[one.name]]) for one in fields(Record)])


def run_schema() -> pa.Schema:
    """The columns of a run's records."""
    return pa.schema([("method", pa.string()), ("seed", pa.int64()), *record_schema()])


def bound_schema() -> pa.Schema:
    """The columns of measurements and their bounds."""
    return pa.schema(
        [
            ("seed", pa.int64()),
            ("method", pa.string()),
            ("cycle", pa.int64()),
            ("statement", pa.string()),
            ("cluster", pa.int64()),
            ("measured", pa.float64()),
            ("published", pa.float64()),
            ("rigorous", pa.float64()),
        ]
    )


def to_frame(rows: list[Row]) -> Any:
    """Records of a run as a pandas frame."""
    return pa.Table.from_pylist(rows, schema=run_schema()).to_pandas()


def write_table(path: Path, rows: Iterable[Row], schema: pa.Schema) -> None:
    """Write rows to a Parquet file atomically."""
    with atomic_path(path) as temporary:
        parquet.write_table(pa.Table.from_pylist(list(rows), schema=schema), temporary)


def write_swept_records(path: Path, swept: Mapping[str, Sequence[Any]], rows: list[Row]) -> None:
    """Write records of several experiments, with the swept keys as first columns.

    Args:
        swept: for each key, its value in each row.
    """
    table = pa.Table.from_pylist(rows, schema=run_schema())
    for place, (key, values) in enumerate(swept.items()):
        table = table.add_column(place, key, _typed(values))
    with atomic_path(path) as temporary:
        parquet.write_table(table, temporary)


def _typed(values: Sequence[Any]) -> pa.Array:
    """A column of the type that all values share, or else of text."""
    try:
        return pa.array(values)
    except pa.ArrowException:
        return pa.array([str(value) for value in values])


def read_frame(path: Path) -> Any:
    """A Parquet file as a pandas frame.

    Raises:
        InputError: the file is damaged.
    """
    return _read(path, pa.Table.to_pandas)


def read_table(path: Path) -> list[Row]:
    """The rows of a Parquet file; empty if there is no such file.

    Raises:
        InputError: the file is damaged.
    """
    rows: list[Row] = _read(path, pa.Table.to_pylist) if path.exists() else []
    return rows


def _read(path: Path, convert: Callable[[pa.Table], Any]) -> Any:
    """Read a file's table and convert it; text is decoded only during the conversion."""
    try:
        return convert(parquet.read_table(path))
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        remedy = f"({error}) Delete its folder."
        raise InputError("metrics", str(path), "a whole file", remedy) from error


def read_records(path: Path) -> list[Row]:
    """The records in a file; fields added to `Record` since it was written get their defaults."""
    return [{**_DEFAULTS, **_with_new_names(row)} for row in read_table(path)]


def _with_new_names(row: Row) -> Row:
    """Rename the columns of a record from a version in which accuracy was the only score."""
    if "accuracy" not in row:
        return row
    return {_NEW_NAMES.get(name, name): value for name, value in row.items()}


def is_measured(row: Row, quantity: str = "score") -> bool:
    """Whether a record has a quantity; it is NaN if it was not measured in the cycle.

    Examples:
        >>> is_measured({"score": 0.5}), is_measured({"score": math.nan})
        (True, False)
    """
    return not math.isnan(row.get(quantity, math.nan))


def has_test(row: Row) -> bool:
    """Whether the record's cycle ended with a test, of all models or of the averaged one only."""
    return any(is_measured(row, reading) for reading in READINGS)
