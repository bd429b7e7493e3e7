"""Statistics over honest devices, whose results count."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ssdfl.arrays import BoolArray
from ssdfl.engine.shares import Shares


class Honest:
    """Statistics over honest devices, or over all if there are none, as for a single liar."""

    def __init__(self, shares: Shares, liars: Sequence[int]) -> None:
        self.shares, self.liars = shares, liars

    @cached_property
    def _here(self) -> BoolArray:
        """(n,) which of this process's devices count."""
        honest = ~np.isin(self.shares.devices, self.liars)
        return honest if self._number(honest) else ~honest

    def _number(self, here: BoolArray) -> int:
        return int(self.shares.total(torch.tensor([int(here.sum())]))[0])

    @cached_property
    def _everyone(self) -> BoolArray:
        """(N,) which devices count."""
        return self.shares.everyone(torch.from_numpy(self._here).byte()).bool().numpy()

    def those(self, values: Sized) -> BoolArray:
        """Which of all devices' values count; empty for no values."""
        return self._everyone[: len(values)] if self.liars else np.ones(len(values), dtype=bool)

    def mean(self, X: Tensor) -> Tensor:
        """(1, d) the mean parameters of all devices that count, given this process's (n, d)."""
        if not self.liars:
            return self.shares.mean(X)
        own = X[torch.from_numpy(self._here).to(X.device)]
        return (self.shares.total(own.sum(dim=0, keepdim=True)) / self._number(self._here)).to(X)

    def counted(self, values: Tensor) -> Tensor:
        """The values that count, from all devices' (N, …) values."""
        return values[torch.from_numpy(self.those(values)).to(values.device)]
