import json

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

from ssdfl.errors import InputError
from ssdfl.graph import load_network, make_network, read_network, write_network

GRAPHML_WITH_TWO_COSTS = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="edge" attr.name="latency_s" attr.type="double"/>
<graph edgedefault="directed"><node id="a"/><node id="b"/>
<edge source="a" target="b"><data key="d0">1</data></edge>
<edge source="b" target="a"><data key="d0">2</data></edge></graph></graphml>"""


@pytest.fixture
def network():
    return make_network(
        4,
        [(0, 1), (1, 2), (2, 3), (0, 2)],
        latency_s=[0.1, 0.2, 0.3, 0.4],
        bandwidth_Bps=[1e3, 2e3, 3e3, 4e3],
        compute_s=[1, 2, 3, 4],
    )


@pytest.mark.parametrize("ending", [".graphml", ".json", ".npz", ".csv", ".npy"])
def test_what_is_written_is_read_back(network, tmp_path, ending):
    path = tmp_path / f"net{ending}"
    write_network(network, path)
    again = load_network(str(path))
    assert again.links.tolist() == network.links.tolist()
    assert again.names == network.names
    if ending != ".npy":
        assert again.latency_s == pytest.approx(network.latency_s)
        assert again.bandwidth_Bps == pytest.approx(network.bandwidth_Bps)
    if ending in (".graphml", ".json", ".npz"):
        assert again.compute_s == pytest.approx(network.compute_s)


def test_json_keeps_added_links_and_positions(tmp_path):
    network = load_network("rgeo:n=12,radius=0.15,seed=2")
    write_network(network, tmp_path / "net.json")
    again = read_network(tmp_path / "net.json")
    assert again.added_links == network.added_links
    assert again.positions == pytest.approx(network.positions)


def test_graphml_of_others_with_names_and_directions(tmp_path):
    graph = nx.DiGraph([("paris", "rome"), ("rome", "oslo"), ("rome", "paris")])
    graph.edges["paris", "rome"]["latency_s"] = 0.25
    graph.edges["rome", "paris"]["latency_s"] = 0.25
    nx.write_graphml(graph, tmp_path / "net.graphml")
    network = read_network(tmp_path / "net.graphml")
    assert network.names == ("paris", "rome", "oslo")
    assert network.latency_s[0] == 0.25


def test_csv_accepts_both_directions_and_sorts_numbers(tmp_path):
    path = tmp_path / "net.csv"
    path.write_text("source,target,latency_s\n10,2,0.5\n2,10,0.5\n2,1,\n")
    network = read_network(path)
    assert network.names == ("1", "2", "10")
    assert network.links.tolist() == [[0, 1], [1, 2]]
    assert network.latency_s.tolist() == [0.005, 0.5]


def test_sparse_npz_and_self_loops(tmp_path):
    save_npz(tmp_path / "net.npz", csr_array(np.ones((3, 3))))
    assert read_network(tmp_path / "net.npz").num_links == 3


def test_node_link_json_with_links_key(tmp_path):
    data = nx.node_link_data(nx.path_graph(3), edges="links")
    (tmp_path / "net.json").write_text(json.dumps(data))
    assert read_network(tmp_path / "net.json").num_links == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("net.csv", "source,target\na,b\nc,d\n", "connected parts = 2: expected 1"),
        ("net.csv", "from,to\na,b\n", "expected source,target"),
        ("net.csv", "", "expected source,target"),
        ("net.csv", "source,target\n", "it holds no devices"),
        ("net.csv", "source,target,latency\na,b,1\n", "latency: expected one of latency_s, bandwidth_Bps"),
        ("net.csv", "source,target\na,\n", "line 2 = a: expected two devices"),
        ("net.json", '{"nodes": [1, 2], "edges": []}', "a readable .json network"),
        ("net.json", '{"nodes": [{"id": 1, "x": "left", "y": 0}], "edges": []}', "x of a device = left"),
        ("net.npy", "", "a readable .npy network"),
        ("net.graphml", GRAPHML_WITH_TWO_COSTS, "link = b-a: expected one set of costs"),
        ("net.csv", "source,target,latency_s\na,b,fast\n", "latency_s of link 0-1 = fast: expected a number"),
        ("net.csv", "source,target,latency_s\na,b,1\nb,a,2\n", "link = b-a: expected one set of costs"),
        ("net.csv", "source,target,latency_s\na,b,-1\n", "latency_s"),
        ("net.json", "{not json", "a readable .json network"),
        ("net.json", "[]", "a readable .json network"),
        ("net.graphml", "<graphml", "a readable .graphml network"),
        ("net.npy", "nonsense", "a readable .npy network"),
        ("net.npz", "nonsense", "a readable .npz network"),
        ("net.xyz", "?", "an ending of"),
    ],
)
def test_bad_files_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        load_network(str(tmp_path / name))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), r"adjacency = \(2, 3\): expected the shape \(2, 2\)"),
        (np.array([[0, 1], [0, 0]]), "a symmetric matrix"),
        (np.zeros((0, 0)), "it holds no devices"),
        (np.array([[0, {}], [{}, 0]], dtype=object), "a readable .npy network"),
    ],
)
def test_bad_matrices_are_refused(tmp_path, matrix, message):
    np.save(tmp_path / "net.npy", matrix, allow_pickle=True)
    with pytest.raises(InputError, match=message):
        read_network(tmp_path / "net.npy")


def test_missing_file():
    with pytest.raises(InputError, match="expected an existing file"):
        load_network("nowhere.graphml")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"compute_s": np.ones(5)}, r"compute_s = \(5,\): expected the shape \(2,\)"),
        ({"latency_s": np.ones((1, 2))}, "latency_s = "),
        ({"latency_s": np.array([[0, 1.0], [2.0, 0]])}, "latency_s = asymmetric"),
    ],
)
def test_bad_arrays_beside_the_adjacency(tmp_path, arrays, message):
    np.savez(tmp_path / "net.npz", adjacency=np.array([[0, 1], [1, 0]]), **arrays)
    with pytest.raises(InputError, match=message):
        read_network(tmp_path / "net.npz")


def test_stored_zeros_are_no_links(tmp_path):
    rows, columns = [0, 1, 1, 2], [1, 0, 2, 1]
    save_npz(tmp_path / "net.npz", csr_array(([1, 1, 0, 0], (rows, columns)), shape=(3, 3)))
    with pytest.raises(InputError, match="connected parts = 2"):
        read_network(tmp_path / "net.npz")


def test_a_spreadsheets_byte_order_mark(tmp_path):
    (tmp_path / "net.csv").write_text("source,target\na,b\n", encoding="utf-8-sig")
    assert read_network(tmp_path / "net.csv").num_links == 1
