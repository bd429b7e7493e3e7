"""Small tasks without download: a regression, a table with regions of unequal size, and text."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssdfl.lazy import LazyModule
from ssdfl.learning.dataset import Dataset
from ssdfl.learning.encoding import Encoding
from ssdfl.learning.tables import Reading, table_dataset
from ssdfl.rng import generator

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = LazyModule("pyarrow")

WINDOW = 32
"""The number of characters in a sample of text."""
STRIDE = 3
HOUSES = 5000
REGIONS = 20
_REGION_EXPONENT = 1.5


def diabetes(_: Path) -> Dataset:
    """442 patients from scikit-learn: ten measurements, and the disease's progress in a year."""
    from sklearn.datasets import load_diabetes

    found = load_diabetes(scaled=False)
    columns = dict(zip(found.feature_names, found.data.T, strict=True))
    return table_dataset(pa.table({**columns, "progression": found.target}), Reading("progression"))


def housing(_: Path) -> Dataset:
    """5,000 synthetic houses in 20 regions of 26 to 2,302 houses, and their prices.

    Regions differ in the value of a room, in the age of houses, and in their number of houses.
    """
    rng = generator(0, "housing")
    sizes = np.arange(1, REGIONS + 1) ** -_REGION_EXPONENT
    region = np.repeat(np.arange(REGIONS), _shares(sizes, HOUSES))
    rooms = rng.gamma(5.0, 1.0, HOUSES) + 1
    income = rng.lognormal(0.8 + 0.04 * region, 0.4)
    age = rng.uniform(0, 30 + 2 * region, HOUSES)
    distance = rng.exponential(10.0, HOUSES)
    by_sea = rng.random(HOUSES) < 0.3
    worth = (8 + 0.5 * region) * rooms + 20 * income - 0.4 * age - 1.2 * distance + 25 * by_sea
    price = worth + 8 * np.sin(rooms) + rng.normal(0, 8, HOUSES)
    table = {
        "rooms": rooms,
        "income": income,
        "age": age,
        "distance_km": distance,
        "place": np.where(by_sea, "sea", "inland"),
        "region": np.char.add("region-", np.char.zfill(region.astype(str), 2)),
        "price": price,
    }
    return table_dataset(pa.table(table), Reading("price", column="region"))


def _shares(weights: NDArray[Any], total: int) -> NDArray[np.int64]:
    """Whole numbers in proportion to the weights, which add up to the total."""
    ends = np.round(np.cumsum(weights) / weights.sum() * total).astype(np.int64)
    sizes: NDArray[np.int64] = np.diff(ends, prepend=0)
    return sizes


def logbooks(_: Path) -> Dataset:
    """Text of six logbooks, character by character; the last fifth of each is for testing.

    A sample is 32 characters; its target is the same text shifted by one character.
    """
    text = files("ssdfl.learning").joinpath("text", "logbooks.txt").read_text(encoding="utf-8")
    books = {part.partition("\n")[0]: part.partition("\n")[2] for part in text.split("# ") if part}
    letters = sorted(set("".join(books.values())))
    train, test, keepers = [], [], []
    for name, book in books.items():
        codes = np.array([letters.index(letter) for letter in book], dtype=np.int64)
        end = len(codes) * 4 // 5
        windows = _windows(codes[:end], STRIDE)
        train.append(windows)
        test.append(_windows(codes[end:], WINDOW // 2))
        keepers.append(np.full(len(windows), name))
    learnt, tested = np.concatenate(train), np.concatenate(test)
    return Dataset(
        train_inputs=learnt[:, :-1],
        train_targets=learnt[:, 1:],
        test_inputs=tested[:, :-1],
        test_targets=tested[:, 1:],
        num_classes=len(letters),
        columns={"book": np.concatenate(keepers)},
        notes=(f"Text: {WINDOW} characters a sample, {len(letters)} different ones.",),
        encoding=Encoding(vocabulary=tuple(letters), classes=tuple(letters)),
    )


def _windows(codes: NDArray[np.int64], stride: int) -> NDArray[np.int64]:
    """(n, `WINDOW` + 1) overlapping windows."""
    return np.lib.stride_tricks.sliding_window_view(codes, WINDOW + 1)[::stride].copy()
