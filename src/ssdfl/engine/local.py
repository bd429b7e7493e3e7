"""The fast engine of one machine: everyone's parameters are one (N, d) matrix and mixing is one product."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from ssdfl.engine.gradients import choose_gradients
from ssdfl.engine.job import Job, State
from ssdfl.graph import MixingMatrix
from ssdfl.schedule import Step

DENSE_SHARE = 0.3
_NUMBERS_AT_ONCE = 1 << 24
_LOOPED_STRETCH = 1000


class LocalEngine:
    """Matrix arithmetic instead of loops over devices."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.gradients = choose_gradients(job)
        self.ρ = torch.tensor([[optimizer.rho] for optimizer in job.optimizers])
        self.μ = torch.tensor([[optimizer.mu] for optimizer in job.optimizers])

    def advance(self, state: State, step: Step, t: int) -> tuple[Tensor, Tensor, Tensor]:
        """``X ← W X`` plus the displacement of those that train."""
        X = mix(step.W, state.X)
        if not step.train.any():
            return X, state.V, state.anchor
        devices = torch.from_numpy(np.flatnonzero(step.train))
        fresh = torch.from_numpy(~state.trained)[devices, None]
        start = state.X[devices]
        v = state.V[devices].masked_fill(fresh, 0)
        anchor = torch.where(fresh, start, state.anchor[devices])
        end, v = self.train(start, v, anchor, devices, t)
        X[devices] += end - start
        return X, state.V.index_copy(0, devices, v), state.anchor.index_copy(0, devices, anchor)

    def train(self, Θ: Tensor, v: Tensor, anchor: Tensor, devices: Tensor, t: int) -> tuple[Tensor, Tensor]:
        """E local steps of some devices: their parameters and momentum afterwards."""
        job = self.job
        positions = job.batches(range(job.network.num_devices), t)[devices.numpy()]
        ρ, μ = self.ρ[devices], self.μ[devices]
        for e in range(job.local_steps):
            v = self.gradients(Θ, devices, positions[:, e], (t, e)) + ρ * v
            Θ = Θ - job.learning_rate * (v + μ * (Θ - anchor))
        return Θ, v

    @torch.no_grad()
    def evaluate(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Test all rows on a stretch of the test set at a time."""
        task = self.job.task
        scores = vmap(task.scores, in_dims=(0, None)) if task.stackable else self._scores_looped
        loss, correct = torch.zeros(len(X)), torch.zeros(len(X))
        widest = max(shape[0] if shape else 1 for shape in task.layout.values())
        stretch = max(1, _NUMBERS_AT_ONCE // (len(X) * widest)) if task.stackable else _LOOPED_STRETCH
        for inputs, labels in zip(
            task.test_inputs.split(stretch), task.test_labels.split(stretch), strict=True
        ):
            predicted = scores(X, inputs)
            loss += vmap(task.loss, in_dims=(0, None))(predicted, labels) * len(labels)
            correct += (predicted.argmax(-1) == labels).sum(-1)
        count = len(task.test_labels)
        return loss / count, correct / count

    def _scores_looped(self, X: Tensor, inputs: Tensor) -> Tensor:
        return torch.stack([self.job.task.scores(θ, inputs) for θ in X])


def mix(W: MixingMatrix, X: Tensor) -> Tensor:
    """``W X``, by a sparse product where few devices are linked.

    Examples:
        >>> from ssdfl.graph import averaging
        >>> mix(averaging(2), torch.tensor([[0.0], [4.0]])).tolist()
        [[2.0], [2.0]]
    """
    N = W.shape[0]
    if W.nnz > DENSE_SHARE * N * N:
        return torch.from_numpy(W.toarray()).to(X.dtype) @ X
    X_array = X.numpy()
    return torch.from_numpy(W.astype(X_array.dtype) @ X_array)
