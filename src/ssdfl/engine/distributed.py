"""The engine of many processes: each runs some clusters as `local` does, and rows cross between them.

While devices mix inside clusters nothing leaves a rank. A step that mixes across ranks sends its boundary
rows before the rank's own devices train, and adds them when they have.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from ssdfl.engine.boundary import Boundary
from ssdfl.engine.cut import cut_matrix, shard_job
from ssdfl.engine.job import Job, State, initial_state
from ssdfl.engine.local import LocalEngine
from ssdfl.engine.mixing import Mixing
from ssdfl.engine.ranks import Alone, Dealt, Shares, number_of_ranks, rank, told
from ssdfl.memo import by_identity
from ssdfl.methods import Step


class DistributedEngine:
    """One rank's part of a job; alone, it computes the same bits as the local engine.

    Attributes:
        shares: which devices this rank has.
        boundary: what goes to and comes from other ranks.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.shares: Shares = Alone(job.network.num_devices)
        if number_of_ranks() > 1:
            self.shares = _deal(job)
        self.boundary = Boundary(job.task.initial_parameters)
        self._local = LocalEngine(job, self.shares.devices)
        self.evaluate = self._local.evaluate
        self._cuts = by_identity(lambda W: cut_matrix(W, _owner(self.shares), rank()))
        θ = job.task.initial_parameters
        self._mixing = by_identity(lambda W: Mixing(W, θ.dtype, θ.device), size=64)

    def begin(self, state: State | None) -> State:
        """This rank's part of the state that rank 0 starts from."""
        if not isinstance(self.shares, Dealt):
            return state or initial_state(self.job)
        return _dealt_state(self.job, self.shares, state)

    def advance(self, state: State, step: Step, t: int) -> tuple[Tensor, Tensor, Tensor]:
        """``X ← W X`` plus the displacement of those that train, of this rank's devices."""
        cut, own = self._cuts(step.W), self.shares.devices
        self.boundary.post(cut, state.X)
        inside = replace(state, trained=state.trained[own])
        X, carry, moved = self._local.advance(inside, Step(step.train[own], cut.inner), t)
        crossed = np.zeros(len(own), dtype=bool)
        for side, rows in zip(cut.sides, self.boundary.receive(cut), strict=True):
            part = X.new_empty((len(side.rows), X.shape[1]))
            self._mixing(side.weights).into(part, rows, self._local.workers)
            X.index_add_(0, torch.from_numpy(side.rows).to(X.device), part)
            crossed[side.rows] = True
        changed = torch.from_numpy(np.flatnonzero(crossed & step.train[own])).to(X.device)
        moved[changed] = torch.linalg.vector_norm(X[changed] - state.X[changed], dim=1)
        return X, carry, moved

    def close(self) -> None:
        """End the threads and leave no shared memory."""
        self._local.close()
        self.boundary.close()


def _owner(shares: Shares) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return shares.owner if isinstance(shares, Dealt) else np.zeros(len(shares.devices), dtype=np.int64)


def _deal(job: Job) -> Dealt:
    """The shares that rank 0 finds: two machines may round a Fiedler vector differently."""
    parts = json.loads(told(lambda: json.dumps(shard_job(job, number_of_ranks()))))
    return Dealt([np.array(part, dtype=np.int64) for part in parts])


def _dealt_state(job: Job, shares: Dealt, state: State | None) -> State:
    """One's own part of the state of rank 0."""
    start = initial_state(job)
    known = state or start
    facts = (state is None, known.cycle, known.transmissions, bool(known.trained.any()))
    fresh, cycle, transmissions, in_a_regime = json.loads(told(lambda: json.dumps(facts)))
    own = torch.from_numpy(shares.devices).to(start.X.device)
    if fresh:
        return replace(start, X=start.X[own], carry=start.carry[own], shares=shares)
    ready_s, trained = torch.from_numpy(known.ready_s.copy()), torch.from_numpy(known.trained.copy())
    dist.broadcast(ready_s, 0)
    dist.broadcast(trained, 0)
    θ = job.task.initial_parameters
    return State(
        cycle=cycle,
        X=shares.dealt(known.X, θ),
        carry=shares.dealt(known.carry, θ) if in_a_regime else start.carry[own],
        trained=trained.numpy(),
        ready_s=ready_s.numpy(),
        transmissions=transmissions,
        shares=shares,
    )
