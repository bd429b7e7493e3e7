import re
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from ssdfl.errors import InputError
from ssdfl.graph import describe, from_networkx, load_network, make_network, write_network


def test_networkx_there_and_back():
    network = load_network("sites:sites=3,size=3,seed=1")
    again = from_networkx(network.to_networkx(), title=network.title)
    assert again.links.tolist() == network.links.tolist()
    assert again.latency_s.tolist() == network.latency_s.tolist()
    assert again.positions == pytest.approx(network.positions)


def test_costs_follow_their_links_when_sorted():
    network = make_network(3, [(2, 1), (1, 0)], latency_s=[0.2, 0.1])
    assert network.links.tolist() == [[0, 1], [1, 2]]
    assert network.latency_s.tolist() == [0.1, 0.2]


def test_another_order_of_devices_is_the_same_network():
    rng = np.random.default_rng(0)
    drawn = load_network("rgeo:n=12,radius=0.2,seed=3")
    costs = {name: rng.random(drawn.num_links) + 0.1 for name in ("latency_s", "bandwidth_Bps")}
    costs |= {name: rng.random(12) + 0.1 for name in ("compute_s", "uplink_Bps", "downlink_Bps")}
    network = replace(drawn, **costs)
    other = network.renumbered(rng.permutation(12))
    graphs = [
        nx.relabel_nodes(one.to_networkx(), dict(enumerate(one.names))) for one in (network, other)
    ]
    assert drawn.added_links
    assert nx.utils.graphs_equal(*graphs)


def test_no_devices():
    with pytest.raises(InputError, match="number of devices = 0"):
        from_networkx(nx.Graph())


def test_link_to_an_unknown_device():
    with pytest.raises(InputError, match=r"link = \(0, 3\)"):
        make_network(3, [(0, 3)])


def test_describe_reports_what_was_added():
    facts = describe(load_network("er:n=10,p=0.0"))
    assert len(facts["added_links"]) == 9
    assert facts["degree_mean"] == pytest.approx(1.8)
    assert describe(load_network("path:n=4"))["diameter_hops"] == 3


def test_load_network_takes_what_users_have(tmp_path):
    graph = nx.Graph(name="office")
    graph.add_edge("a", "b", latency_s=0.1)
    graph.add_edge("b", "c", bandwidth_Bps=1e6)
    network = load_network(graph)
    assert (network.names, network.title) == (("a", "b", "c"), "office")
    assert load_network(network) is network
    write_network(network, str(tmp_path / "net.graphml"))
    for place in (tmp_path / "net.graphml", str(tmp_path / "net.graphml")):
        assert load_network(place).latency_s.tolist() == network.latency_s.tolist()


def test_a_graph_in_parts_is_refused_with_a_remedy():
    with pytest.raises(
        InputError, match="connected parts = 2.*Add a link between device 0 and device 2"
    ):
        load_network(nx.Graph([(0, 1), (2, 3)]))


def test_a_directed_graph_whose_links_go_both_ways_alike_is_its_undirected_graph():
    graph = nx.Graph()
    graph.add_edge("a", "b", latency_s=0.1, added=True)
    graph.add_edge("b", "c", bandwidth_Bps=1e6)
    expected = from_networkx(graph)
    for same in (graph.to_directed(), nx.MultiGraph(graph), nx.MultiDiGraph(graph)):
        network = from_networkx(same)
        assert network.names == expected.names
        assert network.links.tolist() == expected.links.tolist()
        assert network.latency_s.tolist() == expected.latency_s.tolist()
        assert network.bandwidth_Bps.tolist() == expected.bandwidth_Bps.tolist()
        assert network.added_links == expected.added_links == ((0, 1),)


def test_a_missing_cost_of_one_direction_is_the_default():
    graph = nx.DiGraph([("a", "b"), ("b", "a")])
    graph.edges["a", "b"]["latency_s"] = 0.005
    assert from_networkx(graph).latency_s.tolist() == [0.005]


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_a_directed_graph_with_a_link_of_one_direction_is_refused(kind):
    graph = kind([("a", "b"), ("b", "a"), ("b", "c")])
    with pytest.raises(
        InputError, match="link = b → c: expected a link in both directions. Add the edge c → b"
    ):
        load_network(graph)


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize("key", ["latency_s", "bandwidth_Bps"])
def test_a_directed_graph_whose_directions_differ_in_cost_is_refused(kind, key):
    graph = kind()
    graph.add_edge("a", "b", **{key: 1.0})
    graph.add_edge("b", "a", **{key: 2.0})
    with pytest.raises(InputError, match=f"{key} of link a-b = 1 one way and 2 the other"):
        load_network(graph)


@pytest.mark.parametrize("kind", [nx.MultiGraph, nx.MultiDiGraph])
def test_parallel_links_are_refused(kind):
    graph = kind(nx.path_graph(["a", "b", "c"]))
    graph.add_edge("b", "c")
    with pytest.raises(InputError, match="link = b-c: expected one edge, not several in parallel"):
        load_network(graph)


def test_self_loops_of_any_graph_are_dropped():
    for kind in (nx.Graph, nx.MultiGraph):
        assert load_network(kind([(0, 1), (1, 1), (1, 1)])).links.tolist() == [[0, 1]]
    assert load_network(nx.DiGraph([(0, 1), (1, 0), (1, 1)])).links.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("latency_s", value) for value in (-1.0, np.nan, np.inf, 1e101)),
        *(("compute_s", value) for value in (-1.0, np.nan, 1e101)),
        *(("bandwidth_Bps", value) for value in (0.0, -1.0, np.nan, np.inf, 1e-101)),
        *(("uplink_Bps", value) for value in (0.0, np.nan, 1e-101)),
    ],
)
def test_costs_that_no_time_can_be_told_of_are_refused(key, value):
    with pytest.raises(InputError, match=re.escape(f"{key}[0] = {value}")):
        make_network(2, [(0, 1)], **{key: value})


def test_the_least_and_largest_costs_give_finite_times():
    costs = {"latency_s": 1e100, "compute_s": 0.0, "bandwidth_Bps": 1e-100, "uplink_Bps": np.inf}
    network = make_network(2, [(0, 1)], **costs)
    assert network.message_time_s(10**12) == pytest.approx(1e112)
