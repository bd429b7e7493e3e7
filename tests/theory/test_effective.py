"""The SSD-FL update is gradient descent on the effective loss: both computed and compared."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from helpers import TOPOLOGY_SPECS, tiny_job
from ssdfl.engine import initial_state
from ssdfl.engine.reference import ReferenceEngine
from ssdfl.graph import load_network, metropolis
from ssdfl.theory import RegimeState, effective_gradient, effective_loss, regulariser

OPTIMIZERS = ("sgd", "momentum", "proximal", "mixed")


def full_gradients(task, X):
    """(N, d) gradients and (N,) losses on whole shards, in 64 bit."""
    gradients, losses = [], []
    for device, theta in enumerate(X):
        inputs, labels = task.batch(task.shards[device])
        leaf = theta.clone().requires_grad_()
        loss = task.loss(task.scores(leaf, inputs), labels)
        gradients.append(torch.autograd.grad(loss, leaf)[0].numpy())
        losses.append(float(loss.detach()))
    return np.stack(gradients), np.array(losses)


def in_64_bit(job):
    task = job.task
    doubled = replace(
        task,
        model=task.model.double(),
        inputs=task.inputs.double(),
        test_inputs=task.test_inputs.double(),
    )
    return replace(job, task=doubled)


@pytest.mark.parametrize("model", ["logreg", "mlp"])
@pytest.mark.parametrize("optimizers", OPTIMIZERS)
@pytest.mark.parametrize("spec", ["barbell:size=3", "er:n=9,p=0.3,seed=2"])
def test_an_engines_step_is_a_step_down_the_effective_gradient(spec, optimizers, model):
    job = in_64_bit(
        tiny_job(spec=spec, optimizers=optimizers, model=model, batch_size=0, local_steps=1)
    )
    engine, state = ReferenceEngine(job), initial_state(job)
    mu = np.array([o.mu for o in job.optimizers])
    rho = np.array([o.rho for o in job.optimizers])
    history = np.zeros(state.X.shape)
    start = state.X.numpy().copy()
    for t in range(2):
        step = job.schedule(t)
        X, memory, *_ = engine.advance(state, step, t)
        G, _ = full_gradients(job.task, state.X)
        here = RegimeState(state.X.numpy(), start, history, mu)
        descent = effective_gradient(here, G, step.W, job.learning_rate)
        assert (state.X - X).numpy() / job.learning_rate == pytest.approx(descent, abs=1e-9)
        history = rho[:, None] * (history + G)
        state = replace(state, X=X, memory=memory, trained=step.train)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("model", ["logreg", "mlp"])
def test_the_effective_gradient_is_the_effective_losss_derivative(model, centred):
    job = in_64_bit(tiny_job(model=model, optimizers="mixed"))
    rng = np.random.default_rng(0)
    shape = job.task.num_devices, job.task.num_parameters
    X, start, history, V = (rng.standard_normal(shape) for _ in range(4))
    mu, W = rng.uniform(0, 1, shape[0]), metropolis(job.network.adjacency)

    def loss(X):
        state = RegimeState(X, start, history, mu)
        return effective_loss(
            state, full_gradients(job.task, torch.from_numpy(X))[1], W, 0.1, centred
        )

    G, _ = full_gradients(job.task, torch.from_numpy(X))
    expected = float((effective_gradient(RegimeState(X, start, history, mu), G, W, 0.1) * V).sum())
    step = 1e-6
    assert (loss(X + step * V) - loss(X - step * V)) / (2 * step) == pytest.approx(
        expected, rel=1e-5
    )


@pytest.mark.parametrize("spec", TOPOLOGY_SPECS)
def test_the_regulariser_is_half_the_weighted_sum_of_squares(spec):
    A = metropolis(load_network(spec).adjacency)
    X = np.random.default_rng(1).standard_normal((A.shape[0], 3))
    dense = A.toarray()
    total = sum(
        dense[i, j] * ((X[i] - X[j]) ** 2).sum() for i in range(len(X)) for j in range(len(X))
    )
    assert regulariser(X, A) == pytest.approx(total / 2)


def test_the_published_momentum_term_depends_on_the_origin():
    state = RegimeState(np.ones((1, 1)), np.zeros((1, 1)), np.full((1, 1), 2.0), np.zeros(1))
    moved = RegimeState(state.X + 10, state.start + 10, state.history, state.mu)
    alone = metropolis(load_network("complete:n=1").adjacency)
    losses = np.zeros(1)
    assert effective_loss(moved, losses, alone, 0.1) != effective_loss(state, losses, alone, 0.1)
    assert effective_loss(moved, losses, alone, 0.1, centred=True) == effective_loss(
        state, losses, alone, 0.1, centred=True
    )
