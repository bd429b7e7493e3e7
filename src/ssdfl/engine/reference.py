"""The oracle: plain loops that read like the paper's equations. Slow, and right.

    θ_i ← Σ_j w_ij θ_j − η g̃_i(θ_i)                                (`eq:intraC_updates`)
    g̃_i = g_i + Σ_p ρ_i^{q−p} g_i^{(p)} + μ_i (θ_i − θ_i⁰)          (`eq:eff_sgd_ovr`)

With E local steps, −η g̃ becomes the sum of E such steps from the device's own parameters.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ssdfl.engine.gradients import gradient
from ssdfl.engine.job import Job, State, initial_state
from ssdfl.engine.ranks import Alone, Shares
from ssdfl.methods import Step


class ReferenceEngine:
    """Device by device, neighbour by neighbour."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.shares: Shares = Alone(job.network.num_devices)

    def begin(self, state: State | None) -> State:
        """The state as it is."""
        return state or initial_state(self.job)

    def advance(self, state: State, step: Step, t: int) -> tuple[Tensor, Tensor, Tensor]:
        """Train each device from its own parameters, then add its displacement to its neighbours' mix."""
        W = step.W.toarray()
        X, carry, moved = state.X.clone(), state.carry.clone(), state.X.new_zeros(len(state.X))
        for i in range(len(X)):
            mixed = torch.zeros_like(X[i])
            for j in range(len(X)):
                if W[i, j]:
                    mixed += float(W[i, j]) * state.X[j]
            displacement = torch.zeros_like(mixed)
            if step.train[i]:
                carried = carry[i] if state.trained[i] else self.start_regime(state.X[i], carry[i], i)
                θ, carry[i] = self.train(state.X[i], carried, i, t)
                displacement = θ - state.X[i]
            X[i] = mixed + displacement
            moved[i] = (X[i] - state.X[i]).norm() if step.train[i] else 0
        return X, carry, moved

    def start_regime(self, θ: Tensor, carried: Tensor, i: int) -> Tensor:
        """What device i carries if it did not train last: no momentum, or an anchor where it is."""
        optimizer = self.job.optimizers[i]
        return θ if optimizer.mu else torch.zeros_like(θ) if optimizer.rho else carried

    def train(self, θ: Tensor, carried: Tensor, i: int, t: int) -> tuple[Tensor, Tensor]:
        """E local steps of device i: its parameters, and the momentum or anchor that it carries on."""
        job = self.job
        ρ, μ, η = job.optimizers[i].rho, job.optimizers[i].mu, job.learning_rate
        for e, samples in enumerate(job.samples(range(i, i + 1), t)[0]):
            g = gradient(job, job.task, θ, samples, at=(t, i, e))
            if ρ:
                carried = g + ρ * carried
                θ = θ - η * carried
            else:
                θ = θ - η * (g + μ * (θ - carried if μ else 0))
        return θ, carried

    def evaluate(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Test one device after the other."""
        task = self.job.task
        losses, accuracies = [], []
        for θ in X:
            with torch.no_grad():
                scores = task.scores(θ, task.test_inputs)
            losses.append(task.loss(scores, task.test_labels))
            accuracies.append((scores.argmax(1) == task.test_labels).float().mean())
        return torch.stack(losses), torch.stack(accuracies)

    def close(self) -> None:
        """Nothing to end."""
