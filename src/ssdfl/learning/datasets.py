"""Load data sets by name, from files, or from a user's function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ssdfl.errors import InputError, find_function
from ssdfl.files import is_there
from ssdfl.learning.builtin import diabetes, housing, logbooks
from ssdfl.learning.conversion import as_dataset
from ssdfl.learning.dataset import Dataset, make_dataset
from ssdfl.learning.formats import (
    Split,
    read_cifar_archive,
    read_cifar_folder,
    read_idx,
    read_image_parquet,
)
from ssdfl.learning.readers import device_files, read_pair, read_path
from ssdfl.learning.sources import Progress, RemoteFile, Source, fetch, locate
from ssdfl.learning.summaries import Summary, read_summary
from ssdfl.learning.tables import AS_IT_IS, Reading
from ssdfl.records.config import looks_like_path
from ssdfl.records.sections import DataSection
from ssdfl.rng import generator


@dataclass(frozen=True)
class DatasetInfo:
    """Facts about a data set that are known before it is loaded."""

    about: str
    load: Callable[[Path], Dataset]
    source: Source | None


def load_data(
    config: DataSection, folder: Path | None = None, progress: Progress | None = None
) -> Dataset:
    """The data set of an experiment.

    Raises:
        InputError: the experiment is for devices that have their own data.
    """
    if config.train:
        remedy = "To simulate them, name a folder with a file for each device in data.name."
        raise InputError("data.train", config.train, "nothing, except on real devices", remedy)
    known = read_summary(Path(config.encoding)) if config.encoding else None
    return load_dataset(config.name, folder, progress, reading_of(config, known))


def has_device_files(config: DataSection) -> bool:
    """Whether an experiment's data are a folder with one table per device."""
    by_files = config.partition in ("auto", "files")
    return by_files and not config.train and bool(device_files(Path(config.name)))


def reading_of(config: DataSection, known: Summary | None = None) -> Reading:
    """The experiment's settings for reading files."""
    return Reading(config.target, config.column, config.targets, config.test_share, known)


def load_own_data(config: DataSection, folder: Path, known: Summary | None = None) -> Dataset:
    """The data of one real device, from the place that its experiment names.

    Args:
        folder: the device's folder.
        known: the summary of all devices' data; by default, of this device's data only.

    Raises:
        InputError: the data are missing or not valid.
    """
    reading, train = reading_of(config, known), folder / config.train
    if config.test:
        return read_pair(train, folder / config.test, reading)
    if train.exists():
        return read_path(train, reading)
    try:
        return _own_dataset(config.train, reading)
    except InputError as error:
        what = error.what.replace("data.name", "data.train")
        raise InputError(what, error.got, error.expected, error.remedy) from None


def load_dataset(
    name: str,
    folder: Path | None = None,
    progress: Progress | None = None,
    reading: Reading = AS_IT_IS,
) -> Dataset:
    """A data set by name, in a file or folder, or a user's own by ``package.module:function``.

    The function is called without arguments. It returns anything that `as_dataset` accepts.

    Args:
        reading: how a file becomes a data set.

    Raises:
        InputError: the name is unknown, a file is damaged, or the data are neither on disk nor
            downloadable.

    Examples:
        >>> load_dataset("digits").input_shape
        (1, 8, 8)
    """
    if name not in DATASETS:
        return (
            read_path(Path(name), reading) if is_there(Path(name)) else _own_dataset(name, reading)
        )
    info = DATASETS[name]
    if info.source is None:
        return info.load(Path())
    return info.load(locate(info.source, folder) or fetch(info.source, progress=progress))


def _own_dataset(name: str, reading: Reading) -> Dataset:
    """The data set that a user's function returns."""
    if looks_like_path(name):
        raise InputError("data.name", name, "an existing file or folder", "Check the path.")
    known = {known: info.load for known, info in DATASETS.items()}
    data = find_function(known, name, "data.name")()
    try:
        return as_dataset(data, reading)
    except InputError as error:
        if error.what != "data":
            raise
        expected = "a function that returns ssdfl.learning.Dataset, a frame or a torch data set"
        raise InputError("data.name", name, expected, "Change what it returns.") from None


def halved(data: Dataset) -> Dataset:
    """Images of half the height and width, by 2 × 2 means: about five times faster to train."""

    def half(images: NDArray[np.float32]) -> NDArray[np.float32]:
        n, channels, height, width = images.shape
        blocks = images[:, :, : height // 2 * 2, : width // 2 * 2]
        means: NDArray[np.float32] = blocks.reshape(
            n, channels, height // 2, 2, width // 2, 2
        ).mean((3, 5))
        return means

    parts = ((data.train_inputs, data.train_targets), (data.test_inputs, data.test_targets))
    train, test = ((half(np.asarray(images)), labels) for images, labels in parts)
    again = make_dataset(train, test)
    first, second = data.encoding.normalisation, again.encoding.normalisation
    if first is None or second is None:
        return again
    return replace(again, encoding=replace(data.encoding, normalisation=second.after(first)))


def _digits(_: Path) -> Dataset:
    """1,797 handwritten digits of 8 × 8 pixels from scikit-learn, one fifth of them for testing."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images, labels = images.reshape(-1, 1, 8, 8).astype(np.uint8), labels.astype(np.int64)
    order = generator(0, "digits").permutation(len(labels))
    test, train = order[: len(order) // 5], order[len(order) // 5 :]
    return make_dataset((images[train], labels[train]), (images[test], labels[test]))


_FMNIST_URL = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
_FMNIST_FILES = tuple(
    RemoteFile(f"{_FMNIST_URL}/{name}", sha256, size_bytes)
    for name, sha256, size_bytes in (
        (
            "train-images-idx3-ubyte.gz",
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            26421880,
        ),
        (
            "train-labels-idx1-ubyte.gz",
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            29515,
        ),
        (
            "t10k-images-idx3-ubyte.gz",
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            4422102,
        ),
        (
            "t10k-labels-idx1-ubyte.gz",
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            5148,
        ),
    )
)


def _fmnist(folder: Path) -> Dataset:
    def split(part: str) -> Split:
        images = read_idx(folder / f"{part}-images-idx3-ubyte.gz")
        labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz")
        if images.ndim != 3 or len(images) != len(labels):
            raise InputError(
                f"{folder}: {part} images",
                images.shape,
                f"{len(labels)} images",
                "Run: ssdfl data fetch fmnist.",
            )
        return images[:, None], labels.astype(np.int64)

    return make_dataset(split("train"), split("t10k"))


def _has_fmnist(folder: Path) -> bool:
    return all((folder / file.name).exists() for file in _FMNIST_FILES)


@dataclass(frozen=True)
class _CifarFiles:
    """The files of CIFAR-10 in a folder, by known layout."""

    train: list[Path]
    test: list[Path]
    archives: list[Path]
    batches: list[Path]


def _cifar10_files(folder: Path) -> _CifarFiles:
    """Find Parquet files, archives and batch folders for training and testing, at any depth."""
    archives = [folder / f"cifar-10-{kind}.tar.gz" for kind in ("binary", "python")]
    unpacked = [folder, folder / "cifar-10-batches-py", folder / "cifar-10-batches-bin"]
    return _CifarFiles(
        train=_parquet_files(folder, "train"),
        test=_parquet_files(folder, "test"),
        archives=[path for path in archives if path.exists()],
        batches=[place for place in unpacked if any(place.glob("data_batch_1*"))],
    )


def _parquet_files(folder: Path, part: str) -> list[Path]:
    places = (folder, folder / "data", folder / "plain_text")
    return [path for place in places for path in sorted(place.glob(f"{part}*.parquet"))]


def _has_cifar10(folder: Path) -> bool:
    files = _cifar10_files(folder)
    in_parquet = bool(files.train and files.test)
    return in_parquet or bool(files.archives or files.batches)


def _cifar10(folder: Path) -> Dataset:
    files = _cifar10_files(folder)
    if files.train and files.test:
        return make_dataset(read_image_parquet(files.train), read_image_parquet(files.test))
    if files.archives:
        return make_dataset(*read_cifar_archive(files.archives[0]))
    return make_dataset(*read_cifar_folder(files.batches[0]))


_FULL: dict[str, DatasetInfo] = {
    "digits": DatasetInfo(
        "1,797 digits, 1 × 8 × 8, 10 classes; comes with scikit-learn", _digits, None
    ),
    "diabetes": DatasetInfo(
        "442 patients, 10 columns, a number to predict; comes with scikit-learn", diabetes, None
    ),
    "housing": DatasetInfo(
        "5,000 made-up houses in 20 regions, 6 inputs, their price", housing, None
    ),
    "logbooks": DatasetInfo(
        "six logbooks, 32 characters a sample, the next to predict", logbooks, None
    ),
    "fmnist": DatasetInfo(
        "Fashion-MNIST: 70,000 pieces of clothing, 1 × 28 × 28, 10 classes; 30 MB",
        _fmnist,
        Source(
            folders=("fashion_mnist", "fmnist", "fashion-mnist", "FashionMNIST/raw"),
            present=_has_fmnist,
            files=_FMNIST_FILES,
            system=(Path("/usr/share/datasets/fashion-mnist"),),
        ),
    ),
    "cifar10": DatasetInfo(
        "CIFAR-10: 60,000 photographs, 3 × 32 × 32, 10 classes; 162 MB",
        _cifar10,
        Source(
            folders=("cifar10", "cifar-10"),
            present=_has_cifar10,
            files=(
                RemoteFile(
                    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                    170052171,
                ),
            ),
        ),
    ),
}

DATASETS: dict[str, DatasetInfo] = _FULL | {
    f"{name}-half": DatasetInfo(
        f"{name} with images of half the height and width",
        lambda folder, load=info.load: halved(load(folder)),  # type: ignore[misc]
        info.source,
    )
    for name, info in _FULL.items()
    if info.source is not None
}
