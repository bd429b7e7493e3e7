"""Problems with known optima and different data on every device, for any engine, in 64 bits."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import nn
from torch.nn.functional import softplus

from ssdfl.engine import Job
from ssdfl.graph import load_network, metropolis
from ssdfl.learning import Shards, Task, parse_optimizer
from ssdfl.methods import Periodic, ScheduleInputs, Step, find_method

DIMENSION, SAMPLES = 4, 12
RIDGE = 0.5


class Residuals(nn.Module):
    """aᵀx − b of samples (a, b)."""

    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.zeros(DIMENSION, dtype=torch.float64))

    def forward(self, samples):
        return (samples[:, :-1] @ self.x - samples[:, -1])[:, None]


class Margins(Residuals):
    """b aᵀx of samples (a, b), and ‖x‖²."""

    def forward(self, samples):
        margins = samples[:, -1] * (samples[:, :-1] @ self.x)
        return torch.stack([margins, (self.x * self.x).sum().expand(len(samples))], dim=1)


def half_squares(scores, labels):
    return scores.square().mean() / 2


def logistic(scores, labels):
    return softplus(-scores[:, 0]).mean() + RIDGE / 2 * scores[:, 1].mean()


@dataclass(frozen=True)
class Problem:
    """Everyone's samples: a (N, S, d) and b (N, S)."""

    a: np.ndarray
    b: np.ndarray
    kind: str

    @property
    def num_devices(self):
        return len(self.a)

    def gradient(self, i, x):
        """Of device i alone, at x."""
        a, b = self.a[i], self.b[i]
        if self.kind == "quadratic":
            return a.T @ (a @ x - b) / SAMPLES
        return -a.T @ (b / (1 + np.exp(b * (a @ x)))) / SAMPLES + RIDGE * x

    def gradients(self, X):
        return np.stack([self.gradient(i, x) for i, x in enumerate(X)])

    def loss(self, x):
        if self.kind == "quadratic":
            return ((self.a @ x - self.b) ** 2).mean() / 2
        return np.logaddexp(0, -self.b * (self.a @ x)).mean() + RIDGE / 2 * x @ x

    def optimum(self):
        """Of the mean of everyone's losses."""
        if self.kind == "quadratic":
            stacked = self.a.reshape(-1, DIMENSION)
            return np.linalg.lstsq(stacked, self.b.reshape(-1), rcond=None)[0]
        mean = lambda x: self.gradients(np.tile(x, (self.num_devices, 1))).mean(0)  # noqa: E731
        x = minimize(self.loss, np.zeros(DIMENSION), jac=mean, tol=1e-12).x
        for _ in range(20):  # Newton, to the last bits
            share = 1 / (1 + np.exp(self.b * (self.a @ x)))
            curved = np.einsum("ns,nsd,nse->de", share * (1 - share), self.a, self.a)
            x = x - np.linalg.solve(curved / self.b.size + RIDGE * np.eye(DIMENSION), mean(x))
        return x

    def task(self):
        samples = torch.from_numpy(np.concatenate([self.a, self.b[:, :, None]], axis=2))
        flat = samples.reshape(-1, DIMENSION + 1)
        model, loss = (
            (Residuals(), half_squares) if self.kind == "quadratic" else (Margins(), logistic)
        )
        labels = torch.zeros(len(flat), dtype=torch.int64)
        shards = Shards.of(np.arange(len(flat)).reshape(self.num_devices, SAMPLES))
        return Task(model, loss, flat, labels, shards, flat[:2], labels[:2])


def make_problem(kind, num_devices, seed=0):
    """Devices' own optima differ."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(num_devices, SAMPLES, DIMENSION))
    own = rng.normal(size=(num_devices, 1, DIMENSION)) * 2
    b = (a * own).sum(2) + 0.1 * rng.normal(size=(num_devices, SAMPLES))
    return Problem(a, b if kind == "quadratic" else np.sign(b), kind)


def problem_job(problem, rule, spec, steps, rate, method=None, **changes):
    """A job of one cycle of training steps with Metropolis weights, or of a schedule's cycles."""
    network = load_network(spec)
    W = metropolis(network.adjacency)
    everyone = Step(np.full(network.num_devices, True), W)
    found = find_method(f"{method or 'sdfl'}+{rule}")
    schedule, cycle = Periodic(lambda t: everyone, 1), steps
    if method is not None:
        half = network.num_devices // 2
        clusters = (tuple(range(half)), tuple(range(half, network.num_devices)))
        schedule, cycle = found.schedule(ScheduleInputs(network, clusters, tau_a=2, tau_r=1)), 3
    values = {
        "task": problem.task(),
        "network": network,
        "schedule": schedule,
        "rule": found.rule,
        "optimizers": (parse_optimizer("sgd"),) * network.num_devices,
        "cycles": steps // cycle,
        "steps_per_cycle": cycle,
        "learning_rate": rate,
        "batch_size": 0,
        "evaluate_every": 10**9,
    }
    return Job(**(values | changes))
