"""How raw samples were encoded for models, so that a model can be used without its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.errors import InputError
from ssdfl.lazy import LazyModule
from ssdfl.learning.normalisation import Normalisation

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa, pc = LazyModule("pyarrow"), LazyModule("pyarrow.compute")

UNKNOWN = -1
"""The code of a category that is not in the training rows."""


@dataclass(frozen=True)
class Column:
    """A column of a table, and how its values become inputs.

    A number x becomes (x − mean) / deviation, or 0 if it is missing. A category becomes one input
    for each of `values`: 1 for its own value, 0 for the others.

    Examples:
        >>> size = Column("size", mean=50.0, deviation=10.0)
        >>> colour = Column("colour", values=("blue", "red"))
        >>> size.inputs(np.array([60.0, np.nan])).tolist()
        [[1.0], [0.0]]
        >>> codes = colour.raw(pa.chunked_array([["red", "green"]]))
        >>> codes.tolist(), colour.inputs(codes).tolist()
        ([1.0, -1.0], [[0.0, 1.0], [0.0, 0.0]])
    """

    name: str
    mean: float = 0.0
    deviation: float = 1.0
    values: tuple[str, ...] = ()

    def raw(self, column: pa.ChunkedArray) -> FloatArray:
        """(rows,) numbers, or NaN if missing; for a category, its position in `values`."""
        if not self.values:
            return as_numbers(column)
        codes = pc.index_in(as_texts(column), value_set=pa.array(self.values, pa.string()))
        found: FloatArray = (
            pc.fill_null(codes, UNKNOWN).to_numpy(zero_copy_only=False).astype(float)
        )
        return found

    def inputs(self, raw: FloatArray) -> NDArray[np.float32]:
        """(rows, inputs) the inputs of models, from the result of `raw`."""
        if self.values:
            return np.asarray(raw[:, None] == np.arange(len(self.values)), dtype=np.float32)
        known = np.where(np.isfinite(raw), raw, self.mean)
        return np.asarray((known[:, None] - self.mean) / self.deviation, dtype=np.float32)


def as_numbers(column: pa.ChunkedArray) -> FloatArray:
    """(rows,) numbers; NaN if missing."""
    values: FloatArray = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values


def as_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts; empty if missing."""
    return pc.fill_null(column.cast(pa.string()), "")


@dataclass(frozen=True, eq=False)
class Encoding:
    """How raw samples and targets were encoded; by default, not at all.

    Attributes:
        normalisation: for inputs that are one array, such as images.
        columns: for a table, in the order of the inputs.
        vocabulary: for text, the characters or words in the order of their tokens.
        classes: the names of classes, in the order of outputs.
        targets: the columns of a table that are to be predicted.
        target: the normalisation of targets; outputs are converted back with it.
    """

    normalisation: Normalisation | None = None
    columns: tuple[Column, ...] = ()
    vocabulary: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    target: Normalisation | None = None

    def rows(self, table: Any) -> NDArray[np.float32]:
        """(rows, columns) a table as the input of exported programs: numbers and category codes.

        Args:
            table: a pandas frame, an Arrow table, or a dict of columns. Columns that are not needed
                are ignored.

        Raises:
            InputError: a column is missing, or has values of another kind.
        """
        found = [_raw(column, _as_table(table)) for column in self.columns]
        return np.stack(found, axis=1).astype(np.float32)

    def inputs(self, table: Any) -> NDArray[np.float32]:
        """(rows, inputs) a table as the input of the model itself."""
        raw = [(column, _raw(column, _as_table(table))) for column in self.columns]
        return np.concatenate([column.inputs(values) for column, values in raw], axis=1)

    def tokens(self, text: str) -> IntArray:
        """(length,) the tokens of a text's characters.

        Raises:
            InputError: a character is not in the vocabulary.

        Examples:
            >>> Encoding(vocabulary=("a", "b", " ")).tokens("b a").tolist()
            [1, 2, 0]
        """
        places = {token: place for place, token in enumerate(self.vocabulary)}
        unknown = sorted(set(text) - places.keys())
        if unknown:
            expected = f"characters from {''.join(self.vocabulary)!r}"
            raise InputError("text", repr(unknown[0]), expected, "Replace it.")
        return np.array([places[letter] for letter in text], dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        """The encoding as JSON values."""
        return {
            "normalisation": None if self.normalisation is None else self.normalisation.to_json(),
            "columns": [asdict(column) for column in self.columns],
            "vocabulary": list(self.vocabulary),
            "classes": list(self.classes),
            "targets": list(self.targets),
            "target": None if self.target is None else self.target.to_json(),
        }

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Encoding:
        """The inverse of `to_json`; files of earlier versions have only the normalisation."""
        columns = [
            Column(**one | {"values": tuple(one["values"])}) for one in values.get("columns", ())
        ]
        return Encoding(
            normalisation=_normalisation(values["normalisation"]),
            columns=tuple(columns),
            vocabulary=tuple(values.get("vocabulary", ())),
            classes=tuple(values.get("classes", ())),
            targets=tuple(values.get("targets", ())),
            target=_normalisation(values.get("target")),
        )


AS_THEY_ARE = Encoding()
"""The encoding of samples that were not encoded, or whose encoding is unknown."""


def _normalisation(values: dict[str, Any] | None) -> Normalisation | None:
    return None if values is None else Normalisation.from_json(values)


def _as_table(source: Any) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, Mapping):
        return pa.table(dict(source))
    return pa.Table.from_pandas(source, preserve_index=False)


def _raw(column: Column, table: pa.Table) -> FloatArray:
    if column.name not in table.column_names:
        expected = f"a table with the column {column.name}"
        raise InputError("columns", ", ".join(table.column_names), expected, "Add it.")
    try:
        return column.raw(table.column(column.name))
    except pa.ArrowException as error:
        kind = "texts" if column.values else "numbers"
        reason = str(error).splitlines()[0]
        raise InputError(f"column {column.name}", reason, kind, "Convert it.") from None
