"""Node-link JSON means what NetworkX means by it."""

import json

import networkx as nx
import pytest

from ssdfl.errors import InputError
from ssdfl.graph import from_json, from_networkx, load_network, make_network, to_json
from ssdfl.graph.listing import from_node_link

LINK = {"source": "a", "target": "b"}
BACK = {"source": "b", "target": "a"}


@pytest.mark.parametrize(
    "network",
    [
        load_network("ring:n=5,uplink_Bps=1000"),
        load_network("rgeo:n=12,radius=0.15,seed=2"),
        load_network("sites:sites=3,size=4"),
        make_network(3, [(0, 1), (1, 2)], names=["é", "b", '"c"'], compute_s=[0.1, 0.2, 0.3]),
    ],
    ids=lambda network: network.title,
)
def test_the_text_is_the_one_that_networkx_writes(network):
    data = nx.node_link_data(network.to_networkx(), edges="edges")
    assert json.dumps(json.loads(to_json(network))) == json.dumps(data)
    assert to_json(from_json(to_json(network), network.title)) == to_json(network)


@pytest.mark.parametrize(
    "graph",
    [
        nx.path_graph(4),
        nx.grid_2d_graph(2, 3),
        nx.Graph([("b", "a", {"latency_s": 0.5}), ("a", "c")]),
        nx.path_graph(3).to_directed(),
        nx.MultiGraph([(2, 1), (1, 0)]),
    ],
    ids=["path", "tuples as keys", "costs", "directed", "multigraph"],
)
def test_graphs_of_networkx_are_read_as_they_are(graph):
    text = json.dumps(nx.node_link_data(graph, edges="edges"))
    assert to_json(from_json(text, "")) == to_json(from_networkx(graph, ""))


def test_devices_that_only_links_name_come_last():
    found = from_node_link({"nodes": [{"id": "b"}, {}], "links": [LINK]})
    assert list(found.devices) == ["b", 1, "a"]
    assert list(found.links) == [("b", "a")]


def test_a_link_may_be_listed_both_ways_only_if_links_have_directions():
    both = {"nodes": [], "edges": [LINK, BACK]}
    with pytest.raises(InputError, match="link = a-b: expected one entry"):
        from_node_link(both)
    assert list(from_node_link({**both, "directed": True}).links) == [("a", "b")]
    slower = {"nodes": [], "edges": [LINK, {**BACK, "latency_s": 9}], "directed": True}
    with pytest.raises(InputError, match="link = b-a: expected one set of costs"):
        from_node_link(slower)


@pytest.mark.parametrize("data", [[], {"nodes": [{"id": None}], "edges": []}])
def test_what_is_no_node_link_object_is_refused(data):
    with pytest.raises(ValueError, match="not a JSON object|id is null"):
        from_node_link(data)
