"""Which devices a process has, and what processes find out together about all devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from ssdfl.arrays import IntArray
from ssdfl.engine.ranks import rank

_BYTES_AT_ONCE = 1 << 26


class Shares(Protocol):
    """Which devices a process has. The loop reduces over all devices through it.

    All processes must ask in the same order.

    Attributes:
        devices: (n,) this process's, ascending.
    """

    devices: IntArray

    def mean(self, X: Tensor) -> Tensor:
        """(1, d) the mean of everyone's parameters, given the own (n, d)."""

    def total(self, values: Tensor) -> Tensor:
        """The sum over processes."""

    def everyone(self, own: Tensor) -> Tensor:
        """(N, …) everyone's values in order of devices, given the own (n, …)."""

    def collected(self, own: Tensor, keepers: IntArray | None = None) -> Tensor:
        """(N, …) everyone's rows in rank 0, the own rows elsewhere.

        Args:
            keepers: the devices that have such a row, if not all have one; the own rows belong to
                the own devices among them.
        """


class LocalShares:
    """One process that asks no other: it has all devices, or is a lone device."""

    def __init__(self, devices: IntArray) -> None:
        self.devices = devices

    def mean(self, X: Tensor) -> Tensor:
        """(1, d) the mean of the rows."""
        return X.mean(dim=0, keepdim=True)

    def total(self, values: Tensor) -> Tensor:
        """The values."""
        return values

    def everyone(self, own: Tensor) -> Tensor:
        """The values."""
        return own

    def collected(self, own: Tensor, keepers: IntArray | None = None) -> Tensor:
        """The rows."""
        return own


class RankShares:
    """Each rank has some devices. Rows that mix go between GPUs; the rest goes through memory."""

    def __init__(self, parts: Sequence[IntArray]) -> None:
        self.parts = parts
        self.devices = parts[rank()]
        self.owner = np.empty(sum(map(len, parts)), dtype=np.int64)
        for number, part in enumerate(parts):
            self.owner[part] = number

    def mean(self, X: Tensor) -> Tensor:
        """(1, d) the mean of all ranks' rows."""
        return (self.total(X.sum(dim=0, keepdim=True)) / len(self.owner)).to(X)

    def total(self, values: Tensor) -> Tensor:
        """The sum over ranks."""
        summed = values.cpu().clone()
        dist.all_reduce(summed)
        return summed

    def everyone(self, own: Tensor) -> Tensor:
        """(N, …) all ranks' values; shorter shares are sent with idle rows."""
        longest = max(map(len, self.parts))
        sent = own.new_zeros((longest, *own.shape[1:]), device="cpu")
        sent[: len(own)] = own
        received = [torch.empty_like(sent) for _ in self.parts]
        dist.all_gather(received, sent)
        whole = sent.new_empty((len(self.owner), *own.shape[1:]))
        for part, values in zip(self.parts, received, strict=True):
            whole[torch.from_numpy(part)] = values[: len(part)]
        return whole

    def collected(self, own: Tensor, keepers: IntArray | None = None) -> Tensor:
        """(N, …) all ranks' rows in rank 0, which must hold them; the own rows elsewhere."""
        if rank() > 0:
            for rows in _pieces(own.cpu().contiguous()):
                dist.send(rows, 0)
            return own
        places = list(self._places(keepers))
        whole = own.new_empty((sum(map(len, places)), *own.shape[1:]), device="cpu")
        for number, here in enumerate(places):
            there = own.cpu() if number == 0 else whole.new_empty((len(here), *own.shape[1:]))
            for rows in _pieces(there) if number else ():
                dist.recv(rows, number)
            whole[here] = there
        return whole

    def dealt(
        self, whole: Tensor, like: Tensor, width: int, keepers: IntArray | None = None
    ) -> Tensor:
        """The own rows of what rank 0 has whole; the other ranks may give anything.

        Args:
            like: a tensor of the type and on the device that the rows are to have.
            width: columns of the rows.
            keepers: as in `collected`.
        """
        places = list(self._places(keepers))
        if rank() > 0:
            own = like.new_empty((len(places[rank()]), width), device="cpu")
            for rows in _pieces(own):
                dist.recv(rows, 0)
            return own.to(like.device)
        for number, there in enumerate(places[1:], start=1):
            for rows in _pieces(whole[there].cpu()):
                dist.send(rows, number)
        return whole[places[0]]

    def _places(self, keepers: IntArray | None) -> Iterator[Tensor]:
        """For each rank, which of the keepers' rows are its own."""
        for part in self.parts:
            places = part if keepers is None else np.flatnonzero(np.isin(keepers, part))
            yield torch.from_numpy(places)


def _pieces(rows: Tensor) -> Sequence[Tensor]:
    """Rows in messages of a modest size; none of none."""
    if not rows.numel():
        return ()
    pieces: Sequence[Tensor] = rows.split(
        max(1, _BYTES_AT_ONCE // (rows[0].numel() * rows.element_size()))
    )
    return pieces
