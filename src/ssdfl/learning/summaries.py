"""Summaries of all devices' data, by which they are encoded: counts, means, spreads, values.

A single device does not know the mean of a column over all devices, nor all categories and classes.
Summaries of parts can be merged into a summary of the whole, so no device needs to see all rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssdfl.errors import InputError
from ssdfl.learning.normalisation import Normalisation

NUMBER, CATEGORY, EMPTY, OTHER = "number", "category", "empty", "other"
"""The kinds of columns; one with only missing values is `EMPTY`."""
VERSION = 1

Nested = float | list[Any]
"""A number, or nested lists of numbers: one for each channel or position of an array."""


@dataclass(frozen=True)
class ColumnSummary:
    """A column of a table, or all inputs of arrays.

    Attributes:
        kind: the kind of its values.
        rows: the number of training rows.
        count: the number of known numbers among them.
        mean: the mean of these numbers.
        spread: the sum of squared differences from the mean.
        values: the distinct values of categories and classes.
        whole: whether all its numbers are whole.
    """

    name: str
    kind: str
    rows: int
    count: int = 0
    mean: Nested = 0.0
    spread: Nested = 0.0
    values: tuple[str, ...] = ()
    whole: bool = True

    @property
    def normalisation(self) -> Normalisation:
        """The normalisation of its numbers to mean 0 and deviation 1."""
        deviation = np.sqrt(np.asarray(self.spread, dtype=float) / max(self.count, 1))
        return Normalisation(
            np.asarray(self.mean, dtype=float), np.where(deviation > 0, deviation, 1.0)
        )

    @property
    def ordered_values(self) -> list[str]:
        """Its values: numbers sorted by size, texts alphabetically."""
        return sorted(self.values, key=float) if self.kind == NUMBER else sorted(self.values)


@dataclass(frozen=True)
class Summary:
    """The summary of a data set that its encoding needs.

    Examples:
        >>> def part(count, mean, spread):
        ...     return Summary((ColumnSummary("x", NUMBER, count, count, mean, spread),), ())
        >>> both = merged([part(2, 1.0, 2.0), part(2, 3.0, 2.0)])  # 0, 2 and 2, 4
        >>> both.inputs[0].mean, both.inputs[0].spread
        (2.0, 8.0)
    """

    inputs: tuple[ColumnSummary, ...]
    targets: tuple[ColumnSummary, ...]

    def to_json(self) -> str:
        """The content of a summary's file."""
        return json.dumps({"version": VERSION, **asdict(self)}, indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> Summary:
        """The inverse of `to_json`.

        Raises:
            ValueError: the text is not a summary.
        """
        try:
            values = json.loads(text)
            if values["version"] != VERSION:
                raise ValueError(f"version {values['version']} instead of {VERSION}")
            return Summary(*(tuple(map(_column, values[part])) for part in ("inputs", "targets")))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a summary of data ({error!r})") from None


def _column(values: dict[str, Any]) -> ColumnSummary:
    column = ColumnSummary(**{**values, "values": tuple(map(str, values["values"]))})
    numbers = np.concatenate(
        [np.ravel(part) for part in (column.mean, column.spread, column.count)]
    )
    if (
        not np.isfinite(numbers.astype(float)).all()
        or np.min(column.spread) < 0
        or column.count < 0
    ):
        raise ValueError(f"impossible numbers of column {column.name}")
    return column


def read_summary(path: Path) -> Summary:
    """The summary in a JSON file.

    Raises:
        InputError: the file does not exist, or is not a summary.
    """
    try:
        return Summary.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        expected = "a file that ssdfl data summarise wrote"
        raise InputError("data.encoding", str(path), expected, f"({error})") from None


def summarised_numbers(values: NDArray[Any], axes: int | tuple[int, ...] = 0) -> dict[str, Any]:
    """Count, mean and spread over some axes, which include the first; empty without numbers."""
    count = int(np.prod([values.shape[axis] for axis in np.atleast_1d(axes)]))
    if not count:
        return {}
    mean = np.asarray(values.mean(axis=axes, dtype=np.float64, keepdims=True))[0]
    variance = np.asarray(values.var(axis=axes, dtype=np.float64, keepdims=True))[0]
    return {"count": count, "mean": mean.tolist(), "spread": (count * variance).tolist()}


def merged(parts: Iterable[Summary]) -> Summary:
    """The summary of several parts together, in their order.

    Raises:
        InputError: their columns differ.
    """
    return reduce(_merged_two, parts)


def _merged_two(a: Summary, b: Summary) -> Summary:
    return Summary(_merged_columns(a.inputs, b.inputs), _merged_columns(a.targets, b.targets))


def _merged_columns(
    a: Sequence[ColumnSummary], b: Sequence[ColumnSummary]
) -> tuple[ColumnSummary, ...]:
    names, others = ([column.name for column in columns] for columns in (a, b))
    if names != others:
        raise InputError(
            "columns", ", ".join(others), ", ".join(names), "Use the same columns on all devices."
        )
    return tuple(map(_merged_column, a, b))


def _merged_column(a: ColumnSummary, b: ColumnSummary) -> ColumnSummary:
    kinds = {one.kind for one in (a, b)} - {EMPTY}
    if len(kinds) > 1:
        got = f"{a.kind} and {b.kind}"
        raise InputError(f"column {a.name}", got, "the same kind on all devices", "Convert it.")
    return replace(
        a,
        kind=kinds.pop() if kinds else EMPTY,
        rows=a.rows + b.rows,
        values=tuple(dict.fromkeys((*a.values, *b.values))),
        whole=a.whole and b.whole,
        **_merged_numbers(a, b),
    )


def _merged_numbers(a: ColumnSummary, b: ColumnSummary) -> dict[str, Any]:
    """Count, mean and spread of two parts together (Chan, Golub and LeVeque, 1983)."""
    count = a.count + b.count
    if not a.count or not b.count:
        some = a if a.count else b
        return {"count": count, "mean": some.mean, "spread": some.spread}
    mean, other = np.asarray(a.mean, dtype=float), np.asarray(b.mean, dtype=float)
    if mean.shape != other.shape:
        expected = f"{mean.shape}, as other devices have"
        raise InputError(f"shape of {a.name}", other.shape, expected, "Make all shapes equal.")
    gap = other - mean
    spread = np.asarray(a.spread) + np.asarray(b.spread) + gap**2 * (a.count * b.count / count)
    return {
        "count": count,
        "mean": (mean + gap * (b.count / count)).tolist(),
        "spread": spread.tolist(),
    }
