"""The fast engine of one machine: everyone's parameters are one (N, d) matrix, worked on in cached pieces."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ssdfl.arrays import BoolArray, IntArray
from ssdfl.engine.evaluation import Evaluation
from ssdfl.engine.gradients import choose_gradients
from ssdfl.engine.job import Job, State
from ssdfl.engine.mixing import Mixing
from ssdfl.engine.workers import workers_for
from ssdfl.memo import by_identity
from ssdfl.schedule import Step

_NUMBERS_IN_CACHE = 1 << 18
_FEWEST, _MOST = 16, 256

Rows = slice | Tensor


class LocalEngine:
    """A step mixes into a second matrix, then adds each device's displacement where it mixed to.

    Devices train in small groups, so that a group's parameters stay in a core's cache from the gradient to
    the displacement. In all there are two matrices of parameters, and a third if optimizers carry something
    from step to step.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.workers = workers_for(job)
        tasks = [job.task, *(job.task.twin() for _ in range(self.workers.number - 1))]
        self._gradients = choose_gradients(job, tasks)
        self.evaluate = Evaluation(job, tasks, self.workers)
        θ = job.task.initial_parameters
        self._mixing = by_identity(lambda W: Mixing(W, θ.dtype, θ.device))
        self._ρ, self._μ = (
            torch.tensor([[value] for value in values], dtype=θ.dtype, device=θ.device)
            for values in ([o.rho for o in job.optimizers], [o.mu for o in job.optimizers])
        )
        self._momentum, self._proximal = (
            np.array([o.rho > 0 for o in job.optimizers]),
            np.array([o.mu > 0 for o in job.optimizers]),
        )
        self._matrices: list[Tensor] = []
        self._carry: Tensor | None = None

    def advance(self, state: State, step: Step, t: int) -> tuple[Tensor, Tensor, Tensor]:
        """``X ← W X`` plus the displacement of those that train."""
        X = self._matrix_beside(state.X)
        self._mixing(step.W).into(X, state.X, self.workers)
        moved = torch.zeros(len(X), dtype=X.dtype, device=X.device)
        if not step.train.any():
            return X, state.carry, moved
        if state.carry is not self._carry:
            self._carry = state.carry.to(X.device, copy=True).contiguous()
        carry = self._carry
        samples = self.job.samples(range(len(X)), t)

        def train(worker: int, devices: IntArray) -> None:
            rows = _rows(devices, X.device)
            before = θ = state.X[rows]
            carried = carry[rows]
            self._start_regimes(carried, rows, devices, before, ~state.trained[devices])
            for e in range(self.job.local_steps):
                g = self._gradients[worker](θ, devices, samples[rows, e], (t, e))
                descent = self._descent(θ, g, carried, rows, devices)
                θ = torch.add(θ, descent, alpha=-self.job.learning_rate)
            if isinstance(rows, Tensor):
                carry[rows] = carried
            X[rows] += θ.sub_(before)
            moved[rows] = torch.linalg.vector_norm(X[rows] - before, dim=1)

        self.workers.each(train, self._groups(step.train))
        return X, carry, moved

    def close(self) -> None:
        """End the threads."""
        self.workers.close()

    def _descent(self, θ: Tensor, g: Tensor, carried: Tensor, rows: Rows, devices: IntArray) -> Tensor:
        """What devices go down along, g̃ of `eq:eff_sgd_ovr`; what momentum carries is renewed in place.

        Momentum carries v ← g + ρ v, a proximal pull is μ (θ − where the regime started). Since ρ or μ of a
        device is 0, one formula serves both.
        """
        ρ, μ = self._ρ[rows], self._μ[rows]
        if self._momentum[devices].all():
            return carried.mul_(ρ).add_(g)
        if self._momentum[devices].any():
            descent = torch.addcmul(g, ρ - μ, carried).addcmul_(μ, θ)
            carried.copy_(torch.where(ρ > 0, descent, carried))
            return descent
        return torch.addcmul(g, μ, θ - carried) if self._proximal[devices].any() else g

    def _start_regimes(
        self, carried: Tensor, rows: Rows, devices: IntArray, start: Tensor, fresh: BoolArray
    ) -> None:
        """Those that did not train last start with no momentum, and with an anchor where they are."""
        if not carried.shape[1] or not fresh.any():
            return
        if fresh.all() and not self._proximal[devices].any():
            carried.zero_()
            return
        starts = torch.from_numpy(fresh).to(start.device)[:, None]
        carried.copy_(torch.where(starts, start * (self._μ[rows] > 0), carried))

    def _groups(self, train: BoolArray) -> list[IntArray]:
        """Devices that train, in groups that fit a core's cache; always the same groups on any machine."""
        devices = np.flatnonzero(train)
        size = 1
        if self.job.task.stackable:
            size = int(np.clip(_NUMBERS_IN_CACHE // self.job.task.num_parameters, _FEWEST, _MOST))
        if self.job.task.inputs.device.type != "cpu":
            size = len(devices)
        return [devices[k : k + size] for k in range(0, len(devices), size)]

    def _matrix_beside(self, busy: Tensor) -> Tensor:
        """One of this engine's two matrices, not the one in use."""
        for matrix in self._matrices:
            if matrix is not busy:
                return matrix
        like = self.job.task.initial_parameters
        self._matrices.append(torch.empty(busy.shape, dtype=like.dtype, device=like.device))
        return self._matrices[-1]


def _rows(devices: IntArray, device: torch.device) -> Rows:
    """Neighbouring rows as a slice, which is a view and no copy."""
    first, last = int(devices[0]), int(devices[-1])
    if last - first + 1 == len(devices):
        return slice(first, last + 1)
    return torch.from_numpy(devices).to(device)
