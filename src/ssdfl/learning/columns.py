"""Turn columns of tables into inputs and targets, using a summary of all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssdfl.arrays import BoolArray, IntArray
from ssdfl.errors import InputError
from ssdfl.lazy import LazyModule
from ssdfl.learning.encoding import Column, Encoding, as_numbers, as_texts
from ssdfl.learning.normalisation import Normalisation
from ssdfl.learning.summaries import (
    CATEGORY,
    EMPTY,
    NUMBER,
    OTHER,
    ColumnSummary,
    summarised_numbers,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa = LazyModule("pyarrow")
    pc = LazyModule("pyarrow.compute")

MOST_CATEGORIES = 50
MOST_CLASSES = 20
"""A column of whole numbers with more distinct values than this holds numbers, not classes."""


class Targets(NamedTuple):
    """(rows, …) targets, how they were encoded, and a note about them."""

    values: NDArray[Any]
    encoding: Encoding
    told: str


def is_number(kind: pa.DataType) -> bool:
    """Whether a column holds numbers."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def is_category(kind: pa.DataType) -> bool:
    """Whether a column holds texts or truth values."""
    texts = (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    )
    return bool(texts or pa.types.is_boolean(kind))


_KINDS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (is_number, NUMBER),
    (is_category, CATEGORY),
    (lambda kind: pa.types.is_null(kind), EMPTY),
    (lambda _: True, OTHER),
)


def encoded(column: pa.ChunkedArray) -> tuple[IntArray, list[str]]:
    """(rows,) the index of each row's text, and the texts in order; a missing text is empty.

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


def summarise_column(
    name: str, column: pa.ChunkedArray, train: BoolArray, different: str
) -> ColumnSummary:
    """The summary of a column that its encoding needs.

    Args:
        train: (rows,) which rows are for training.
        different: whose distinct values to list: ``categories`` of an input's training rows,
            ``classes`` of a target's whole numbers and texts, ``all`` of a target's numbers and
            texts.
    """
    kind = next(kind for fits, kind in _KINDS if fits(column.type))
    rows = int(train.sum())
    if kind == CATEGORY:
        return ColumnSummary(name, kind, rows, values=tuple(_DIFFERENT[different](column, train)))
    if kind == NUMBER:
        return ColumnSummary(name, kind, rows, **_number_facts(column, train, different))
    return ColumnSummary(name, kind, rows)


def _number_facts(column: pa.ChunkedArray, train: BoolArray, different: str) -> dict[str, Any]:
    """The facts about a column of numbers that its encoding needs."""
    known = as_numbers(column)[train]
    return {
        **summarised_numbers(known[np.isfinite(known)]),
        "values": tuple(_DIFFERENT[different](column, train)),
        "whole": bool(pa.types.is_integer(column.type)),
    }


def _categories(column: pa.ChunkedArray, train: BoolArray) -> Sequence[str]:
    """The categories of the training rows, cut off at one more than can be used."""
    if not is_category(column.type):
        return []
    codes, names = encoded(column)
    seen = np.flatnonzero(np.bincount(codes[train], minlength=len(names)))
    return [names[code] for code in seen[: MOST_CATEGORIES + 1]]


def _classes(column: pa.ChunkedArray, _: BoolArray) -> Sequence[str]:
    """The classes, from texts or whole numbers, cut off at one more than can be used."""
    if is_category(column.type):
        return encoded(column)[1]
    return _numbers_as_texts(column)[: MOST_CLASSES + 1] if pa.types.is_integer(column.type) else []


def _all_values(column: pa.ChunkedArray, _: BoolArray) -> Sequence[str]:
    return encoded(column)[1] if is_category(column.type) else _numbers_as_texts(column)


def _numbers_as_texts(column: pa.ChunkedArray) -> list[str]:
    return [f"{value:.17g}" for value in np.unique(as_numbers(column))]


_DIFFERENT = {
    "categories": _categories,
    "classes": _classes,
    "all": _all_values,
    "none": lambda *_: [],
}


class _Described(NamedTuple):
    """The treatment of a column, a note about it, and its encoding unless it is left out."""

    done: str
    told: str
    column: Column | None


_TOLD = {
    NUMBER: "Columns standardised to mean 0 and deviation 1",
    CATEGORY: "Columns encoded as one input for each value",
    OTHER: f"Columns left out (neither numbers nor at most {MOST_CATEGORIES} categories)",
}
"""The treatment of each kind of column, for notes."""


def input_columns(columns: Sequence[ColumnSummary]) -> tuple[tuple[Column, ...], list[str]]:
    """The encoding of columns as inputs, and notes about it.

    Raises:
        InputError: no column can be an input.
    """
    described = [_described(column) for column in columns]
    found = tuple(one.column for one in described if one.column is not None)
    if not found:
        names = ", ".join(column.name for column in columns)
        raise InputError("columns", names, "inputs in addition to the target", "Add some.")
    return found, list(filter(None, (_told_kind(kind, described) for kind in _TOLD)))


def _told_kind(kind: str, described: Sequence[_Described]) -> str:
    names = [one.told for one in described if one.done == kind]
    return f"{_TOLD[kind]}: {', '.join(names)}." if names else ""


def _described(summary: ColumnSummary) -> _Described:
    if summary.kind == NUMBER:
        by = summary.normalisation
        column = Column(summary.name, float(by.mean), float(by.deviation))
        return _Described(NUMBER, _told_gaps(summary), column)
    few = len(summary.values) <= min(MOST_CATEGORIES, summary.rows / 2)
    if summary.kind != CATEGORY or not few:
        return _Described(OTHER, summary.name, None)
    values = tuple(summary.ordered_values)
    return _Described(
        CATEGORY, f"{summary.name} ({len(values)})", Column(summary.name, values=values)
    )


def check_column(table: pa.Table, name: str, what: str) -> None:
    """Refuse a table without a column."""
    if name not in table.column_names:
        raise InputError(
            what, name, f"one of the columns {', '.join(table.column_names)}", "Correct it."
        )


def _told_gaps(summary: ColumnSummary) -> str:
    missing = summary.rows - summary.count
    return f"{summary.name} ({missing} missing, taken as the mean)" if missing else summary.name


def encode_targets(table: pa.Table, columns: Sequence[ColumnSummary], kind: str) -> Targets:
    """Targets in the form that models predict.

    Args:
        kind: the kind of targets, as in `ssdfl.learning.tables.Reading`.

    Raises:
        InputError: a target is missing, a class is not in the summary, or numbers are expected but
            the column has texts.
    """
    for column in columns:
        check_column(table, column.name, "data.target")
        _check_whole(column.name, table.column(column.name))
    if kind == "labels":
        return _labels(table, columns)
    if len(columns) == 1 and are_classes(columns[0], kind):
        return _as_classes(table.column(columns[0].name), columns[0])
    return _as_numbers(table, columns)


def are_classes(column: ColumnSummary, kind: str) -> bool:
    """Whether a target is a class; ``auto`` treats texts and few whole numbers as classes."""
    if kind != "auto":
        return kind == "classes"
    few = column.whole and len(column.values) <= MOST_CLASSES
    return column.kind == CATEGORY or (column.kind == NUMBER and few)


def _check_whole(name: str, column: pa.ChunkedArray) -> None:
    if column.null_count:
        got = f"{column.null_count} missing"
        raise InputError(f"column {name}", got, "a target in every row", "Fill them.")


def _as_classes(column: pa.ChunkedArray, summary: ColumnSummary) -> Targets:
    """Classes in the order of their numbers, or of their texts."""
    classes = summary.ordered_values
    codes, found = _coded(column)
    place = places(found, classes, f"column {summary.name}")
    shown = [f"{float(one):g}" for one in classes] if summary.kind == NUMBER else classes
    told = f"Target {summary.name}: {len(classes)} classes, {listed(shown)}."
    return Targets(place[codes], Encoding(classes=tuple(shown)), told)


def places(found: Sequence[str], classes: Sequence[str], what: str) -> IntArray:
    """(found,) the position of each value among all classes.

    Raises:
        InputError: a value is not among the classes.
    """
    unknown = [name for name in found if name not in classes]
    if unknown:
        expected = f"one of the classes {listed(classes)}"
        raise InputError(what, unknown[0], expected, "Summarise all devices' data again.")
    return np.array([classes.index(name) for name in found], dtype=np.int64)


def _coded(column: pa.ChunkedArray) -> tuple[IntArray, list[str]]:
    """(rows,) the index of each row's value, and the values as in summaries."""
    if is_category(column.type):
        return encoded(column)
    values = as_numbers(column)
    return np.unique(values, return_inverse=True)[1].astype(np.int64), _numbers_as_texts(column)


def listed(names: Sequence[str], most: int = 6) -> str:
    """The first of some names."""
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")


def _labels(table: pa.Table, columns: Sequence[ColumnSummary]) -> Targets:
    values = np.stack([as_numbers(table.column(column.name)) for column in columns], axis=1)
    names = ", ".join(column.name for column in columns)
    if not np.isin(values, (0, 1)).all():
        raise InputError("targets", names, "0 or 1 in every row, for labels", "Or data.targets.")
    told = f"Targets {names}: {len(columns)} labels, each 0 or 1."
    return Targets(values.astype(np.float32), Encoding(), told)


def _as_numbers(table: pa.Table, columns: Sequence[ColumnSummary]) -> Targets:
    for column in columns:
        _check_numeric(column.name, table.column(column.name))
    values = np.stack([as_numbers(table.column(column.name)) for column in columns], axis=1)
    scales = [column.normalisation for column in columns]
    scale = Normalisation(
        np.array([one.mean for one in scales]), np.array([one.deviation for one in scales])
    )
    if len(columns) == 1:
        values, scale = values[:, 0], scales[0]
    told = f"{'; '.join(map(_told_scale, columns))}."
    return Targets(scale.applied_to(values), Encoding(target=scale), told)


def _check_numeric(name: str, column: pa.ChunkedArray) -> None:
    if not is_number(column.type):
        raise InputError(
            f"column {name}", str(column.type), "numbers", "Or name one target of classes."
        )


def _told_scale(column: ColumnSummary) -> str:
    by = column.normalisation
    return (
        f"Target {column.name}: mean {by.mean:.4g}, deviation {by.deviation:.4g}; "
        "scores are in its own units"
    )
