import numpy as np
import pytest

from ssdfl.clusters import Device, FormationSettings, ScoreInputs
from ssdfl.clusters.balanced import BalancedAgglomeration, partitions_by_data
from ssdfl.clusters.cost_aware import agglomerate, clusters_after_merges, partitions_by_cost
from ssdfl.clusters.formation import form
from ssdfl.graph import load_network, make_network


def holders(labels, num_labels=2):
    """Devices that each hold samples of one label."""
    return [Device(np.eye(num_labels)[label]) for label in labels]


def test_among_equal_links_those_merge_whose_data_complete_each_other():
    network = make_network(4, [(0, 1), (1, 2), (2, 3)], latency_s=0.1)
    inputs = ScoreInputs(network, holders([0, 0, 1, 1]))
    merges = agglomerate(BalancedAgglomeration(inputs))
    assert clusters_after_merges(merges, 4, 3) == ((0,), (1, 2), (3,))


def test_fast_links_come_before_balance():
    network = make_network(4, [(0, 1), (1, 2), (2, 3)], latency_s=[0.02, 0.5, 0.02], compute_s=0.01)
    inputs = ScoreInputs(network, holders([0, 0, 1, 1]))
    merges = agglomerate(BalancedAgglomeration(inputs))
    assert clusters_after_merges(merges, 4, 2) == ((0, 1), (2, 3))


def scatter(inputs, clusters):
    """Σ_s N_s ‖mean_s − mean‖²."""
    means = [inputs.differences[list(cluster)].mean(axis=0) for cluster in clusters]
    return sum(len(cluster) * mean @ mean for cluster, mean in zip(clusters, means, strict=True))


def test_the_merge_is_the_one_after_which_clusters_resemble_the_whole_most():
    network = load_network("complete:n=6")
    inputs = ScoreInputs(network, holders([0, 0, 0, 1, 1, 2], num_labels=3))
    merges = agglomerate(BalancedAgglomeration(inputs))
    for size in range(5, 0, -1):
        before, after = (clusters_after_merges(merges, 6, one) for one in (size + 1, size))
        joined = [
            (
                *tuple(cluster for k, cluster in enumerate(before) if k not in (a, b)),
                before[a] + before[b],
            )
            for a in range(len(before))
            for b in range(a)
        ]
        assert scatter(inputs, after) == pytest.approx(min(scatter(inputs, one) for one in joined))


def test_balanced_formation_weighs_the_balanced_partition_too():
    network = load_network("complete:n=8")
    devices = holders([0, 0, 0, 0, 1, 1, 1, 1])
    inputs = ScoreInputs(network, devices)
    sizes = range(1, 9)
    by_cost, by_data = (
        list(make(inputs, sizes)) for make in (partitions_by_cost, partitions_by_data)
    )
    assert all(a == b[: len(a)] for a, b in zip(by_cost, by_data, strict=True))
    four = {rule: clusters for clusters, rule in by_data[3]}
    assert scatter(inputs, four["balance"]) == pytest.approx(0)
    cost, balanced = (
        form(network, devices, FormationSettings(partition=name)) for name in ("cost", "balanced")
    )
    assert balanced.chosen.score <= cost.chosen.score
