"""Rules and optimizers: against loops written anew in NumPy, and a user's own in every engine."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
import torch

from helpers import OWN_RULES, in_double, tiny_job, tiny_task
from ssdfl.engine import load_state, run, save_state
from ssdfl.engine.state import initial_state
from ssdfl.errors import InputError
from ssdfl.learning import find_rate, parse_optimizer
from ssdfl.methods import Periodic, Step, find_method

STEPS = 3
ENGINES = ("reference", "local", "distributed")


def logistic_gradient(theta, images, labels):
    """Of the mean cross-entropy of a linear layer: (classes, features) weights, then biases."""
    features = images.reshape(len(images), -1)
    classes = len(theta) // (features.shape[1] + 1)
    weights, biases = theta[: classes * features.shape[1]].reshape(classes, -1), theta[-classes:]
    scores = features @ weights.T + biases
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    shares[np.arange(len(labels)), labels] -= 1
    return np.concatenate([(shares.T @ features).ravel(), shares.sum(axis=0)]) / len(labels)


def adam_in_numpy(gradients, theta, rate, steps, state):
    m, v, k = state
    for _ in range(steps):
        g = gradients(theta)
        k += 1
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        theta = theta - rate * (m / (1 - 0.9**k)) / (np.sqrt(v / (1 - 0.999**k)) + 1e-8)
    return theta, (m, v, k)


def sgd_in_numpy(gradients, theta, rate, steps, state):
    for _ in range(steps):
        theta = theta - rate * gradients(theta)
    return theta, state


def simulated(job, local_training, atc, local_steps):
    """All steps of a job with full batches, in NumPy: device by device."""
    images, labels = job.task.inputs.numpy(), job.task.targets.numpy()
    shards = [shard.numpy() for shard in job.task.shards]
    X = np.tile(job.task.initial_parameters.numpy(), (len(shards), 1))
    states = [None] * len(shards)
    for t in range(job.cycles * job.steps_per_cycle):
        step = job.schedule(t)
        W = step.W.toarray()
        trained = X.copy()
        for i, shard in enumerate(shards):
            if not step.train[i]:
                states[i] = None
                continue
            state = states[i] or (np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0)
            trained[i], states[i] = local_training(
                lambda theta, shard=shard: logistic_gradient(theta, images[shard], labels[shard]),
                X[i],
                job.learning_rate,
                local_steps,
                state,
            )
        X = W @ trained if atc else W @ X + (trained - X)
    return X


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("local_steps", [1, 3])
@pytest.mark.parametrize("rule", ["cta", "atc"])
@pytest.mark.parametrize(
    ("optimizer", "training"), [("sgd", sgd_in_numpy), ("adam", adam_in_numpy)]
)
def test_rules_and_optimizers_agree_with_numpy(rule, optimizer, training, local_steps, engine):
    job = tiny_job(
        f"ssdfl+{rule}",
        task=in_double(tiny_task(6)),
        optimizers=optimizer,
        batch_size=0,
        local_steps=local_steps,
        cycles=4,
    )
    *_, (_, state) = run(job, engine)
    expected = simulated(job, training, rule == "atc", local_steps)
    assert np.abs(state.X.numpy() - expected).max() < 1e-10


def test_momentum_and_pull_together_agree_with_numpy():
    """`eq:eff_sgd_ovr` with both ρ and μ above 0."""
    rho, mu = 0.8, 0.05
    task = in_double(tiny_task(6))
    optimizers = (parse_optimizer(f"effective:rho={rho},mu={mu}"),) * 6
    job = tiny_job("ssdfl", task=task, optimizers="sgd", batch_size=0, cycles=3)
    job = dataclasses.replace(job, optimizers=optimizers)

    def training(gradients, theta, rate, steps, state):
        velocity, anchor, begun = state
        anchor = anchor if begun else theta
        for _ in range(steps):
            velocity = gradients(theta) + rho * velocity
            theta = theta - rate * (velocity + mu * (theta - anchor))
        return theta, (velocity, anchor, 1)

    *_, (_, state) = run(job)
    assert np.abs(state.X.numpy() - simulated(job, training, False, 1)).max() < 1e-10


def test_messages_of_a_late_rule_leave_after_training():
    """Alone on a link, `cta` hides the message behind computing, and `atc` adds it."""
    times = {}
    for rule in ("cta", "atc"):
        job = tiny_job(f"sdfl+{rule}", "path:n=2", clusters=1, cycles=1, steps_per_cycle=1)
        times[rule] = next(run(job))[0].time_s
    compute_s, message_s = 0.01, float(job.network.message_time_s(job.message_bytes)[0])
    assert times["cta"] == pytest.approx(max(compute_s, message_s))
    assert times["atc"] == pytest.approx(compute_s + message_s)


@pytest.mark.parametrize("engine", ["local", "distributed"])
@pytest.mark.parametrize("rule", OWN_RULES)
@pytest.mark.parametrize("method", ["ssdfl", "central"])
def test_a_rule_of_ones_own_runs_in_every_engine(method, rule, engine):
    job = tiny_job(f"{method}+helpers:{rule}", task=in_double(tiny_task(6)), local_steps=2)
    for (record, state), (expected, right) in zip(
        run(job, engine), run(job, "reference"), strict=True
    ):
        assert torch.allclose(state.X, right.X, atol=1e-10)
        assert record.effective_gradient == pytest.approx(expected.effective_gradient, rel=1e-6)
        for name, rows in right.memory.items():
            if name.startswith("rule."):
                assert torch.allclose(state.memory[name], rows, atol=1e-10), name


@pytest.mark.parametrize("rule", OWN_RULES)
def test_what_rules_keep_is_saved_and_resumed(rule, tmp_path):
    job = tiny_job(f"ssdfl+helpers:{rule}", cycles=4)
    whole = list(run(job))
    save_state(whole[1][1], job, tmp_path / "state")
    rest = list(run(job, state=load_state(tmp_path / "state", job)))
    assert [record for record, _ in rest] == [record for record, _ in whole[2:]]
    assert torch.equal(rest[-1][1].X, whole[-1][1].X)


def test_a_checkpoint_of_another_rule_is_refused(tmp_path):
    job = tiny_job("ssdfl")
    *_, (_, state) = run(job)
    save_state(state, job, tmp_path / "state")
    other = dataclasses.replace(job, rule=find_method("ssdfl+helpers:HeavyBall").rule)
    with pytest.raises(InputError, match=r"expected rule.before, which this rule"):
        load_state(tmp_path / "state", other)


def test_a_message_is_as_large_as_what_the_rule_sends():
    job = tiny_job("ssdfl")
    wide = dataclasses.replace(job, rule=find_method("ssdfl+helpers:Doubled").rule)
    in_64_bit = dataclasses.replace(job, task=in_double(job.task))
    assert job.message_bytes == 4 * job.task.num_parameters
    assert wide.message_bytes == in_64_bit.message_bytes == 2 * job.message_bytes
    record, _ = next(run(wide))
    assert record.sent_bytes == record.transmissions * wide.message_bytes


@pytest.mark.parametrize("engine", ENGINES)
def test_an_optimizer_of_ones_own_and_rates_of_ones_own(engine):
    job = tiny_job("pdfl", "path:n=2", clusters=1, optimizers="sgd", cycles=1, steps_per_cycle=1)
    own = tuple(
        map(parse_optimizer, ("helpers:sign_descent:limit=2", "helpers:sign_descent:rate=0.4"))
    )
    job = dataclasses.replace(job, optimizers=own)
    _, state = next(run(job, engine))
    moved = (state.X - initial_state(job).X).abs()
    assert torch.allclose(moved[0], torch.full_like(moved[0], 2 * job.learning_rate), atol=1e-6)
    assert torch.allclose(moved[1], torch.full_like(moved[1], 0.4), atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_learning_rate_follows_its_schedule(engine):
    """With signs for gradients, parameters move by η of the cycle exactly."""
    own = (parse_optimizer("helpers:sign_descent"),) * 2
    job = tiny_job("pdfl", "path:n=2", clusters=1, optimizers="sgd", cycles=3, steps_per_cycle=1)
    factor, trains = find_rate("step:every=1,factor=0.5", 3), job.schedule(0)
    job = dataclasses.replace(job, optimizers=own, rate_factor=factor, schedule=lambda t: trains)
    states = [initial_state(job), *(state for _, state in run(job, engine))]
    moved = [float((b.X - a.X).abs().max()) for a, b in pairwise(states)]
    assert moved == pytest.approx([0.1, 0.05, 0.025], rel=1e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_momenta_are_kept_across_regimes_if_asked_for(engine):
    job = tiny_job("pdfl", optimizers="momentum", cycles=3)
    kept = dataclasses.replace(job, reset="never")
    first, later = (list(run(one, engine)) for one in (job, kept))
    assert torch.allclose(first[0][1].X, later[0][1].X)
    assert not torch.allclose(first[1][1].X, later[1][1].X, atol=1e-4)
    right = list(run(kept, "reference"))
    assert torch.allclose(later[-1][1].X, right[-1][1].X, atol=2e-5)
    resumed = list(run(kept, engine, later[0][1]))
    assert [record for record, _ in resumed] == [record for record, _ in later[1:]]


def test_a_kept_momentum_is_saved_between_regimes(tmp_path):
    job = dataclasses.replace(tiny_job("pdfl", optimizers="momentum", cycles=3), reset="never")
    whole = list(run(job))
    save_state(whole[0][1], job, tmp_path / "state")
    rest = list(run(job, state=load_state(tmp_path / "state", job)))
    assert [record for record, _ in rest] == [record for record, _ in whole[1:]]


@pytest.mark.parametrize("period", [5, 8])
def test_a_periodic_schedule_is_built_once(period, monkeypatch):
    """Whatever a schedule makes anew at every call, a period lets engine and clock keep."""
    from ssdfl.engine import exchange
    from ssdfl.graph import Clock

    built, timed = [], []
    real = exchange.Mixing
    monkeypatch.setattr(exchange, "Mixing", lambda W, *rest: built.append(W) or real(W, *rest))
    messages = Clock._messages
    monkeypatch.setattr(Clock, "_messages", lambda self, W: timed.append(W) or messages(self, W))
    job = tiny_job("sdfl", cycles=2 * period)

    def anew(t):
        step = job.schedule(t)
        return Step(step.train, step.W.copy())

    for _ in run(dataclasses.replace(job, schedule=Periodic(anew, period))):
        pass
    assert len(built) == len(timed) == period


@pytest.mark.parametrize("engine", ENGINES)
def test_momenta_may_start_anew_at_every_step_while_anchors_stay(engine):
    """With one local step, momentum that starts anew at every step is plain SGD; a pull is not."""
    rho, mu = 0.8, 0.05
    base = tiny_job("ssdfl", task=in_double(tiny_task(6)), optimizers="sgd", cycles=2)
    anew = dataclasses.replace(
        base, optimizers=(parse_optimizer(f"momentum:{rho}"),) * 6, reset="step"
    )
    pulled = dataclasses.replace(base, optimizers=(parse_optimizer(f"proximal:{mu}"),) * 6)
    both = dataclasses.replace(
        base, optimizers=(parse_optimizer(f"effective:rho={rho},mu={mu}"),) * 6, reset="step"
    )
    X = [list(run(job, engine))[-1][1].X for job in (base, anew, pulled, both)]
    assert torch.allclose(X[0], X[1], atol=1e-12)
    assert torch.allclose(X[2], X[3], atol=1e-12)
    assert not torch.allclose(X[0], X[2], atol=1e-6)
