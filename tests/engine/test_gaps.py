"""What is recorded for the bounds is what the theory's own functions say of the parameters."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from helpers import tiny_job
from ssdfl.engine import initial_state, run
from ssdfl.engine.gaps import GapRecorder, training_losses
from ssdfl.engine.local import LocalEngine
from ssdfl.engine.shares import LocalShares
from ssdfl.theory import consensus_gaps

CLUSTERS = ((0, 1, 2), (3, 4, 5))


def test_gaps_and_gradients_are_those_of_the_parameters():
    job = tiny_job(gap_clusters=CLUSTERS, cycles=2)
    engine, state = LocalEngine(job), initial_state(job)
    records = [record for record, _ in run(job)]
    for record in records:
        before = consensus_gaps(state.X.double().numpy(), CLUSTERS)[0]
        squares = np.zeros(2)
        for t in range((record.cycle - 1) * 3, record.cycle * 3):
            step = job.schedule(t)
            X, memory, *_ = engine.advance(state, step, t)
            if step.train.any():
                moved = ((X - state.X) / job.learning_rate).double().numpy() ** 2
                squares += [moved[list(c)].sum() for c in CLUSTERS]
                trained = X.clone()
            state = replace(state, X=X, memory=memory, trained=step.train)
        inside, across = consensus_gaps(trained.double().numpy(), CLUSTERS)
        assert record.cluster_gaps_before == pytest.approx(before, abs=1e-4)
        assert record.cluster_gaps == pytest.approx(inside, rel=1e-3)
        assert record.training_gap == pytest.approx(across, rel=1e-4)
        assert record.cluster_gradients == pytest.approx(squares, rel=1e-4)
        mean_square = sum(record.cluster_gradients) / (2 * 6)
        assert record.effective_gradient == pytest.approx(math.sqrt(mean_square), rel=1e-5)


def test_recording_changes_nothing_else_and_is_off_by_default():
    plain, recorded = ([r for r, _ in run(tiny_job(gap_clusters=c))] for c in ((), CLUSTERS))
    assert [r.score for r in plain] == [r.score for r in recorded]
    assert plain[0].cluster_gaps == ()
    assert math.isnan(plain[0].training_gap)
    assert GapRecorder(tiny_job(), LocalShares(np.arange(6))).record() == {}


def test_losses_are_of_each_devices_own_samples():
    job = tiny_job(model="mlp")
    X = initial_state(job).X
    losses = training_losses(job, np.arange(job.network.num_devices), samples=10**6)(X, {})
    for device in range(6):
        inputs, labels = job.task.batch(job.task.shards[device])
        with torch.no_grad():
            expected = job.task.loss(job.task.scores(X[device], inputs), labels)
        assert float(losses[device]) == pytest.approx(float(expected), rel=1e-5)
