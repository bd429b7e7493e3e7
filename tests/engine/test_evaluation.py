import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from helpers import tiny_job, tiny_task
from ssdfl.engine import evaluation, make_engine
from ssdfl.engine.evaluation import AGREEMENT, agreeing


def small_cnn(image_shape, num_classes):
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(48, num_classes)
    )


@pytest.mark.parametrize("model", ["logreg", "mlp", f"{__name__}:small_cnn"])
def test_every_device_is_tested_as_the_reference_does(model, monkeypatch):
    monkeypatch.setattr(evaluation, "_DEVICES_AT_ONCE", 4)
    monkeypatch.setattr(evaluation, "_NUMBERS_IN_CACHE", 2000)
    monkeypatch.setattr(evaluation, "_LOOPED_STRETCH", 7)
    job = tiny_job(task=tiny_task(6, model))
    X = job.task.initial_parameters + 0.1 * torch.randn(6, job.task.num_parameters)
    X[4] = X[1]
    expected, found = (make_engine(name, job).evaluate(X) for name in ("reference", "local"))
    assert torch.allclose(found[0], expected[0], rtol=1e-5)
    assert torch.equal(found[1].float(), expected[1])


def test_devices_that_agree_are_tested_once(monkeypatch):
    job = tiny_job(model="mlp")
    engine = make_engine("local", job)
    tested = []
    plain = engine.evaluate._tests[0]
    monkeypatch.setattr(
        engine.evaluate,
        "_tests",
        [lambda home, Θ, *rest: tested.append(len(Θ)) or plain(home, Θ, *rest)],
    )
    X = job.task.initial_parameters.repeat(6, 1)
    X[2] += 0.1
    loss, scores = engine.evaluate(X)
    assert set(tested) == {2}
    assert loss[0] == loss[5] != loss[2]
    assert scores.shape == (6, 1)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.integers(0, 100))
@settings(max_examples=80, deadline=None)
def test_rows_agree_exactly_if_they_are_near(kinds, seed):
    rng = np.random.default_rng(seed)
    distinct = rng.standard_normal((5, 30))
    noise = rng.uniform(-1, 1, (len(kinds), 30)) * 0.4 * AGREEMENT * np.abs(distinct[kinds]).max()
    X = torch.from_numpy(distinct[kinds] + noise)
    first = agreeing(X)
    for i in range(len(kinds)):
        for j in range(len(kinds)):
            assert (first[i] == first[j]) == (kinds[i] == kinds[j])


@pytest.mark.parametrize(("apart", "agree"), [(5e-7, True), (2e-6, False)])
def test_rows_agree_within_a_millionth_of_the_largest_entry(apart, agree):
    """A fixed number, since devices that are wrongly said to agree get each other's accuracy."""
    X = torch.ones(3, 8, dtype=torch.float64)
    X[1, 3] += apart
    for rows in (X, -100 * X):
        first = agreeing(rows)
        assert first[0] == first[2]
        assert (first[0] == first[1]) == agree


def test_rows_in_a_chain_agree_with_the_first_only_as_far_as_it_is_near():
    """Each row agrees with the one before, but not with the first of all for long."""
    step = 0.4 * AGREEMENT
    X = torch.ones(9, 50, dtype=torch.float64) + step * torch.arange(9)[:, None]
    X[:, ::7] = 1.0
    assert agreeing(X).tolist() == [0, 0, 0, 3, 3, 3, 6, 6, 6]
