import networkx as nx
import numpy as np
import pytest

from helpers import TOPOLOGY_SPECS
from ssdfl.clusters import SCORES, Device, ScoreInputs, clusters_of, unknown_devices
from ssdfl.clusters.cost_aware import (
    Agglomeration,
    agglomerate,
    clusters_after_merges,
    link_speeds,
    move_devices,
    partitions_by_cost,
)
from ssdfl.graph import load_network, make_network


def score_inputs(network, message_bytes=1000):
    return ScoreInputs(network, unknown_devices(network), message_bytes=message_bytes)


def test_links_that_keep_nobody_waiting_have_full_speed():
    network = make_network(
        3, [(0, 1), (1, 2)], latency_s=[0.001, 0.1], bandwidth_Bps=1e12, compute_s=0.005
    )
    assert link_speeds(score_inputs(network))[[0, 1], [1, 2]] == pytest.approx([1.0, 0.01])


def test_agglomeration_merges_over_fast_links_first():
    network = make_network(4, [(0, 1), (1, 2), (2, 3)], latency_s=[0.5, 0.02, 0.1], compute_s=0.01)
    assert agglomerate(Agglomeration(score_inputs(network))).tolist() == [[1, 2], [1, 3], [0, 1]]


def test_the_slowest_link_between_two_clusters_counts():
    links, times = [(0, 1), (0, 2), (1, 2), (2, 3)], [0.02, 0.03, 0.9, 0.04]
    network = make_network(4, links, latency_s=times, compute_s=0.01)
    merges = agglomerate(Agglomeration(score_inputs(network)))
    assert clusters_after_merges(merges, 4, 2) == ((0, 1), (2, 3))


@pytest.mark.parametrize("spec", TOPOLOGY_SPECS)
def test_both_families_have_connected_partitions_of_every_size(spec):
    network = load_network(spec)
    graph = network.to_networkx()
    sizes = range(1, network.num_devices + 1)
    found = list(partitions_by_cost(score_inputs(network), sizes))
    for size, families in zip(sizes, found, strict=True):
        for clusters, _ in families:
            assert len(clusters) == size
            assert sorted(d for c in clusters for d in c) == list(range(network.num_devices))
            assert all(nx.is_connected(graph.subgraph(cluster)) for cluster in clusters)


def test_sites_are_found_by_both_families():
    network = load_network("sites:sites=4,size=5,links=2,seed=2")
    expected = clusters_of(np.arange(20) // 5)
    assert next(partitions_by_cost(score_inputs(network), [4])) == [(expected, "bisection")]


def test_moves_make_the_score_better_and_keep_clusters_connected():
    network = load_network("sites:sites=3,size=5,links=2,seed=1")
    rng = np.random.default_rng(0)
    devices = [Device(rng.multinomial(30, [0.25] * 4) + 1.0) for _ in range(15)]
    here = ScoreInputs(network, devices)
    wrong = clusters_of(np.minimum((np.arange(15) + 1) // 5, 2))
    better = move_devices(here, wrong, SCORES["time"])
    assert SCORES["time"](here, better) < SCORES["time"](here, wrong)
    assert len(better) == 3
    graph = network.to_networkx()
    assert all(nx.is_connected(graph.subgraph(cluster)) for cluster in better)
    again = move_devices(here, better, SCORES["time"], sweeps=5)
    assert SCORES["time"](here, again) <= SCORES["time"](here, better)
