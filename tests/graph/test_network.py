import networkx as nx
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
    with pytest.raises(InputError, match="connected parts = 2.*Add a link between device 0 and device 2"):
        load_network(nx.Graph([(0, 1), (2, 3)]))
