"""Single messages for non-linear rules; devices with the same number of senders are batched."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ssdfl.arrays import IntArray
from ssdfl.graph import MixingMatrix
from ssdfl.methods import Inbox

_NUMBERS_IN_CACHE = 1 << 20


class Inboxes:
    """The senders of each device in a step, to gather messages.

    Args:
        W: (n, s) weights of n devices and s senders; device i itself is sender i.
        numbers: (s,) the device numbers of the senders.
    """

    def __init__(
        self, W: MixingMatrix, numbers: IntArray, dtype: torch.dtype, device: torch.device
    ) -> None:
        self._numbers = numbers
        entries = W.tocoo()
        others = (entries.row != entries.col) & (entries.data != 0)
        order = np.lexsort((entries.col[others], entries.row[others]))
        self._senders = entries.col[others][order].astype(np.int64)
        self._weights = torch.from_numpy(entries.data[others][order]).to(device, dtype)
        self._counts = np.bincount(entries.row[others], minlength=W.shape[0])
        self._starts = np.cumsum(self._counts) - self._counts
        self._device = device

    def batches(self, places: IntArray, rows: Tensor) -> Iterator[Inbox]:
        """The inboxes of the devices at some positions, from (s, k) messages."""
        counts = self._counts[places]
        for count in np.unique(counts[counts > 0]).tolist():
            members = np.flatnonzero(counts == count)
            at_once = max(1, _NUMBERS_IN_CACHE // (count * rows.shape[1]))
            for k in range(0, len(members), at_once):
                yield self._inbox(places, members[k : k + at_once], count, rows)

    def _inbox(self, places: IntArray, members: IntArray, count: int, rows: Tensor) -> Inbox:
        entries = self._starts[places[members]] + np.arange(count)[:, None]
        senders = torch.from_numpy(self._senders[entries]).to(self._device)
        weights = self._weights[torch.from_numpy(entries).to(self._device)]
        numbers = self._numbers[self._senders[entries]]
        return Inbox(torch.from_numpy(members).to(self._device), weights, rows[senders], numbers)
