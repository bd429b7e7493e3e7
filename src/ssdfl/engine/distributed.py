"""The distributed engine: each process runs some clusters like `local`, and they exchange rows.

While devices mix inside clusters, nothing leaves a rank. A step that mixes across ranks sends its
boundary rows, before the rank's own devices train if the rule allows it, and adds the other ranks'
rows when they arrive.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.engine.engine import Advanced
from ssdfl.engine.inboxes import Inboxes
from ssdfl.engine.job import Job
from ssdfl.engine.local import LocalEngine
from ssdfl.engine.mixing import Mixing
from ssdfl.engine.rank_mixing import RankMixing, divide_mixing, shard_job
from ssdfl.engine.ranks import find_on_rank_0, number_of_ranks, rank
from ssdfl.engine.row_exchange import RowExchange
from ssdfl.engine.shares import LocalShares, RankShares, Shares
from ssdfl.engine.state import State, initial_state
from ssdfl.engine.threads import Threads
from ssdfl.graph import MixingMatrix
from ssdfl.memo import by_identity
from ssdfl.methods import Step


class RankExchange:
    """Carries messages between the devices of a rank and to and from other ranks.

    Attributes:
        rows: exchanges rows with other ranks.
        ready_s: (N,) when devices can start the step; not valid for other ranks' devices.
    """

    def __init__(self, job: Job, shares: Shares) -> None:
        owner, raw, keep = _owner(shares), not job.rule.linear, job.distinct_steps
        self.devices = shares.devices
        self.ready_s = np.zeros(len(owner))
        self.rows = RowExchange(job.first_message.rows[0])
        like = job.first_message.rows

        def divided(W: MixingMatrix) -> RankMixing:
            return divide_mixing(W, owner, rank(), raw)

        def prepared(W: MixingMatrix) -> Mixing:
            return Mixing(W, like.dtype, like.device)

        def one_by_one(W: MixingMatrix) -> Inboxes:
            return Inboxes(*self._senders_first(W), like.dtype, like.device)

        self._inboxes = by_identity(one_by_one, size=keep)
        self._parts = by_identity(divided, size=keep)
        # For each step's W, the part between the devices here, and one part for each other rank.
        self._mixing = by_identity(prepared, size=keep * number_of_ranks())

    def post(self, W: MixingMatrix, messages: Tensor) -> None:
        """Start sending the rows that other ranks mix."""
        self.rows.post(self._parts(W), messages, self.ready_s[self.devices])

    def heard_s(self, W: MixingMatrix) -> FloatArray:
        """(N,) when the devices here and their senders were ready."""
        ready_s = self.ready_s.copy()
        for peer in self._parts(W).peers:
            ready_s[peer.senders] = self.rows.ready_s[peer.rank]
        return ready_s

    def mixing(self, W: MixingMatrix) -> Mixing:
        """The part of W between this rank's devices."""
        return self._mixing(self._parts(W).inner)

    def whole(self, W: MixingMatrix) -> bool:
        """Whether no other rank has rows for this one."""
        return not self._parts(W).peers

    def add_rest(self, W: MixingMatrix, mixed: Tensor, threads: Threads) -> IntArray:
        """Add the other ranks' rows, each times its weight."""
        part = self._parts(W)
        crossed = np.zeros(len(mixed), dtype=bool)
        for peer, rows in zip(part.peers, self.rows.receive(part), strict=True):
            added = mixed.new_empty((len(peer.rows), mixed.shape[1]))
            self._mixing(peer.weights).into(added, rows, threads)
            mixed.index_add_(0, torch.from_numpy(peer.rows).to(mixed.device), added)
            crossed[peer.rows] = True
        return np.flatnonzero(crossed)

    def inboxes(self, W: MixingMatrix, messages: Tensor) -> tuple[Inboxes, Tensor]:
        """The senders of each device of this rank, and all messages, local and remote."""
        received = self.rows.receive(self._parts(W))
        return self._inboxes(W), torch.cat([messages, *received])

    def _senders_first(self, W: MixingMatrix) -> tuple[MixingMatrix, IntArray]:
        """(n, s) weights between this rank's devices and their senders, and the senders' numbers.

        The rank's own devices come first.
        """
        senders = np.concatenate([self.devices, *(peer.senders for peer in self._parts(W).peers)])
        place = np.full(W.shape[1], -1, dtype=np.int64)
        place[senders] = np.arange(len(senders))
        own = csr_array(W[self.devices])
        shape = (own.shape[0], len(senders))
        return csr_array((own.data, place[own.indices], own.indptr), shape=shape), senders

    def close(self) -> None:
        """Release shared memory."""
        self.rows.close()


class DistributedEngine:
    """One rank's part of a job; a single rank computes the same bits as the local engine.

    Attributes:
        shares: the devices of this rank.
        exchange: carries messages between ranks.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.shares: Shares = LocalShares(np.arange(job.network.num_devices))
        if number_of_ranks() > 1:
            self.shares = _shared_out(job)
        self.exchange = RankExchange(job, self.shares)
        self._local = LocalEngine(job, self.shares.devices, self.exchange)
        self.evaluate = self._local.evaluate

    def begin(self, state: State | None) -> State:
        """The state of this rank's devices."""
        here = state or initial_state(self.job).part(self.job, self.shares.devices)
        alone = isinstance(self.shares, LocalShares)
        return here if alone else replace(here, shares=self.shares)

    def advance(self, state: State, step: Step, t: int) -> Advanced:
        """Take a step of this rank's devices."""
        own = self.shares.devices
        inside = replace(state, trained=state.trained[own])
        self.exchange.ready_s = state.ready_s
        part = Step(step.train[own], step.W)
        done = self._local.advance(inside, part, t, bool(step.train.any()))
        return done._replace(ready_s=self.exchange.heard_s(step.W))

    def close(self) -> None:
        """End the threads, and release shared memory."""
        self._local.close()
        self.exchange.close()


def _owner(shares: Shares) -> IntArray:
    return (
        shares.owner
        if isinstance(shares, RankShares)
        else np.zeros(len(shares.devices), dtype=np.int64)
    )


def _shared_out(job: Job) -> RankShares:
    """The shares that rank 0 computes, since machines may round a Fiedler vector differently."""
    parts = json.loads(find_on_rank_0(lambda: json.dumps(shard_job(job, number_of_ranks()))))
    return RankShares([np.array(part, dtype=np.int64) for part in parts])
