"""SSD-FL's two ends against sDFL and pDFL in NumPy: softmax regression by hand, 64 bits."""

import dataclasses

import numpy as np
import pytest

from helpers import tiny_job
from ssdfl.engine import run
from ssdfl.learning import draw_batches, paper_optimizer

CYCLES, TAU_A, TAU_R, RATE, BATCH, SEED = 4, 2, 1, 0.1, 8, 7


class Softmax:
    """Everyone's data and gradients, from the task's arrays alone."""

    def __init__(self, job):
        task = job.task
        self.x = task.inputs.numpy().reshape(len(task.inputs), -1).astype(float)
        self.y = task.targets.numpy()
        self.shards = [shard.numpy() for shard in task.shards]
        self.rho = [optimizer.rho for optimizer in job.optimizers]
        self.mu = [optimizer.mu for optimizer in job.optimizers]
        start = task.initial_parameters.numpy().astype(float)
        classes, features = 4, self.x.shape[1]
        self.start = (
            start[: classes * features].reshape(classes, features),
            start[classes * features :],
        )

    def gradient(self, weights, bias, device, t):
        rows = self.shards[device][
            draw_batches(SEED, t, range(device, device + 1), (1, BATCH), len(self.shards[device]))[
                0, 0
            ]
        ]
        x, y = self.x[rows], self.y[rows]
        scores = x @ weights.T + bias
        chances = np.exp(scores - scores.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        chances[np.arange(len(y)), y] -= 1
        return chances.T @ x / len(y), chances.mean(0)


def metropolis_by_hand(job):
    n = job.network.num_devices
    neighbours = [set() for _ in range(n)]
    for i, j in job.network.links.tolist():
        neighbours[i].add(j)
        neighbours[j].add(i)
    A = np.zeros((n, n))
    for i in range(n):
        for j in neighbours[i]:
            A[i, j] = 1 / (1 + max(len(neighbours[i]), len(neighbours[j])))
        A[i, i] = 1 - A[i].sum()
    return A


def train(job, mix_while_training):
    """Plain decentralized SGD: synchronous if it mixes while training, periodic if not."""
    problem, A = Softmax(job), metropolis_by_hand(job)
    n = job.network.num_devices
    w = np.stack([problem.start[0]] * n)
    b = np.stack([problem.start[1]] * n)
    t = 0
    for _ in range(CYCLES):
        anchor_w, anchor_b = w.copy(), b.copy()
        history = [[] for _ in range(n)]
        for _ in range(TAU_A):
            new_w = np.einsum("ij,jab->iab", A, w) if mix_while_training else w.copy()
            new_b = A @ b if mix_while_training else b.copy()
            for i in range(n):
                history[i].append(problem.gradient(w[i], b[i], i, t))
                for age, (gw, gb) in enumerate(reversed(history[i])):
                    if age == 0 or problem.rho[i]:
                        new_w[i] -= RATE * problem.rho[i] ** age * gw
                        new_b[i] -= RATE * problem.rho[i] ** age * gb
                new_w[i] -= RATE * problem.mu[i] * (w[i] - anchor_w[i])
                new_b[i] -= RATE * problem.mu[i] * (b[i] - anchor_b[i])
            w, b = new_w, new_b
            t += 1
        for _ in range(TAU_R):
            w, b = np.einsum("ij,jab->iab", A, w), A @ b
            t += 1
    return np.concatenate([w.reshape(n, -1), b], axis=1)


@pytest.mark.parametrize("engine", ["local", "reference", "distributed"])
@pytest.mark.parametrize("spec", ["barbell:size=3", "er:n=8,p=0.3,seed=2"])
@pytest.mark.parametrize("optimizers", ["sgd", "mixed"])
@pytest.mark.parametrize("end", ["one cluster", "every device its own"])
def test_ends_of_ssdfl_are_sdfl_and_pdfl(end, optimizers, spec, engine):
    devices = 6 if spec.startswith("barbell") else 8
    job = tiny_job(
        "ssdfl", spec, optimizers, clusters=1 if end == "one cluster" else devices, cycles=CYCLES
    )
    kinds = {o.kind.name for o in job.optimizers}
    assert kinds >= ({"sgd"} if optimizers == "sgd" else {"momentum", "proximal"})
    strong = tuple(paper_optimizer(mu=0.5) if o.mu else o for o in job.optimizers)
    job = dataclasses.replace(job, optimizers=strong)
    expected = train(job, mix_while_training=end == "one cluster")
    *_, (_, state) = run(job, engine)
    assert state.X.numpy() == pytest.approx(expected, abs=1e-5)
