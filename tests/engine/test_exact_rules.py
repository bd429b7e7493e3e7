"""Where rules end: `gt`, `ed` and `extra` at the optimum, `cta` and `atc` at their bias."""

import dataclasses

import numpy as np
import pytest
import torch

from problems import DIMENSION, SAMPLES, make_problem, problem_job
from ssdfl.engine import run
from ssdfl.engine.state import initial_state
from ssdfl.methods import drop_devices, drop_links

N, GRAPH = 6, "ring:n=6"
RATES = {"quadratic": 0.2, "logistic": 0.3}
EXACT = ("gt", "ed", "extra")


def final(job):
    *_, (_, state) = run(job)
    return state.X.numpy()


@pytest.mark.parametrize("method", [None, "ssdfl"], ids=["one matrix", "clusters"])
@pytest.mark.parametrize("kind", RATES)
@pytest.mark.parametrize("rule", EXACT)
def test_exact_rules_reach_the_optimum(rule, kind, method):
    """With clusters, two local steps and steps that only mix: the two matrices take turns."""
    problem = make_problem(kind, N)
    local_steps = 2 if method else 1
    rate = RATES[kind] / local_steps
    job = problem_job(problem, rule, GRAPH, 360, rate, method, local_steps=local_steps)
    assert np.abs(final(job) - problem.optimum()).max() < 1e-10


@pytest.mark.parametrize("rule", ["cta", "atc"])
def test_plain_rules_stop_at_their_bias(rule):
    """The fixed points of x = W x − η (H x − h) and x = W (x − η (H x − h))."""
    problem, rate = make_problem("quadratic", N), RATES["quadratic"]
    job = problem_job(problem, rule, GRAPH, 450, rate)
    W = np.kron(job.step(0).W.toarray(), np.eye(DIMENSION))
    H, identity = np.zeros_like(W), np.eye(len(W))
    for i, a in enumerate(problem.a):
        block = slice(i * DIMENSION, (i + 1) * DIMENSION)
        H[block, block] = a.T @ a / SAMPLES
    h = np.einsum("nsd,ns->nd", problem.a, problem.b).ravel() / SAMPLES
    step = identity - rate * H
    fixed = {
        "cta": np.linalg.solve(identity - W + rate * H, rate * h),
        "atc": np.linalg.solve(identity - W @ step, rate * W @ h),
    }[rule].reshape(N, DIMENSION)
    assert np.abs(final(job) - fixed).max() < 1e-10
    assert np.abs(fixed - problem.optimum()).max() > 0.1


def faulty(job, fault):
    return dataclasses.replace(job, schedule=fault(job.schedule, 0.3, seed=1))


@pytest.mark.parametrize("fault", [drop_links, drop_devices])
@pytest.mark.parametrize("rule", EXACT)
def test_what_exact_rules_keep_adds_up_whatever_fails(rule, fault):
    """Σ ȳ = Σ g for the tracker and Σ c = 0 for corrections, every cycle, clusters and faults."""
    job = problem_job(make_problem("quadratic", N), rule, GRAPH, 30, 0.1, "ssdfl", local_steps=2)
    for _, state in run(faulty(job, fault)):
        kept = {name.removeprefix("rule."): rows.sum(0) for name, rows in state.memory.items()}
        assert all(rows.abs().max() > 1e-3 for rows in state.memory.values())
        if rule == "gt":
            assert torch.allclose(kept["tracker"], kept["gradient"], atol=1e-12)
        else:
            assert kept["correction"].abs().max() < 1e-12


def test_a_tracker_is_mixed_but_not_renewed_where_nobody_trains():
    """In the mixing-only step of a cycle, ȳ ← A ȳ, and the gradient stays what it was."""
    problem = make_problem("quadratic", N)
    job = problem_job(problem, "gt", GRAPH, 3, 0.1, "ssdfl")
    two = dataclasses.replace(job, cycles=1, steps_per_cycle=2)
    (_, before), (_, after) = next(run(two)), next(run(job))
    A = torch.from_numpy(job.step(2).W.toarray())
    assert torch.allclose(
        after.memory["rule.tracker"], A @ before.memory["rule.tracker"], atol=1e-14
    )
    assert torch.equal(after.memory["rule.gradient"], before.memory["rule.gradient"])


def test_momentum_of_steps_that_only_mix_is_that_of_one_step_with_both_matrices():
    """`qgm`: training steps by Ã and then A leave the momentum of one step by A Ã."""
    problem, beta, rate = make_problem("quadratic", N), 0.9, 0.1
    job = problem_job(problem, "qgm", GRAPH, 3, rate, "ssdfl")
    swapped = dataclasses.replace(
        job, schedule=lambda t: job.schedule(t + 1), steps_per_cycle=2, cycles=1
    )
    _, state = next(run(swapped))
    start = initial_state(job).X.numpy()
    product = job.step(2).W.toarray() @ job.step(1).W.toarray()
    X = product @ (start - rate * problem.gradients(start))
    assert state.X.numpy() == pytest.approx(X, abs=1e-13)
    momentum = state.memory["rule.pull"].numpy() / beta
    assert momentum == pytest.approx((1 - beta) * (start - X) / rate, abs=1e-12)
