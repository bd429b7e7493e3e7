"""The fast engine of one machine: everyone's parameters are one (N, d) matrix, worked on in cached pieces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ssdfl.arrays import BoolArray, IntArray
from ssdfl.engine.evaluation import Evaluation
from ssdfl.engine.gradients import choose_gradients
from ssdfl.engine.job import Job, State, initial_state
from ssdfl.engine.mixing import Mixing
from ssdfl.engine.ranks import Alone, Shares
from ssdfl.engine.workers import workers_for
from ssdfl.memo import by_identity
from ssdfl.methods import Step

_NUMBERS_IN_CACHE = 1 << 20
_FEWEST, _MOST = 2, 512


@dataclass(frozen=True, eq=False)
class Group:
    """Some devices that train together.

    Attributes:
        devices: (n,) who.
        places: (n,) their rows of a matrix.
        rows: the same as an index; a slice, which makes views and no copies, where they are neighbours.
        ρ, μ: (n, 1) their optimizers.
        momenta: how many of them have momentum.
        proximal: how many have a proximal pull.
    """

    devices: IntArray
    places: IntArray
    rows: slice | Tensor
    ρ: Tensor
    μ: Tensor
    momenta: int
    proximal: int


class LocalEngine:
    """A step mixes into a second matrix and adds each device's displacement there.

    Devices train in small groups, so that a group's parameters stay in a core's cache from the gradient to
    the displacement. In all there are two matrices of parameters, and a third if optimizers carry something
    from step to step.
    """

    def __init__(self, job: Job, devices: IntArray | None = None) -> None:
        """Make ready to run all of a job's devices, or some: then states and steps are of those alone."""
        self.job = job
        self.shares: Shares = Alone(job.network.num_devices)
        self.devices = self.shares.devices if devices is None else devices
        self.workers = workers_for(job)
        tasks = [job.task, *(job.task.twin() for _ in range(self.workers.number - 1))]
        self._gradients = choose_gradients(job, tasks)
        self.evaluate = Evaluation(job, tasks, self.workers)
        θ = job.task.initial_parameters
        self._mixing = by_identity(lambda W: Mixing(W, θ.dtype, θ.device))
        self._everyone = self._groups(np.arange(len(self.devices)))
        self._matrices: list[Tensor] = []
        self._carry: Tensor | None = None

    def begin(self, state: State | None) -> State:
        """The state as it is."""
        return state or initial_state(self.job)

    def advance(self, state: State, step: Step, t: int) -> tuple[Tensor, Tensor, Tensor]:
        """``X ← W X`` plus the displacement of those that train."""
        X, mixing = self._matrix_beside(state.X), self._mixing(step.W)
        moved = torch.zeros(len(X), dtype=X.dtype, device=X.device)
        everyone = bool(step.train.all())
        by_group = everyone and self.job.task.stackable and mixing.kind == "sparse"
        if not by_group:
            mixing.into(X, state.X, self.workers)
        if not step.train.any():
            return X, state.carry, moved
        if state.carry is not self._carry:
            self._carry = state.carry.to(X.device, copy=True).contiguous()
        carry, samples = self._carry, self.job.samples(self.devices, t)

        def train(worker: int, group: Group) -> None:
            before, carried = state.X[group.rows], carry[group.rows]
            _start_regimes(group, carried, before, ~state.trained[group.places])
            θ, descent = self._local_steps(worker, group, before, carried, samples[group.rows], t)
            after = mixing.rows(state.X, group.places) if by_group else X[group.rows]
            after.add_(descent, alpha=-self.job.learning_rate)
            if θ is not before:
                after.add_(θ.sub_(before))
            moved[group.rows] = torch.linalg.vector_norm(after - before, dim=1)
            if by_group or isinstance(group.rows, Tensor):
                X[group.rows] = after
            if isinstance(group.rows, Tensor):
                carry[group.rows] = carried

        self.workers.each(train, self._everyone if everyone else self._groups(np.flatnonzero(step.train)))
        return X, carry, moved

    def close(self) -> None:
        """End the threads."""
        self.workers.close()

    def _local_steps(
        self, worker: int, group: Group, θ: Tensor, carried: Tensor, samples: Tensor, t: int
    ) -> tuple[Tensor, Tensor]:
        """A group's parameters before the last of E local steps, and what they go down along in that."""
        gradients = self._gradients[worker]
        descent = _descent(group, θ, gradients(θ, group.devices, samples[:, 0], (t, 0)), carried)
        for e in range(1, self.job.local_steps):
            θ = torch.add(θ, descent, alpha=-self.job.learning_rate)
            descent = _descent(group, θ, gradients(θ, group.devices, samples[:, e], (t, e)), carried)
        return θ, descent

    def _groups(self, places: IntArray) -> list[Group]:
        """Devices in groups that fit a core's cache: the same groups on any machine."""
        task, size = self.job.task, 1
        if task.stackable:
            in_cache = int(np.clip(_NUMBERS_IN_CACHE // task.num_parameters, _FEWEST, _MOST))
            size = in_cache if task.inputs.device.type == "cpu" else len(places)
        return [self._group(places[k : k + size]) for k in range(0, len(places), size)]

    def _group(self, places: IntArray) -> Group:
        θ = self.job.task.initial_parameters
        devices, first, last = self.devices[places], int(places[0]), int(places[-1])
        neighbours = last - first + 1 == len(places)
        ρ, μ = (
            torch.tensor([[getattr(self.job.optimizers[i], name)] for i in devices]).to(θ)
            for name in ("rho", "mu")
        )
        kinds = [self.job.optimizers[i].kind for i in devices]
        return Group(
            devices,
            places,
            slice(first, last + 1) if neighbours else torch.from_numpy(places).to(θ.device),
            ρ,
            μ,
            kinds.count("momentum"),
            kinds.count("proximal"),
        )

    def _matrix_beside(self, busy: Tensor) -> Tensor:
        """One of this engine's two matrices, not the one in use."""
        for matrix in self._matrices:
            if matrix is not busy:
                return matrix
        like = self.job.task.initial_parameters
        self._matrices.append(torch.empty(busy.shape, dtype=like.dtype, device=like.device))
        return self._matrices[-1]


def _descent(group: Group, θ: Tensor, g: Tensor, carried: Tensor) -> Tensor:
    """What a group goes down along, g̃ of `eq:eff_sgd_ovr`; what momentum carries is renewed in place.

    Momentum carries v ← g + ρ v, a proximal pull is μ (θ − where the regime started). Since ρ or μ of a
    device is 0, one formula serves groups with both.
    """
    if group.momenta == len(group.devices):
        return carried.mul_(group.ρ).add_(g)
    if group.momenta:
        descent = torch.addcmul(g, group.ρ - group.μ, carried).addcmul_(group.μ, θ)
        carried.copy_(torch.where(group.ρ > 0, descent, carried))
        return descent
    return torch.addcmul(g, group.μ, θ - carried) if group.proximal else g


def _start_regimes(group: Group, carried: Tensor, start: Tensor, fresh: BoolArray) -> None:
    """Those that did not train last start with no momentum, and with an anchor where they are."""
    if not carried.shape[1] or not fresh.any():
        return
    if fresh.all() and not group.proximal:
        carried.zero_()
        return
    starts = torch.from_numpy(fresh).to(start.device)[:, None]
    carried.copy_(torch.where(starts, start * (group.μ > 0), carried))
