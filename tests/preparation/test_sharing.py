"""What devices tell of their data, and how well an energy distance is estimated from sketches."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from helpers import tiny_data
from ssdfl.clusters import energy_distance
from ssdfl.learning import load_dataset
from ssdfl.preparation import draw, sample_sharing, shared_devices
from ssdfl.preparation.sharing import DESCRIBED_SAMPLES, SKETCHED, rounded_counts, sketched_samples
from ssdfl.records import load_experiment

TINY = ("data.name=helpers:tiny_data", "network.spec=path:n=3", "data.labels_per_device=2")


def told(*changes):
    experiment = load_experiment(None, [*TINY, *changes])
    _, task, optimizers = draw(experiment, 0, tiny_data())
    return shared_devices(experiment, task, optimizers, 0)


def test_the_papers_facts_are_one_setting():
    literal = told("share.labels=counts", "share.samples=raw")
    assert all(
        device.samples.shape == (DESCRIBED_SAMPLES, tiny_data().train_inputs[0].size)
        for device in literal
    )
    assert all((device.labels > 0).sum() == 2 for device in literal)
    by_default = told()
    for one, other in zip(literal, by_default, strict=True):
        assert np.array_equal(one.labels, other.labels)
        assert np.array_equal(one.samples, other.samples)


def test_nothing_is_told_if_nothing_is_shared():
    for device in told("share.labels=none", "share.samples=none", "share.gradient_sketch=no"):
        assert len(set(device.labels)) == 1
        assert device.samples is None
        assert device.sketch is None


def test_labels_may_be_rounded_and_gradients_sketched():
    counts = told()
    for one, other in zip(
        counts, told("share.labels=rounded", "share.gradient_sketch=yes"), strict=True
    ):
        assert np.array_equal(other.labels, rounded_counts(one.labels))
        assert other.sketch.shape == (32,)
        held = one.labels > 0
        ratio = other.labels[held] / one.labels[held]
        assert np.all((ratio >= 2**-0.5 - 1e-12) & (ratio <= 2**0.5 + 1e-12))


def test_one_device_alone_tells_the_same_as_among_all():
    experiment = load_experiment(None, [*TINY, "share.samples=sketch", "share.gradient_sketch=yes"])
    _, task, optimizers = draw(experiment, 0, tiny_data())
    everyone = shared_devices(experiment, task, optimizers, 0)
    (alone,) = shared_devices(experiment, task, optimizers, 0, [1])
    assert np.array_equal(alone.labels, everyone[1].labels)
    assert np.allclose(alone.samples, everyone[1].samples)
    assert np.allclose(alone.sketch, everyone[1].sketch, rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((), "raw"),
        (("engine.name=mesh",), "none"),
        (("data.train=train.csv",), "none"),
        (("share.samples=sketch", "engine.name=mesh"), "sketch"),
        (("share.samples=raw", "data.train=train.csv"), "raw"),
    ],
)
def test_raw_samples_leave_real_devices_only_if_that_is_wanted(changes, expected):
    assert sample_sharing(load_experiment(None, list(changes))) == expected


def test_distances_are_estimated_without_bias():
    """Over many projections, estimates average to the distance with deviation 1 / √(2 k)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 200))
    estimates = []
    for seed in range(400):
        sketch = sketched_samples(x, seed)
        estimates.append(cdist(sketch[:1], sketch[1:])[0, 0] / sketch.shape[1])
    true = cdist(x[:1], x[1:])[0, 0] / 200
    assert np.mean(estimates) == pytest.approx(true, rel=4 / np.sqrt(2 * SKETCHED * 400))
    assert np.std(estimates) / true == pytest.approx(1 / np.sqrt(2 * SKETCHED), rel=0.15)


def test_a_sketch_of_digits_orders_pairs_of_devices_as_samples_do():
    """Energy distances of digits' classes: from 32 numbers of 64, against those of the samples."""
    data = load_dataset("digits")
    flat = data.train_inputs.reshape(len(data.train_targets), -1).astype(float)
    of_class = [flat[data.train_targets == label][:16] for label in range(10)]
    sketches = [sketched_samples(samples, seed=1) for samples in of_class]
    pairs = [(a, b) for a in range(10) for b in range(a)]
    true = np.array([energy_distance(of_class[a], of_class[b]) / 64 for a, b in pairs])
    found = np.array(
        [energy_distance(sketches[a], sketches[b]) / sketches[0].shape[1] for a, b in pairs]
    )
    assert np.corrcoef(true, found)[0, 1] > 0.85
    assert np.median(np.abs(found - true) / true) < 0.2


def test_a_sketch_has_at_most_half_of_a_samples_numbers():
    for features, expected in [(1, 1), (2, 1), (5, 2), (64, 32), (784, 32)]:
        assert sketched_samples(np.ones((3, features)), 0).shape == (3, expected)
