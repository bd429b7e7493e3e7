"""How messages reach devices: within one process here, across ranks in `engine.distributed`."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from torch import Tensor

from ssdfl.arrays import IntArray
from ssdfl.engine.inboxes import Inboxes
from ssdfl.engine.job import Job
from ssdfl.engine.mixing import Mixing
from ssdfl.engine.threads import Threads
from ssdfl.graph import MixingMatrix
from ssdfl.memo import by_identity


class Exchange(Protocol):
    """Carries a step's messages. W is for the whole network, messages for the devices here."""

    def post(self, W: MixingMatrix, messages: Tensor) -> None:
        """Start sending (n, k) messages to other processes."""

    def mixing(self, W: MixingMatrix) -> Mixing:
        """The part of W between the devices here."""

    def whole(self, W: MixingMatrix) -> bool:
        """Whether the devices here receive nothing from other processes."""

    def add_rest(self, W: MixingMatrix, mixed: Tensor, threads: Threads) -> IntArray:
        """Add other processes' messages to (n, k) mixed ones; returns the rows that changed."""

    def inboxes(self, W: MixingMatrix, messages: Tensor) -> tuple[Inboxes, Tensor]:
        """The senders of each device here, and (s, k) the messages of all senders."""


class LocalExchange:
    """The exchange if all devices are in this process."""

    def __init__(self, job: Job) -> None:
        θ = job.task.initial_parameters

        def prepared(W: MixingMatrix) -> Mixing:
            return Mixing(W, θ.dtype, θ.device)

        def one_by_one(W: MixingMatrix) -> Inboxes:
            return Inboxes(W, np.arange(W.shape[1]), θ.dtype, θ.device)

        self._mixing = by_identity(prepared, size=job.distinct_steps)
        self._inboxes = by_identity(one_by_one, size=job.distinct_steps)

    def post(self, W: MixingMatrix, messages: Tensor) -> None:
        """Do nothing."""

    def mixing(self, W: MixingMatrix) -> Mixing:
        """All of W."""
        return self._mixing(W)

    def whole(self, W: MixingMatrix) -> bool:
        """Always."""
        return True

    def add_rest(self, W: MixingMatrix, mixed: Tensor, threads: Threads) -> IntArray:
        """Do nothing; no row changes."""
        return np.zeros(0, dtype=np.int64)

    def inboxes(self, W: MixingMatrix, messages: Tensor) -> tuple[Inboxes, Tensor]:
        """All of W, and all messages."""
        return self._inboxes(W), messages
