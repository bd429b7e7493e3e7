"""The samples of each device, in any numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ssdfl.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Shards:
    """Which samples each device holds.

    Attributes:
        samples: (total,) the devices' samples, one device after the other.
        starts: (N + 1,) where each device's samples start, and where the last ones end.

    Examples:
        >>> shards = Shards.of([[4, 2, 7], [5]])
        >>> shards[0].tolist(), shards.sizes.tolist()
        ([4, 2, 7], [3, 1])
    """

    samples: Tensor
    starts: IntArray

    @classmethod
    def of(cls, held: Iterable[ArrayLike]) -> Shards:
        """Shards from each device's samples."""
        rows = [np.asarray(samples, dtype=np.int64) for samples in held]
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        return cls(torch.from_numpy(np.concatenate(rows)), starts.astype(np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[Tensor]:
        return (self[device] for device in range(len(self)))

    def __getitem__(self, device: int) -> Tensor:
        """(m,) the samples of one device."""
        return self.samples[self.starts[device] : self.starts[device + 1]]

    @cached_property
    def sizes(self) -> IntArray:
        """(N,) the number of samples of each device."""
        return np.diff(self.starts)

    @property
    def weights(self) -> FloatArray:
        """(N,) each device's size over the mean size.

        Examples:
            >>> Shards.of([[4, 2, 7], [5]]).weights.tolist()
            [1.5, 0.5]
        """
        shares: FloatArray = self.sizes / self.sizes.mean()
        return shares

    def at(self, devices: Sequence[int] | IntArray, positions: IntArray) -> Tensor:
        """(n, …) the samples at positions (n, …) in the shards of n devices."""
        starts = self.starts[np.asarray(devices)].reshape(-1, *[1] * (positions.ndim - 1))
        return self.samples[torch.from_numpy(starts + positions).to(self.samples.device)]

    def whole(self, devices: Sequence[int] | IntArray) -> Tensor:
        """(n, m) all samples of n devices, which must hold equally many."""
        return torch.stack([self[device] for device in np.asarray(devices).tolist()])

    def to(self, device: torch.device | str) -> Shards:
        """The same shards on a torch device."""
        return replace(self, samples=self.samples.to(device))
