"""Partitions by size, by a column, by files, and of one's own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdfl.errors import InputError
from ssdfl.learning import Dealing, by_column, by_size, deal, load_dataset
from ssdfl.learning.dealing import fitting_partition
from ssdfl.records.sections import DataSection


def dealing(name="housing", num_devices=5, **config):
    names = [f"d{k}" for k in range(num_devices)]
    return Dealing(
        load_dataset(name), names, DataSection(name=name, **config), np.random.default_rng(0)
    )


@given(st.integers(1, 30), st.floats(0, 3), st.integers(30, 400))
@settings(max_examples=60, deadline=None)
def test_sizes_follow_the_power_law_and_use_every_sample_once(num_devices, exponent, count):
    shards = by_size(count, num_devices, exponent, np.random.default_rng(0))
    assert np.array_equal(np.sort(np.concatenate(shards)), np.arange(count))
    sizes = np.sort([len(shard) for shard in shards])[::-1]
    weights = np.arange(1, num_devices + 1) ** -exponent
    expected = 1 + weights / weights.sum() * (count - num_devices)
    assert np.abs(sizes - expected).max() <= 1.5


def test_twenty_to_two_thousand_samples():
    data = np.zeros(8000)
    sizes = [len(shard) for shard in by_size(len(data), 20, 1.55, np.random.default_rng(1))]
    assert min(sizes) < 45
    assert max(sizes) > 2000


def test_a_column_keeps_its_values_together():
    values = np.random.default_rng(0).choice(["x", "y", "z", "w"], 100)
    shards = by_column(values, ["a", "b"])
    assert np.array_equal(np.sort(np.concatenate(shards)), np.arange(100))
    held = [set(values[shard]) for shard in shards]
    assert not held[0] & held[1]
    named = by_column(values, ["z", "w", "y", "x"])
    assert [set(values[shard]) for shard in named] == [{"z"}, {"w"}, {"y"}, {"x"}]
    with pytest.raises(InputError, match="values to deal by = 4: expected at least 5"):
        by_column(values, list("abcde"))


def test_auto_goes_by_what_the_data_have():
    assert fitting_partition(load_dataset("digits"), DataSection()) == "labels"
    assert fitting_partition(load_dataset("diabetes"), DataSection()) == "iid"
    assert fitting_partition(load_dataset("housing"), DataSection(column="region")) == "column"
    regions = dealing(num_devices=20, partition="column")
    shards = deal(regions)
    assert all(len(set(regions.data.columns["region"][shard])) == 1 for shard in shards)


def test_numbers_are_dealt_by_tenths():
    one = dealing(partition="labels", labels_per_device=2)
    spans = [np.ptp(one.data.train_targets[shard]) for shard in deal(one)]
    targets = one.data.train_targets
    tenths = [
        set(one.labels[shard]) for shard in deal(dealing(partition="labels", labels_per_device=2))
    ]
    assert all(len(held) == 2 for held in tenths)
    assert len(spans) == 5
    order = np.argsort(targets)
    assert (np.diff(one.labels[order]) >= 0).all()


def test_what_does_not_fit_is_refused():
    with pytest.raises(
        InputError, match=r"data.partition = labels: expected one that needs no class"
    ):
        deal(dealing("logbooks", partition="labels"))
    with pytest.raises(
        InputError, match=r"data.column = nowhere: expected a column to deal by \(region\)"
    ):
        deal(dealing(partition="column", column="nowhere"))
    with pytest.raises(
        InputError, match=r"data.column = file: expected a column to deal by \(region\)"
    ):
        deal(dealing(partition="files"))


def thirds(data, num_devices, rng):
    return np.array_split(rng.permutation(len(data.train_targets) // 3), num_devices)


def too_far(data, num_devices, rng):
    return [[len(data.train_targets)]] * num_devices


def too_few(data, num_devices, rng):
    return [[1]]


def test_a_partition_of_ones_own():
    one = dealing(partition=f"{__name__}:thirds")
    assert sum(map(len, deal(one))) == len(one.data.train_targets) // 3
    with pytest.raises(InputError, match="samples from 0 to"):
        deal(dealing(partition=f"{__name__}:too_far"))
    with pytest.raises(InputError, match="at least one sample for each of 5 devices"):
        deal(dealing(partition=f"{__name__}:too_few"))
