"""Device descriptors in a CSV file or a data frame.

``device,label_0,label_1,…[,rho][,mu]``: the device's name in the network, how many samples of each label it
holds, and its momentum or proximal factor if it uses one.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ssdfl.clusters.heterogeneity import Device
from ssdfl.errors import InputError

if TYPE_CHECKING:
    import pandas


def read_devices(source: Path | str | pandas.DataFrame, names: Sequence[str]) -> tuple[Device, ...]:
    """Descriptors in the order of the network's device names.

    Args:
        source: a CSV file, or a data frame with the same columns.
        names: the devices of the network.

    Raises:
        InputError: a missing, unknown or repeated device, or a value that cannot be used.
    """
    if isinstance(source, str | Path):
        path, place, first = str(source), "line", 2
        header, rows = _read_rows(Path(source))
    else:
        path, place, first = "data frame", "row", 0
        header, rows = _frame_rows(source)
    columns = [column for column in header if column.startswith("label_")]
    others = sorted(set(header) - set(columns) - {"device", "rho", "mu"})
    if "device" not in header or not columns or others or len(set(header)) < len(header):
        expected = "device,label_0,label_1,…[,rho][,mu], each once"
        raise InputError(f"header of {path}", ",".join(header), expected, "Name columns so.")
    found: dict[str, Device] = {}
    for number, row in enumerate(rows, start=first):
        name, where = row["device"], f"{path} {place} {number}"
        if name in found:
            raise InputError(f"{where}: device", name, "each device once", "Remove one of its lines.")
        if name not in names:
            raise InputError(f"{where}: device", name, "a device of the network", "Mend its name.")
        labels = np.array([_number(row, column, where) for column in columns])
        try:
            found[name] = Device(labels, rho=_number(row, "rho", where), mu=_number(row, "mu", where))
        except InputError as error:
            what = error.what if error.what.startswith(path) else f"{where}: {error.what}"
            raise InputError(what, error.got, error.expected, error.remedy) from None
    missing = next((name for name in names if name not in found), None)
    if missing is not None:
        raise InputError(f"{path}: device", missing, "a line for each device", "Add its line.")
    return tuple(found[name] for name in names)


def _read_rows(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines)
            return list(reader.fieldnames or []), list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError("device file", str(path), "a CSV file", f"The reader says: {error}.") from None


def _frame_rows(frame: pandas.DataFrame) -> tuple[list[str], list[dict[str, str]]]:
    """A data frame as the CSV reader would give it: texts, missing values empty."""
    texts = frame.astype(object).where(frame.notna(), "").astype(str)
    return [str(column) for column in frame.columns], texts.to_dict("records")


def _number(row: dict[str, str], column: str, where: str) -> float:
    text = row.get(column) or "0"
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{where}: {column}", text, "a number", "Mend it.") from None
