"""Device descriptors in a CSV file or a data frame.

``device[,label_0,label_1,…][,rho][,mu]``: the device's name in the network, its number of samples
of each label, and its momentum and proximal factor if it uses them. Further columns give a
device's costs, named with their units as in network files: ``compute_ms``, ``uplink_Mbps``, ….
"""

from __future__ import annotations

import csv
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssdfl.clusters.heterogeneity import Device
from ssdfl.errors import InputError
from ssdfl.graph import DEVICE_UNITS, Network, read_costs

if TYPE_CHECKING:
    import pandas


def read_devices(
    source: Path | str | pandas.DataFrame,
    names: Sequence[str],
    known: Sequence[Device] | None = None,
) -> tuple[Device, ...]:
    """Descriptors in the order of the network's device names.

    Args:
        source: a CSV file, or a data frame with the same columns.
        names: the devices of the network.
        known: their descriptors if the table has no labels; by default all are alike.

    Raises:
        InputError: a device is missing, unknown or repeated, or a value is not valid.
    """
    table = _read_table(source)
    columns = _label_columns(table)
    before = dict(zip(names, known or [Device(np.ones(1))] * len(names), strict=True))
    found: dict[str, Device] = {}
    for where, row in table.rows:
        name = row["device"]
        if name in found:
            raise InputError(
                f"{where}: device", name, "each device once", "Remove one of its lines."
            )
        if name not in before:
            raise InputError(
                f"{where}: device", name, "a device of the network", "Correct its name."
            )
        found[name] = _device(row, columns, where, before[name])
    _check_complete(table, names, found)
    return tuple(found[name] for name in names)


def _check_complete(table: _Table, names: Sequence[str], found: Container[str]) -> None:
    missing = next((name for name in names if name not in found), None)
    if missing is not None:
        raise InputError(
            f"{table.source}: device", missing, "a line for each device", "Add its line."
        )


def with_device_costs(network: Network, source: Path | str | pandas.DataFrame) -> Network:
    """The network with the costs in a table of its devices; empty cells change nothing.

    Raises:
        InputError: a value is not valid.
    """
    table = _read_table(source)
    place = {name: device for device, name in enumerate(network.names)}
    costs: dict[str, Any] = {}
    for where, row in table.rows:
        for name, value in _costs(row, where).items():
            costs.setdefault(name, getattr(network, name).copy())[place[row["device"]]] = value
    return replace(network, **costs)


def _costs(row: dict[str, str], where: str) -> dict[str, float]:
    """The costs of a row's device."""
    given = {name: text for name, text in row.items() if name in DEVICE_UNITS and text}
    return read_costs(given, DEVICE_UNITS, where)


@dataclass(frozen=True)
class _Table:
    """A table of texts, and its name in errors.

    Attributes:
        rows: the place of each row, and its texts by column.
    """

    source: str
    header: list[str]
    rows: list[tuple[str, dict[str, str]]]


def _read_table(source: Path | str | pandas.DataFrame) -> _Table:
    if isinstance(source, str | Path):
        header, rows = _read_rows(Path(source))
        places = [f"{source} line {number}" for number in range(2, len(rows) + 2)]
        return _Table(str(source), header, list(zip(places, rows, strict=True)))
    header, rows = _frame_rows(source)
    places = [f"data frame row {number}" for number in range(len(rows))]
    return _Table("data frame", header, list(zip(places, rows, strict=True)))


def _label_columns(table: _Table) -> list[str]:
    """The columns that count labels, after checking the header."""
    header = table.header
    columns = [column for column in header if column.startswith("label_")]
    unknown = set(header) - set(columns) - {"device", "rho", "mu", *DEVICE_UNITS}
    complete = "device" in header and len(header) > 1
    repeated = len(set(header)) < len(header)
    if not complete or unknown or repeated:
        expected = (
            "device[,label_0,label_1,…][,rho][,mu] and perhaps costs such as compute_ms, each once"
        )
        raise InputError(
            f"header of {table.source}", ",".join(header), expected, "Rename the columns."
        )
    return columns


def _device(row: dict[str, str], columns: Sequence[str], where: str, before: Device) -> Device:
    """The device of a row; without labels in the row, its data are those of ``before``."""
    given: dict[str, Any] = {
        name: _number(row, name, where) for name in ("rho", "mu") if name in row
    }
    labels = np.array([_number(row, column, where) for column in columns])
    try:
        if columns:
            return Device(labels, **given)
        return replace(before, **given) if given else before
    except InputError as error:
        what = f"{where}: {error.what}"
        raise InputError(what, error.got, error.expected, error.remedy) from None


def _read_rows(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines)
            return list(reader.fieldnames or []), list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            "device file", str(path), "a CSV file", f"The reader says: {error}."
        ) from None


def _frame_rows(frame: pandas.DataFrame) -> tuple[list[str], list[dict[str, str]]]:
    """A data frame in the form of the CSV reader: texts, with missing values empty."""
    texts = frame.astype(object).where(frame.notna(), "").astype(str)
    return [str(column) for column in frame.columns], texts.to_dict("records")


def _number(row: dict[str, str], column: str, where: str) -> float:
    text = row.get(column) or "0"
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{where}: {column}", text, "a number", "Correct it.") from None
