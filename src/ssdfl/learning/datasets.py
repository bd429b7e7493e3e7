"""Data sets by name, as normalised images ready for training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ssdfl.errors import InputError, find_function
from ssdfl.learning.formats import (
    Images,
    Labels,
    Split,
    read_cifar_archive,
    read_cifar_folder,
    read_idx,
    read_image_parquet,
)
from ssdfl.learning.normalisation import Normalisation, channel_normalisation
from ssdfl.learning.sources import Progress, RemoteFile, Source, fetch, locate
from ssdfl.rng import generator


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images (n, channels, height, width) of zero mean and unit deviation, and labels 0 … C − 1."""

    train_images: NDArray[np.float32]
    train_labels: Labels
    test_images: NDArray[np.float32]
    test_labels: Labels
    num_classes: int
    normalisation: Normalisation | None = None

    def __post_init__(self) -> None:
        for part, images, labels in (
            ("train", self.train_images, self.train_labels),
            ("test", self.test_images, self.test_labels),
        ):
            _check_images(part, images, len(labels))
            _check_labels(part, labels, self.num_classes)

    @property
    def image_shape(self) -> tuple[int, ...]:
        """(channels, height, width)."""
        return self.train_images.shape[1:]


def _check_images(part: str, images: object, count: int) -> None:
    what, remedy = f"{part}_images", "ssdfl.learning.make_dataset makes them from bytes."
    if not _is_array(images, np.float32, dimensions=4):
        expected = "a float32 array (n, channels, height, width)"
        raise InputError(what, _described(images), expected, remedy)
    if len(images) != count or count == 0:
        got = f"{len(images)} images, {count} labels"
        raise InputError(what, got, "as many images as labels, not 0", remedy)
    if not np.isfinite(images).all():
        raise InputError(what, "NaN or infinite", "finite numbers", "Clean the data.")


def _check_labels(part: str, labels: object, num_classes: int) -> None:
    what = f"{part}_labels"
    if not _is_array(labels, np.int64, dimensions=1):
        raise InputError(what, _described(labels), "an int64 array (n,)", "Convert them.")
    smallest, largest = int(labels.min()), int(labels.max())
    if smallest < 0 or largest >= num_classes:
        worst = smallest if smallest < 0 else largest
        raise InputError(what, worst, f"labels from 0 to {num_classes - 1}", "Check num_classes.")


def _is_array(values: object, dtype: type[np.generic], dimensions: int) -> TypeGuard[NDArray[Any]]:
    return isinstance(values, np.ndarray) and values.dtype == dtype and values.ndim == dimensions


def _described(values: object) -> str:
    return f"{type(values).__name__} {getattr(values, 'dtype', '')} {getattr(values, 'shape', '')}"


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set before it is loaded."""

    about: str
    load: Callable[[Path], Dataset]
    source: Source | None


def load_dataset(name: str, folder: Path | None = None, progress: Progress | None = None) -> Dataset:
    """A data set by name, or a user's own by ``package.module:function`` (called with no argument).

    Raises:
        InputError: an unknown name, a damaged file, or data that is neither on disk nor downloadable.

    Examples:
        >>> load_dataset("digits").image_shape
        (1, 8, 8)
    """
    if name not in DATASETS:
        return _own_dataset(name)
    info = DATASETS[name]
    if info.source is None:
        return info.load(Path())
    return info.load(locate(info.source, folder) or fetch(info.source, progress=progress))


def _own_dataset(name: str) -> Dataset:
    """What a user's function returns, if it is a data set."""
    known = {known: info.load for known, info in DATASETS.items()}
    data = find_function(known, name, "data.name")()
    if not isinstance(data, Dataset):
        expected = "a function that returns ssdfl.learning.Dataset"
        raise InputError("data.name", name, expected, "Change what it returns.")
    return data


def make_dataset(
    train: tuple[Images | NDArray[np.float32], Labels], test: tuple[Images | NDArray[np.float32], Labels]
) -> Dataset:
    """Normalise images per channel by the training set's mean and deviation."""
    (train_images, train_labels), (test_images, test_labels) = train, test
    normal = channel_normalisation(train_images)
    classes = int(train_labels.max()) + 1
    train_inputs, test_inputs = normal.applied_to(train_images), normal.applied_to(test_images)
    return Dataset(train_inputs, train_labels, test_inputs, test_labels, classes, normal)


def halved(data: Dataset) -> Dataset:
    """Images of half the height and width, averaged over 2 × 2 pixels: about five times quicker to train."""

    def half(images: NDArray[np.float32]) -> NDArray[np.float32]:
        n, channels, height, width = images.shape
        blocks = images[:, :, : height // 2 * 2, : width // 2 * 2]
        means: NDArray[np.float32] = blocks.reshape(n, channels, height // 2, 2, width // 2, 2).mean((3, 5))
        return means

    train, test = (half(data.train_images), data.train_labels), (half(data.test_images), data.test_labels)
    again = make_dataset(train, test)
    if data.normalisation is None or again.normalisation is None:
        return again
    return replace(again, normalisation=again.normalisation.after(data.normalisation))


def _digits(_: Path) -> Dataset:
    """1,797 handwritten digits of 8 × 8 pixels from scikit-learn, one fifth of them for testing."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images, labels = images.reshape(-1, 1, 8, 8).astype(np.uint8), labels.astype(np.int64)
    order = generator(0, "digits").permutation(len(labels))
    test, train = order[: len(order) // 5], order[len(order) // 5 :]
    return make_dataset((images[train], labels[train]), (images[test], labels[test]))


_FMNIST_FILES = (
    ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
    ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
    ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
    ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
)
_FMNIST_URL = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"


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
    return all((folder / name).exists() for name, _ in _FMNIST_FILES)


@dataclass(frozen=True)
class _CifarFiles:
    """What a folder holds of CIFAR-10, in the layouts that are known."""

    train: list[Path]
    test: list[Path]
    archives: list[Path]
    batches: list[Path]


def _cifar10_files(folder: Path) -> _CifarFiles:
    """Training and test Parquet files, archives, and folders of batches, wherever they are below."""
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
    "digits": DatasetInfo("1,797 digits, 1 × 8 × 8, 10 classes; comes with scikit-learn", _digits, None),
    "fmnist": DatasetInfo(
        "Fashion-MNIST: 70,000 pieces of clothing, 1 × 28 × 28, 10 classes; 30 MB",
        _fmnist,
        Source(
            folders=("fashion_mnist", "fmnist", "fashion-mnist", "FashionMNIST/raw"),
            present=_has_fmnist,
            files=tuple(RemoteFile(f"{_FMNIST_URL}/{name}", md5) for name, md5 in _FMNIST_FILES),
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
                    "c32a1d4ab5d03f1284b67883e8d87530",
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
