import json
from dataclasses import replace

import numpy as np
import pytest

from ssdfl.clusters import Plan, ScoreInputs, explain, form_clusters, unknown_devices
from ssdfl.graph import load_network, make_network


def test_seconds_are_those_that_formation_predicts():
    network = load_network("sites:sites=3,size=4,seed=1")
    plan = form_clusters(network)
    found = explain(network, plan)
    inputs = ScoreInputs(network, unknown_devices(network))
    everyone = tuple(range(12))
    assert found.cycle_s == pytest.approx(inputs.cycle_cost(plan.clusters).time_s)
    assert found.one_cluster_s == pytest.approx(inputs.cycle_cost((everyone,)).time_s)
    assert found.no_clusters_s == pytest.approx(
        inputs.cycle_cost(tuple((k,) for k in everyone)).time_s
    )
    json.dumps(found.to_json(), allow_nan=False)


def test_links_are_named_with_what_they_cost():
    names = ["paris", "lyon", "oslo", "bergen"]
    network = make_network(
        4, [(0, 1), (1, 2), (2, 3)], latency_s=[0.001, 0.5, 0.02], compute_s=0.1, names=names
    )
    plan = Plan(((0, 1), (2, 3)), "by hand", names=tuple(names))
    found = explain(network, plan)
    first, second = found.clusters
    assert first.slowest_inside.devices == ("paris", "lyon")
    assert second.slowest_inside.latency_ms == pytest.approx(20)
    assert first.slowest_cut == second.slowest_cut
    assert (first.slowest_cut.devices, first.num_cut) == (("lyon", "oslo"), 1)
    # The one cut link makes the difference between these clusters and one cluster.
    assert first.cut_cost_s == pytest.approx(found.one_cluster_s - found.cycle_s)
    assert first.cut_cost_s > 1
    assert [link.devices for link in found.upgrade.links] == [("lyon", "oslo")]
    text = "\n".join(found.lines())
    assert "cluster 1 (2 devices): slowest link inside oslo – bergen (20 ms, 12.5 MB/s)" in text
    assert "Upgrade lyon – oslo (500 ms, 12.5 MB/s) first: twice as fast, it saves 0.25" in text
    assert "Φ" not in text


def test_a_network_without_waiting_says_so():
    network = load_network("complete:n=4,latency_s=0,bandwidth_Bps=1e12,compute_s=1")
    found = explain(network, form_clusters(network))
    assert found.upgrade is None
    assert "no upgrade helps" in found.upgrade_line


def test_a_shared_uplink_is_what_to_upgrade():
    names = ["hub", "a", "b", "c"]
    links = [(0, 1), (0, 2), (0, 3)]
    network = make_network(4, links, compute_s=0.01, uplink_Bps=[1e5, *[np.inf] * 3], names=names)
    found = explain(network, Plan(((0, 1, 2, 3),), "by hand", names=tuple(names)))
    assert found.upgrade.links == ()
    assert found.upgrade_line.startswith(
        "Upgrade the uplink of hub (0.1 MB/s) first: twice as fast, it saves "
    )
    # Three messages of 19,240 bytes share it. A cycle waits for it in three of its 5 + 1 steps,
    # since leaves answer in the others; twice as fast it takes half of that.
    assert found.upgrade.saved_s == pytest.approx(3 * (3 * 19_240 / 1e5) / 2)
    json.dumps(found.to_json(), allow_nan=False)


def test_many_clusters_are_not_all_told():
    network = load_network("ring:n=100")
    alone = Plan(tuple((k,) for k in range(100)), "by hand")
    found = explain(network, replace(alone, names=network.names))
    assert all(one.cut_cost_s is None and one.slowest_inside is None for one in found.clusters)
    assert "… and 88 more clusters." in list(found.lines())
