import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdfl.errors import InputError
from ssdfl.learning import by_labels, by_shared_labels, dirichlet, iid, load_dataset
from ssdfl.learning.dealing import Dealing, deal
from ssdfl.records.sections import DataSection

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 60))


def partitions(num_devices, seed=0):
    yield by_labels(LABELS, num_devices, 3, np.random.default_rng(seed))
    yield by_labels(LABELS, num_devices, 1, np.random.default_rng(seed))
    yield dirichlet(LABELS, num_devices, 0.1, np.random.default_rng(seed))
    yield iid(LABELS, num_devices, np.random.default_rng(seed))


@given(st.integers(1, 60), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_equal_sizes_and_no_sample_twice(num_devices, seed):
    for shards, again in zip(
        partitions(num_devices, seed), partitions(num_devices, seed), strict=True
    ):
        assert shards.shape[0] == num_devices
        assert len(np.unique(shards)) == shards.size
        assert 0 <= shards.min() <= shards.max() < len(LABELS)
        assert np.array_equal(shards, again)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_labels_per_device(k):
    shards = by_labels(LABELS, 20, k, np.random.default_rng(1))
    assert all(len(np.unique(LABELS[shard])) == k for shard in shards)
    assert set(LABELS[shards].ravel()) == set(range(10))
    assert shards.size == len(LABELS)  # 20 devices divide ten balanced labels evenly


def test_dirichlet_interpolates_between_one_label_and_all():
    def share_of_commonest(alpha):
        shards = dirichlet(LABELS, 10, alpha, np.random.default_rng(2))
        return np.mean(
            [np.bincount(LABELS[shard], minlength=10).max() / len(shard) for shard in shards]
        )

    assert share_of_commonest(0.01) > 0.6  # not 1: the last devices find their label used up
    assert share_of_commonest(1000) < 0.15


def test_dirichlet_favours_no_device():
    def labels_held(device, seed):
        return len(
            np.unique(LABELS[dirichlet(LABELS, 10, 0.3, np.random.default_rng(seed))[device]])
        )

    first, last = (np.mean([labels_held(device, seed) for seed in range(60)]) for device in (0, 9))
    assert abs(first - last) < 0.8


def test_dirichlet_uses_everything():
    assert dirichlet(LABELS, 7, 0.3, np.random.default_rng(0)).size == 7 * (600 // 7)


@pytest.mark.parametrize("k", [0, 11])
def test_impossible_labels_per_device(k):
    with pytest.raises(InputError, match=f"data.labels_per_device = {k}"):
        by_labels(LABELS, 5, k, np.random.default_rng(0))


def test_more_devices_than_samples():
    for too_many in (
        lambda: by_labels(LABELS, 601, 1, np.random.default_rng(0)),
        lambda: by_shared_labels(LABELS, 601, 10, np.random.default_rng(0)),
        lambda: dirichlet(LABELS, 601, 1.0, np.random.default_rng(0)),
        lambda: iid(LABELS, 601, np.random.default_rng(0)),
    ):
        with pytest.raises(InputError, match="number of devices = 601"):
            too_many()


def test_labels_may_be_dealt_at_random():
    """Evenly, ten devices with one label each have ten labels; drawn at random, some share one."""
    held = {}
    for dealing in ("even", "random"):
        shards = by_labels(LABELS, 10, 1, np.random.default_rng(1), dealing)
        assert all(len(set(LABELS[shard])) == 1 for shard in shards)
        assert len(set(shards.ravel())) == shards.size
        held[dealing] = {int(LABELS[shard[0]]) for shard in shards}
    assert len(held["even"]) == 10
    assert len(held["random"]) < 10


@given(st.integers(1, 40), st.integers(1, 10), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_drawn_labels_are_shared_by_their_devices(num_devices, k, seed):
    """Every sample of a label that somebody drew is dealt, once, in parts that differ by one."""
    shards = by_shared_labels(LABELS, num_devices, k, np.random.default_rng(seed))
    assert len(shards) == num_devices
    assert all(len(np.unique(LABELS[shard])) == k for shard in shards)
    dealt = np.concatenate(shards)
    assert len(np.unique(dealt)) == len(dealt)
    counts = np.array([np.bincount(LABELS[shard], minlength=10) for shard in shards])
    for of_label in counts.T:
        held = of_label[of_label > 0]
        assert not len(held) or (held.sum() == 60 and np.ptp(held) <= 1)


def test_shared_labels_are_an_option():
    config = DataSection(partition="labels", labels_per_device=1, label_dealing="shared")
    data = load_dataset("digits")
    names = tuple(map(str, range(10)))
    shards = deal(Dealing(data, names, config, np.random.default_rng(0)))
    labels = [np.unique(data.train_targets[shard]) for shard in shards]
    assert all(len(own) == 1 for own in labels)
    assert len({len(shard) for shard in shards}) > 1
