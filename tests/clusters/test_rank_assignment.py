"""Shares of devices: everyone once, equal in size, clusters whole, small cuts where known."""

import numpy as np
import pytest

from helpers import TOPOLOGY_SPECS
from ssdfl.clusters import assign_to_ranks, labels_of, spectral_bisection
from ssdfl.errors import InputError
from ssdfl.graph import load_network


def cut(network, ranks):
    i, j = network.links.T
    labels = labels_of(ranks, network.num_devices)
    return int((labels[i] != labels[j]).sum())


@pytest.mark.parametrize("spec", TOPOLOGY_SPECS)
@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_everyone_is_in_one_fair_share(spec, number):
    network = load_network(spec)
    ranks = assign_to_ranks(network.adjacency, number)
    assert sorted(device for devices in ranks for device in devices) == list(
        range(network.num_devices)
    )
    sizes = [len(devices) for devices in ranks]
    assert len(ranks) == number
    assert max(sizes) - min(sizes) <= 2


@pytest.mark.parametrize(
    ("spec", "number", "least"),
    [
        ("ring:n=24", 2, 2),
        ("ring:n=24", 3, 3),
        ("path:n=20", 4, 3),
        ("barbell:size=6", 2, 1),
        ("cliques:cliques=4,size=5", 4, 4),
        ("grid:rows=4,cols=8", 2, 4),
    ],
)
def test_known_least_cuts(spec, number, least):
    network = load_network(spec)
    assert cut(network, assign_to_ranks(network.adjacency, number)) == least


def test_clusters_stay_whole_where_that_is_fair():
    network = load_network("sites:sites=7,size=4,seed=0")
    clusters = spectral_bisection(network, 7)
    ranks = assign_to_ranks(network.adjacency, 3, clusters)
    for cluster in clusters:
        assert any(set(cluster) <= set(devices) for devices in ranks)
    assert max(map(len, ranks)) == 12


def test_too_few_or_too_unequal_clusters_are_cut():
    network = load_network("ring:n=12")
    whole = (tuple(range(12)),)
    assert [len(devices) for devices in assign_to_ranks(network.adjacency, 2, whole)] == [6, 6]
    unequal = (tuple(range(10)), (10, 11))
    assert [len(devices) for devices in assign_to_ranks(network.adjacency, 2, unequal)] == [6, 6]


def test_what_is_used_more_is_cut_less():
    links = load_network("ring:n=8").adjacency.tolil()
    for a, b in ((1, 2), (5, 6)):
        links[a, b] = links[b, a] = 0.1
    assert assign_to_ranks(links.tocsr(), 2) == ((0, 1, 6, 7), (2, 3, 4, 5))


def test_many_devices_take_seconds():
    network = load_network("ring:n=5000")
    assert cut(network, assign_to_ranks(network.adjacency, 8)) == 8
    hubs = load_network("ba:n=3000,m=2,seed=0")
    ranks = assign_to_ranks(hubs.adjacency, 4)
    assert (
        cut(hubs, ranks) < 0.75 * 0.75 * hubs.num_links
    )  # three quarters of links are cut at random
    assert np.ptp([len(devices) for devices in ranks]) < 0.15 * 750


def test_more_ranks_than_devices():
    with pytest.raises(InputError, match="ranks = 4"):
        assign_to_ranks(load_network("ring:n=3").adjacency, 4)
