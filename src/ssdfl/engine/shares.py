"""The devices of a process, and reductions over the devices of all processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.engine.ranks import rank


class Shares(Protocol):
    """The devices of a process. The loop reduces over all devices through it.

    All processes must call its methods in the same order.

    Attributes:
        devices: (n,) this process's devices, ascending.
    """

    devices: IntArray

    def mean(self, X: Tensor) -> Tensor:
        """(1, d) the mean of all devices' parameters, given this process's (n, d)."""

    def total(self, values: Tensor) -> Tensor:
        """The sum over processes."""

    def everyone(self, own: Tensor) -> Tensor:
        """(N, …) the values of all devices in order, given this process's (n, …)."""

    def latest(self, ready_s: FloatArray) -> float:
        """When the last device is ready of whose times, of (N,), this process knows."""


class LocalShares:
    """A single process with all devices, or with a lone device."""

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

    def latest(self, ready_s: FloatArray) -> float:
        """The latest time; one process knows the times of all devices."""
        return float(ready_s.max())


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
        """(N, …) all ranks' values; shorter shares are padded."""
        longest = max(map(len, self.parts))
        sent = own.new_zeros((longest, *own.shape[1:]), device="cpu")
        sent[: len(own)] = own
        received = [torch.empty_like(sent) for _ in self.parts]
        dist.all_gather(received, sent)
        whole = sent.new_empty((len(self.owner), *own.shape[1:]))
        for part, values in zip(self.parts, received, strict=True):
            whole[torch.from_numpy(part)] = values[: len(part)]
        return whole

    def latest(self, ready_s: FloatArray) -> float:
        """The latest time of this rank's devices; it does not know the others'."""
        return float(ready_s[self.devices].max())
