"""The engine of many processes: each runs some clusters like `local` and exchanges rows.

While devices mix inside clusters, nothing leaves a rank. A step that mixes across ranks sends its
boundary rows, before the rank's own devices train if the rule allows it, and adds the others' rows
when they arrive.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import torch
import torch.distributed as dist
from scipy.sparse import csr_array
from torch import Tensor

from ssdfl.arrays import IntArray
from ssdfl.engine.engine import Advanced
from ssdfl.engine.inboxes import Inboxes
from ssdfl.engine.job import Job
from ssdfl.engine.local import LocalEngine
from ssdfl.engine.mixing import Mixing
from ssdfl.engine.rank_mixing import RankMixing, divide_mixing, shard_job
from ssdfl.engine.ranks import find_on_rank_0, number_of_ranks, rank
from ssdfl.engine.row_exchange import RowExchange
from ssdfl.engine.shares import LocalShares, RankShares, Shares
from ssdfl.engine.state import (
    State,
    initial_state,
    lasting,
    lasting_memory,
    memory_keepers,
    own_rows,
)
from ssdfl.engine.threads import Threads
from ssdfl.graph import MixingMatrix
from ssdfl.memo import by_identity
from ssdfl.methods import Step


class RankExchange:
    """Carries messages between the devices of a rank and to and from other ranks.

    Attributes:
        rows: what goes to and comes from other ranks.
    """

    def __init__(self, job: Job, shares: Shares) -> None:
        owner, raw, keep = _owner(shares), not job.rule.linear, job.distinct_steps
        self.devices = shares.devices
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
        # Of each step's W, the part between the devices here and one part for each other rank.
        self._mixing = by_identity(prepared, size=keep * number_of_ranks())

    def post(self, W: MixingMatrix, messages: Tensor) -> None:
        """Begin to send the rows that other ranks mix."""
        self.rows.post(self._parts(W), messages)

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
        """Whom each device of this rank hears, and the messages from here and from other ranks."""
        received = self.rows.receive(self._parts(W))
        return self._inboxes(W), torch.cat([messages, *received])

    def _senders_first(self, W: MixingMatrix) -> tuple[MixingMatrix, IntArray]:
        """(n, s) weights of this rank's devices and those they hear, and which devices these are.

        The rank's own devices come first.
        """
        senders = np.concatenate([self.devices, *(peer.senders for peer in self._parts(W).peers)])
        place = np.full(W.shape[1], -1, dtype=np.int64)
        place[senders] = np.arange(len(senders))
        own = csr_array(W[self.devices])
        shape = (own.shape[0], len(senders))
        return csr_array((own.data, place[own.indices], own.indptr), shape=shape), senders

    def close(self) -> None:
        """Leave no shared memory."""
        self.rows.close()


class DistributedEngine:
    """One rank's part of a job; alone, it computes the same bits as the local engine.

    Attributes:
        shares: which devices this rank has.
        exchange: what goes to and comes from other ranks.
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
        """This rank's part of the state that rank 0 starts from."""
        if not isinstance(self.shares, RankShares):
            return state or initial_state(self.job)
        return _part_of_state(self.job, self.shares, state)

    def advance(self, state: State, step: Step, t: int) -> Advanced:
        """The step of this rank's devices."""
        own = self.shares.devices
        inside = replace(state, trained=state.trained[own])
        return self._local.advance(inside, Step(step.train[own], step.W), t, bool(step.train.any()))

    def close(self) -> None:
        """End the threads and leave no shared memory."""
        self._local.close()
        self.exchange.close()


def _owner(shares: Shares) -> IntArray:
    return (
        shares.owner
        if isinstance(shares, RankShares)
        else np.zeros(len(shares.devices), dtype=np.int64)
    )


def _shared_out(job: Job) -> RankShares:
    """The shares that rank 0 finds: two machines may round a Fiedler vector differently."""
    parts = json.loads(find_on_rank_0(lambda: json.dumps(shard_job(job, number_of_ranks()))))
    return RankShares([np.array(part, dtype=np.int64) for part in parts])


def _part_of_state(job: Job, shares: RankShares, state: State | None) -> State:
    """This rank's part of the state of rank 0."""
    start = initial_state(job)
    known = state or start
    facts = (state is None, known.step, known.transmissions, lasting(job, known))
    fresh, step, transmissions, all_memory = json.loads(find_on_rank_0(lambda: json.dumps(facts)))
    own = torch.from_numpy(shares.devices).to(start.X.device)
    memory = own_rows(job, start.memory, shares.devices)
    if fresh:
        return replace(start, X=start.X[own], memory=memory, shares=shares)
    ready_s, trained = (
        torch.from_numpy(known.ready_s.copy()),
        torch.from_numpy(known.trained.copy()),
    )
    dist.broadcast(ready_s, 0)
    dist.broadcast(trained, 0)
    keepers = memory_keepers(job)
    lasts = start.memory if all_memory else lasting_memory(start.memory)
    for name in lasts:
        whole, width = known.memory.get(name, start.memory[name]), start.memory[name].shape[1]
        memory[name] = shares.dealt(whole, start.memory[name], width, keepers[name])
    return State(
        step=step,
        X=shares.dealt(known.X, start.X, start.X.shape[1]),
        memory=memory,
        trained=trained.numpy(),
        ready_s=ready_s.numpy(),
        transmissions=transmissions,
        shares=shares,
    )
