"""What an engine is given, what it keeps between cycles, and what it reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ssdfl.arrays import BoolArray, FloatArray, IntArray
from ssdfl.clusters import Clusters
from ssdfl.engine.ranks import Shares
from ssdfl.errors import InputError, check_range
from ssdfl.graph import Network
from ssdfl.learning import LocalOptimizer, Task, draw_batches
from ssdfl.methods import Schedule, Step


@dataclass(frozen=True, eq=False)
class Job:
    """One method on one task: everything that determines the result.

    Attributes:
        steps_per_cycle: τ_a + τ_r.
        local_steps: E, mini-batch steps of one iteration; 1 is exactly the paper's equation.
        batch_size: M, samples of a mini-batch; 0 uses the whole shard.
        evaluate_every: test every so many cycles, and after the last.
        gap_clusters: record consensus gaps, effective gradients and losses of these clusters, if any.
    """

    task: Task
    network: Network
    schedule: Schedule
    optimizers: tuple[LocalOptimizer, ...]
    cycles: int
    steps_per_cycle: int
    learning_rate: float
    batch_size: int = 16
    local_steps: int = 1
    evaluate_every: int = 1
    seed: int = 0
    gap_clusters: Clusters = ()

    def __post_init__(self) -> None:
        N = self.network.num_devices
        for what, count in (("shards", self.task.num_devices), ("optimizers", len(self.optimizers))):
            if count != N:
                raise InputError(f"number of {what}", count, f"{N}, one per device", "Make them match.")
        if not self.learning_rate > 0:
            raise InputError("learning_rate", self.learning_rate, "a number above 0", "Try 0.05.")
        for what, value, least in (
            ("cycles", self.cycles, 1),
            ("steps_per_cycle", self.steps_per_cycle, 1),
            ("batch_size", self.batch_size, 0),
            ("local_steps", self.local_steps, 1),
            ("evaluate_every", self.evaluate_every, 1),
        ):
            check_range(what, value, least)

    @property
    def message_bytes(self) -> int:
        """The bytes of one model on the wire."""
        theta = self.task.initial_parameters
        return theta.numel() * theta.element_size()

    def samples(self, devices: Sequence[int] | IntArray, t: int) -> Tensor:
        """(n, E, M) the samples that n devices, in ascending order, use at step t."""
        shape = (self.local_steps, self.batch_size)
        if self.batch_size == 0:
            rows = torch.from_numpy(np.asarray(devices)).to(self.task.shards.device)
            return self.task.shards[rows, None].expand(-1, self.local_steps, -1)
        return self.task.samples(devices, draw_batches(self.seed, t, devices, shape, self.task.shard_size))


@dataclass(frozen=True, eq=False)
class State:
    """Where a run is between two steps; enough to go on bit for bit.

    Attributes:
        cycle: how many cycles are done.
        X: (N, d) everyone's parameters.
        carry: (N, d) what optimizers carry from step to step, meaningful where ``trained``: momentum where
            ρ > 0, parameters at the start of the regime where μ > 0. (N, 0) if nobody has either.
        trained: (N,) who trained in the last step; others start a new regime when they train next.
        ready_s: (N,) simulated seconds at which each device can start its next step.
        transmissions: directed messages so far.
        shares: if several processes run the job, which rows of ``X`` and ``carry`` are here.
    """

    cycle: int
    X: Tensor
    carry: Tensor
    trained: BoolArray
    ready_s: FloatArray
    transmissions: int
    shares: Shares | None = None

    def whole(self) -> State:
        """The state of all devices, in rank 0; every rank has to ask at the same time."""
        if self.shares is None:
            return self
        X = self.shares.collected(self.X)
        carry = self.shares.collected(self.carry) if self.trained.any() else self.carry
        return replace(self, X=X, carry=carry, shares=None)

    def clone(self) -> State:
        """The same state in memory of its own."""
        return replace(self, X=self.X.clone(), carry=self.carry.clone())


class Engine(Protocol):
    """How steps are executed. `ssdfl.engine.run` does the rest for every engine.

    Where several processes run a job, N devices are here those of one process.
    """

    shares: Shares

    def begin(self, state: State | None) -> State:
        """The state to go on from, of this process's devices; None begins."""

    def advance(self, state: State, step: Step, t: int) -> tuple[Tensor, Tensor, Tensor]:
        """After step t: parameters, what optimizers carry, and (N,) how far each that trained has moved.

        The engine may write into what it returned before, never into anything else.
        """

    def evaluate(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """(n,) mean test loss and (n,) test accuracy of the rows of X."""

    def close(self) -> None:
        """End what the engine started."""


MakeEngine = Callable[[Job], Engine]


def initial_state(job: Job) -> State:
    """Everyone at θ⁰, nothing sent, time zero."""
    N = job.network.num_devices
    X = job.task.initial_parameters.expand(N, -1)
    return State(0, X, no_carry(job), np.zeros(N, dtype=bool), np.zeros(N), 0)


def no_carry(job: Job) -> Tensor:
    """What optimizers carry before anyone trained."""
    θ = job.task.initial_parameters
    remembers = any(optimizer.rho or optimizer.mu for optimizer in job.optimizers)
    return torch.zeros(1, 1, dtype=θ.dtype, device=θ.device).expand(
        job.network.num_devices, len(θ) if remembers else 0
    )
