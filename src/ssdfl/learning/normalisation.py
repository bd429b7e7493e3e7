"""How raw inputs were normalised for training, so that models can be used elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Normalisation:
    """(raw − mean) / deviation; both broadcast to a sample, as (channels, 1, 1) to images."""

    mean: Numbers
    deviation: Numbers

    def applied_to(self, raw: NDArray[Any]) -> NDArray[np.float32]:
        """Samples (n, …), normalised for models."""
        kind = np.result_type(raw.dtype, np.float32)  # bytes of images need no 64 bits
        scaled = (raw - self.mean.astype(kind)) / self.deviation.astype(kind)
        return np.asarray(scaled, dtype=np.float32)

    def undone(self, scaled: NDArray[Any]) -> Numbers:
        """Undo the normalisation.

        Examples:
            >>> Normalisation(np.array(50.0), np.array(10.0)).undone(np.array([1.0, -2.0])).tolist()
            [60.0, 30.0]
        """
        return np.asarray(scaled * self.deviation + self.mean)

    def after(self, first: Normalisation) -> Normalisation:
        """The composition of two normalisations: ``first``, then this one.

        Examples:
            >>> halves = Normalisation(np.array(0.0), np.array(2.0))
            >>> both = Normalisation(np.array(1.0), np.array(1.0)).after(halves)
            >>> float(both.applied_to(np.array([6.0]))[0])  # 6 / 2 − 1
            2.0
        """
        mean = first.mean + first.deviation * self.mean
        return Normalisation(mean, first.deviation * self.deviation)

    def to_json(self) -> dict[str, Any]:
        """Nested lists."""
        return {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}

    @staticmethod
    def from_json(values: dict[str, Any]) -> Normalisation:
        """The inverse of `to_json`."""
        return Normalisation(
            np.array(values["mean"], dtype=float), np.array(values["deviation"], dtype=float)
        )


def channel_normalisation(images: NDArray[Any]) -> Normalisation:
    """The normalisation of images (n, channels, height, width) to mean 0 and deviation 1."""
    mean = images.mean(axis=(0, 2, 3), dtype=np.float64)
    deviation = images.std(axis=(0, 2, 3), dtype=np.float64)
    deviation[deviation == 0] = 1.0
    return Normalisation(mean[:, None, None], deviation[:, None, None])
