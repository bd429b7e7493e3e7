import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from helpers import tiny_task
from ssdfl.clusters.heterogeneity import data_divergence, drift_directions
from ssdfl.errors import InputError
from ssdfl.learning import Shards, Task, describe_devices, measure_constants, paper_optimizer
from ssdfl.learning.measured import sketch_gradients


def quadratic_task(curvatures):
    """A task whose loss is ½ Σ_k c_k θ_k² on every sample, so that everything is known."""

    class Parameters(nn.Module):
        def __init__(self):
            super().__init__()
            self.theta = nn.Parameter(torch.arange(1.0, len(curvatures) + 1))

        def forward(self, inputs):
            return (0.5 * inputs * self.theta**2).sum(dim=1)

    inputs = torch.tensor(curvatures).repeat(4, 1)
    labels = torch.zeros(4, dtype=torch.int64)
    shards = Shards.of([[0, 1], [2, 3]])
    return Task(
        Parameters(), lambda scores, _: scores.mean(), inputs, labels, shards, inputs, labels
    )


def test_known_constants_of_a_quadratic():
    measured = measure_constants(quadratic_task([1.0, 4.0, -2.0]), batch_size=2, iterations=60)
    assert measured.smoothness == pytest.approx([4.0, 4.0], rel=1e-5)
    assert measured.gradient_bound == pytest.approx(math.sqrt(1 + 8**2 + 6**2))
    assert measured.initial_loss == pytest.approx(0.5 * (1 + 4 * 4 - 2 * 9))


def test_curvature_of_a_model_is_its_hessians():
    task = tiny_task(num_devices=2)
    θ = task.initial_parameters
    inputs, labels = task.batch(task.shards[1])
    hessian = torch.autograd.functional.hessian(
        lambda t: task.loss(task.scores(t, inputs), labels), θ
    )
    expected = float(torch.linalg.eigvalsh(hessian).abs().max())
    measured = measure_constants(task, devices=[1], iterations=300)
    assert measured.smoothness[0] == pytest.approx(expected, rel=1e-3)
    assert measured.devices == (1,)


def test_measuring_is_repeatable_and_leaves_the_task_alone():
    task = tiny_task(num_devices=3)
    before = task.initial_parameters.clone()
    first, second = (measure_constants(task, seed=5, batch_size=0) for _ in range(2))
    assert (first.gradient_bound, first.initial_loss) == (
        second.gradient_bound,
        second.initial_loss,
    )
    assert (first.smoothness == second.smoothness).all()
    assert torch.equal(task.initial_parameters, before)


def test_bad_arguments():
    with pytest.raises(InputError, match="batches = 0"):
        measure_constants(tiny_task(num_devices=2), batches=0)


def test_devices_describe_what_they_hold():
    task = tiny_task(num_devices=2)
    a, b = describe_devices(task, [paper_optimizer(rho=0.5), paper_optimizer(mu=0.1)], samples=3)
    held = task.targets[task.shards[0]].numpy()
    assert a.labels.tolist() == [(held == label).sum() for label in range(len(a.labels))]
    assert (a.kind, b.kind) == ("momentum", "proximal")
    assert a.samples.shape == (3, task.inputs[0].numel())
    assert describe_devices(task, [paper_optimizer()] * 2)[0].samples is None


def test_described_samples_are_drawn_from_the_whole_shard():
    task = tiny_task(num_devices=2)
    ordered = Shards.of([shard[task.targets[shard].argsort()] for shard in task.shards])
    sorted_task = replace(task, shards=ordered)
    few = describe_devices(sorted_task, [paper_optimizer()] * 2, samples=24)[0].samples
    whole = sorted_task.inputs[ordered[0]].flatten(1).double().numpy()
    labels = [
        int(sorted_task.targets[ordered[0]][(whole == row).all(axis=1).argmax()]) for row in few
    ]
    assert len(set(labels)) > 1


def test_a_sketch_is_a_devices_own_and_keeps_lengths():
    task = tiny_task(num_devices=4, model="mlp")
    everyone, alone = sketch_gradients(task, range(4), seed=3), sketch_gradients(task, [2], seed=3)
    assert np.allclose(everyone.rows[2], alone.rows[0])
    assert everyone.scales[2] == pytest.approx(alone.scales[0])
    assert not np.allclose(sketch_gradients(task, [2], seed=4).rows, alone.rows)
    lengths = []
    for seed in range(30):
        found = sketch_gradients(
            replace(task, shards=Shards.of([task.shards[0]])), [0], seed, samples=10**6
        )
        lengths.append(np.linalg.norm(found.rows[0]) ** 2)
    inputs, labels = task.batch(task.shards[0])
    leaf = task.initial_parameters.clone().requires_grad_()
    (g,) = torch.autograd.grad(task.loss(task.scores(leaf, inputs), labels), leaf)
    assert np.mean(lengths) == pytest.approx(float(g.square().sum()), rel=0.2)


def test_sketches_tell_devices_apart_as_labels_do():
    task = tiny_task(num_devices=4)
    by_label = [torch.nonzero(task.targets == label).flatten() for label in range(4)]
    skewed = replace(task, shards=Shards.of(by_label))
    even = replace(
        task, shards=Shards.of([torch.cat([part[k::4] for part in by_label]) for k in range(4)])
    )
    optimizers = [paper_optimizer()] * 4

    def drift(one, sketch):
        return float(
            np.square(drift_directions(describe_devices(one, optimizers, sketch=sketch))).sum()
        )

    assert drift(skewed, True) == pytest.approx(drift(skewed, False), rel=0.2)
    assert drift(even, True) < 0.1 * drift(skewed, True)
    described = describe_devices(skewed, optimizers, sketch=True)
    same = data_divergence(described[0], described[0])
    assert same == 0 < data_divergence(described[0], described[1]) <= 1


def test_devices_without_classes_are_described_by_sketches():
    task = replace(tiny_task(num_devices=2), num_classes=0)
    assert all(
        device.sketch is not None for device in describe_devices(task, [paper_optimizer()] * 2)
    )
    known = describe_devices(tiny_task(num_devices=2), [paper_optimizer()] * 2)
    assert all(device.sketch is None for device in known)
