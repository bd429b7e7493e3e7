"""How messages reach devices: within one process here, across ranks in `ssdfl.engine.distributed`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ssdfl.arrays import IntArray
from ssdfl.engine.job import Job
from ssdfl.engine.mixing import Mixing
from ssdfl.engine.threads import Threads
from ssdfl.graph import MixingMatrix
from ssdfl.memo import by_identity
from ssdfl.methods import Inbox


class Exchange(Protocol):
    """Carries the messages of a step. W is the whole network's, messages are of the devices here."""

    def post(self, W: MixingMatrix, messages: Tensor) -> None:
        """Begin to carry (n, k) messages to where they are not yet."""

    def mixing(self, W: MixingMatrix) -> Mixing:
        """The part of W between the devices here."""

    def add_rest(self, W: MixingMatrix, mixed: Tensor, threads: Threads) -> IntArray:
        """Add what comes from elsewhere to (n, k) mixed messages; returns the places that changed."""

    def inboxes(self, W: MixingMatrix, messages: Tensor) -> Sequence[Inbox]:
        """(n,) what each device here receives."""

    def mixed_rows(self, inboxes: Sequence[Inbox], messages: Tensor, places: IntArray) -> Tensor:
        """(len(places), k) W applied, from inboxes."""


class LocalExchange:
    """All devices are here."""

    def __init__(self, job: Job) -> None:
        θ = job.task.initial_parameters

        def prepared(W: MixingMatrix) -> Mixing:
            return Mixing(W, θ.dtype, θ.device)

        self._mixing = by_identity(prepared, size=job.distinct_steps)

    def post(self, W: MixingMatrix, messages: Tensor) -> None:
        """Nothing to carry."""

    def mixing(self, W: MixingMatrix) -> Mixing:
        """All of W."""
        return self._mixing(W)

    def add_rest(self, W: MixingMatrix, mixed: Tensor, threads: Threads) -> IntArray:
        """Nothing comes from elsewhere."""
        return np.zeros(0, dtype=np.int64)

    def inboxes(self, W: MixingMatrix, messages: Tensor) -> Sequence[Inbox]:
        """(n,) what each device receives."""
        return inboxes_of(W, np.arange(W.shape[0]), messages)

    def mixed_rows(self, inboxes: Sequence[Inbox], messages: Tensor, places: IntArray) -> Tensor:
        """(len(places), k) W applied, from inboxes."""
        return mixed_from(inboxes, messages, places)


def inboxes_of(W: MixingMatrix, own: IntArray, rows: Tensor) -> list[Inbox]:
    """What devices receive, of the rows of messages of all senders.

    Args:
        W: (n, s) weights of n devices and s senders.
        own: (n,) which of the senders each device itself is.
        rows: (s, k) the senders' messages.
    """
    found = []
    for place, itself in enumerate(own.tolist()):
        entries = slice(W.indptr[place], W.indptr[place + 1])
        senders, weights = W.indices[entries], W.data[entries]
        others = (senders != itself) & (weights != 0)
        index = torch.from_numpy(senders[others].astype(np.int64)).to(rows.device)
        own_weight = float(weights[senders == itself].sum())
        found.append(Inbox(own_weight, weights[others].tolist(), rows[index]))
    return found


def mixed_from(inboxes: Sequence[Inbox], messages: Tensor, places: IntArray) -> Tensor:
    """(len(places), k) W applied to messages, from inboxes."""
    rows = []
    for place in places.tolist():
        inbox = inboxes[place]
        weights = torch.tensor(inbox.weights, dtype=messages.dtype, device=messages.device)
        rows.append(inbox.own_weight * messages[place] + weights @ inbox.rows)
    return torch.stack(rows)
