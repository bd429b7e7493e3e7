"""A data set: validated inputs and targets for training and testing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssdfl.errors import InputError
from ssdfl.learning.encoding import AS_THEY_ARE, Encoding
from ssdfl.learning.inputs import map_inputs, parts_of, shapes
from ssdfl.learning.normalisation import channel_normalisation
from ssdfl.learning.summaries import Summary

Arrays = NDArray[Any] | tuple[NDArray[Any], ...] | dict[str, NDArray[Any]]
"""An array whose first dimension counts samples, or a tuple or dict of such arrays."""
Images = NDArray[np.uint8] | NDArray[np.float32]
Labels = NDArray[np.int64]

IMAGES_SCALED = "Images: each channel scaled to mean 0 and deviation 1 over the training set."
_REMEDY = "ssdfl.learning.make_dataset makes them from images."


@dataclass(frozen=True, eq=False)
class Dataset:
    """Inputs and targets for training and testing.

    Attributes:
        train_inputs, test_inputs: the inputs of models, ready to use: float32 numbers of about unit
            size, or int64 tokens; a tuple or dict if a model takes several.
        train_targets, test_targets: the values to predict: int64 classes (n,) or, with one for each
            token of a sequence, (n, length); or float32 numbers (n,) or (n, k).
        num_classes: the number of classes; 0 if targets are numbers.
        loss: the default loss; ``auto`` chooses one that fits the targets.
        columns: by name, a value for each training sample, such as its user or site, by which
            samples can be dealt.
        notes: how the data were prepared, for people.
        encoding: how the data were encoded, so that models can be used on raw samples.
        test_columns: the same as ``columns`` for the test samples, if known.
        summary: the summary by which raw data were encoded, if they were.
    """

    train_inputs: Arrays
    train_targets: NDArray[Any]
    test_inputs: Arrays
    test_targets: NDArray[Any]
    num_classes: int = 0
    loss: str = "auto"
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    encoding: Encoding = AS_THEY_ARE
    test_columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    summary: Summary | None = None

    def __post_init__(self) -> None:
        for part, inputs, targets in (
            ("train", self.train_inputs, self.train_targets),
            ("test", self.test_inputs, self.test_targets),
        ):
            _check_targets(f"{part}_targets", targets, self.num_classes)
            _check_inputs(f"{part}_inputs", inputs, len(targets))
        for name, values in self.columns.items():
            if len(values) != len(self.train_targets):
                expected = f"{len(self.train_targets)} values, one for each training sample"
                raise InputError(f"column {name}", len(values), expected, "Make them match.")

    @property
    def input_shape(self) -> Any:
        """The shape of one sample: (channels, height, width) of an image, (columns,) of a table."""
        return shapes(self.train_inputs)

    @property
    def default_loss(self) -> str:
        """The name of the loss that fits the targets."""
        if self.loss != "auto":
            return self.loss
        if not self.num_classes:
            return "mse"
        return "cross_entropy" if self.train_targets.ndim == 1 else "next_token"

    @property
    def target_size(self) -> int:
        """The number of values in a target."""
        return int(np.prod(self.train_targets.shape[1:], dtype=int))


def _check_inputs(what: str, inputs: object, num_targets: int) -> None:
    for part in parts_of(inputs):
        _check_array(what, part)
        _check_number(what, len(part), num_targets)
        _check_finite(what, part)


def _check_array(what: str, part: object) -> None:
    """Refuse anything but arrays of numbers that models can take."""
    if not _is_numeric(part):
        expected = "an array of numbers (samples, …), or a tuple or dict of such arrays"
        raise InputError(what, described(part), expected, _REMEDY)
    if getattr(part, "dtype", None) == np.float64:
        raise InputError(
            what, described(part), "float32, as models compute", "Use .astype('float32')."
        )


def _is_numeric(part: object) -> bool:
    return isinstance(part, np.ndarray) and part.ndim > 0 and part.dtype.kind in "fiub"


def _check_number(what: str, inputs: int, targets: int) -> None:
    if inputs != targets or targets == 0:
        got = f"{inputs} inputs, {targets} targets"
        raise InputError(what, got, "as many inputs as targets, not 0", _REMEDY)


def _check_finite(what: str, part: NDArray[Any]) -> None:
    if part.dtype.kind == "f" and not np.isfinite(part).all():
        raise InputError(what, "NaN or infinite", "finite numbers", "Clean the data.")


def _check_targets(what: str, targets: object, num_classes: int) -> None:
    if not isinstance(targets, np.ndarray) or targets.ndim < 1:
        raise InputError(what, described(targets), "an array", "Convert them.")
    check = _check_classes if num_classes else _check_numbers
    check(what, targets, num_classes)


def _check_numbers(what: str, targets: NDArray[Any], _: int) -> None:
    if targets.dtype != np.float32:
        raise InputError(what, described(targets), "finite float32 numbers", "Or set num_classes.")
    _check_finite(what, targets)


def _check_classes(what: str, targets: NDArray[Any], num_classes: int) -> None:
    if targets.dtype != np.int64:
        raise InputError(what, described(targets), "an int64 array", "Convert them.")
    for extreme in (int(targets.min(initial=0)), int(targets.max(initial=0))):
        if not 0 <= extreme < num_classes:
            expected = f"labels from 0 to {num_classes - 1}"
            raise InputError(what, extreme, expected, "Check num_classes.")


def described(values: object) -> str:
    """An array's kind and shape, for messages."""
    return f"{type(values).__name__} {getattr(values, 'dtype', '')} {getattr(values, 'shape', '')}"


def make_dataset(train: tuple[Images, Labels], test: tuple[Images, Labels]) -> Dataset:
    """A data set of images (n, channels, height, width), scaled to mean 0 and deviation 1."""
    (train_images, train_targets), (test_images, test_targets) = train, test
    if train_images.ndim != 4:
        raise InputError(
            "images", described(train_images), "(n, channels, height, width)", "Reshape them."
        )
    normalisation = channel_normalisation(train_images)
    return Dataset(
        normalisation.applied_to(train_images),
        train_targets,
        normalisation.applied_to(test_images),
        test_targets,
        num_classes=int(train_targets.max()) + 1,
        notes=(IMAGES_SCALED,),
        encoding=Encoding(normalisation),
    )


def taken(inputs: Arrays, rows: NDArray[Any] | slice) -> Arrays:
    """The inputs of some samples."""
    chosen: Arrays = map_inputs(lambda part: part[rows], inputs)
    return chosen
