import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import TOPOLOGY_SPECS
from ssdfl.clusters import clusters_of, labels_of, random_clusters, spectral_bisection
from ssdfl.clusters.partition import bisections, halves_of
from ssdfl.errors import InputError
from ssdfl.graph import load_network, make_blocks, metropolis, slowest_mode
from ssdfl.rng import generator


def assert_partition(clusters, network):
    assert sorted(device for cluster in clusters for device in cluster) == list(
        range(network.num_devices)
    )
    graph = network.to_networkx()
    assert all(nx.is_connected(graph.subgraph(cluster)) for cluster in clusters)
    assert list(clusters) == sorted(clusters)


@pytest.mark.parametrize("spec", TOPOLOGY_SPECS)
def test_every_number_of_clusters_on_every_topology(spec):
    network = load_network(spec)
    for number in range(1, network.num_devices + 1):
        clusters = spectral_bisection(network, number)
        assert len(clusters) == number
        assert_partition(clusters, network)


@pytest.mark.parametrize(
    ("spec", "size"),
    [("barbell:size=5", 5), ("cliques:cliques=5,size=6", 6), ("sites:sites=4,size=5,seed=0", 5)],
)
def test_obvious_clusters_are_found(spec, size):
    network = load_network(spec)
    expected = clusters_of(np.arange(network.num_devices) // size)
    assert spectral_bisection(network, len(expected)) == expected


@given(st.integers(1, 25), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_random_clusters_are_connected(n, seed):
    network = load_network(f"er:n={n},p=0.15,seed={seed}")
    assert_partition(random_clusters(network, generator(seed, "test")), network)


def test_random_clusters_have_a_random_number():
    network = load_network("ring:n=12")
    numbers = {len(random_clusters(network, generator(seed, "test"))) for seed in range(40)}
    assert len(numbers) > 6


def one_by_one(network, number):
    """Repeated bisection of the worst-mixing cluster, each looked at on its own."""
    clusters = [tuple(range(network.num_devices))]

    def matrix(cluster):
        return metropolis(network.adjacency[list(cluster)][:, list(cluster)])

    while len(clusters) < number:
        several = [cluster for cluster in sorted(clusters) if len(cluster) > 1]
        worst = max(several, key=lambda one: round(slowest_mode(matrix(one))[0], 9))
        clusters.remove(worst)
        alone = make_blocks(network.adjacency, [np.array(worst)], metropolis)
        halves = halves_of(alone, slowest_mode(matrix(worst))[1])
        clusters += [tuple(half.tolist()) for half in halves[0]]
    return tuple(sorted(clusters))


@pytest.mark.parametrize(
    "spec", ["er:n=40,p=0.1,seed=4", "ba:n=40,m=1,seed=2", "sites:sites=5,size=7,seed=0"]
)
@pytest.mark.parametrize("limit", [5, 400])
def test_looking_at_many_clusters_at_once_changes_nothing(spec, limit, monkeypatch):
    monkeypatch.setattr("ssdfl.clusters.partition.DENSE_LIMIT", limit)
    network = load_network(spec)
    sizes = [2, 3, 5, 11, 12, 30]
    found = list(bisections(network.adjacency, metropolis, sizes))
    assert found == [one_by_one(network, number) for number in sizes]


def test_labels_there_and_back():
    clusters = ((0, 3), (1,), (2, 4))
    assert clusters_of(labels_of(clusters, 5)) == clusters


@pytest.mark.parametrize("number", [0, 8])
def test_impossible_numbers(number):
    with pytest.raises(InputError, match=f"clusters.number = {number}"):
        spectral_bisection(load_network("ring:n=7"), number)


@pytest.mark.parametrize("spec", ["er:n=40,p=0.1,seed=1", "sites:sites=6,size=7,seed=0"])
def test_looking_far_ahead_finds_the_same_clusters(spec):
    network = load_network(spec)
    n = network.num_devices
    far = list(bisections(network.adjacency, metropolis, range(1, n + 1)))
    assert far[: n // 8] == [spectral_bisection(network, size) for size in range(1, n // 8 + 1)]
