import io
import json
import zipfile

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

from ssdfl.errors import InputError, InputWarning
from ssdfl.graph import load_network, make_network, read_network, write_network

GRAPHML_WITH_TWO_COSTS = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="edge" attr.name="latency_s" attr.type="double"/>
<graph edgedefault="directed"><node id="a"/><node id="b"/>
<edge source="a" target="b"><data key="d0">1</data></edge>
<edge source="b" target="a"><data key="d0">2</data></edge></graph></graphml>"""

LINK = '{"source": 0, "target": 1}'
TWICE = f'{{"nodes": [{{"id": 0}}, {{"id": 1}}], "edges": [{LINK}, {LINK}]}}'
NODES = "node [ id 0 ] node [ id 1 ]"
EDGE = "edge [ source 0 target 1 ]"
ZOO = """graph [
  Network "Small"
  node [ id 0 label "Oslo" Country "Norway" Longitude 10.75 Latitude 59.91 ]
  node [ id 1 label "Rome" Country "Italy" Longitude 12.5 Latitude 41.9 ]
  node [ id 2 label "Rome" Country "Italy" Longitude 12.5 Latitude 41.9 ]
  edge [ source 0 target 1 LinkSpeedRaw 8000000.0 LinkLabel "8 Mbit/s" ]
  edge [ source 1 target 2 distance 100.0 ]
]"""


@pytest.fixture
def network():
    return make_network(
        4,
        [(0, 1), (1, 2), (2, 3), (0, 2)],
        latency_s=[0.1, 0.2, 0.3, 0.4],
        bandwidth_Bps=[1e3, 2e3, 3e3, 4e3],
        compute_s=[1, 2, 3, 4],
        uplink_Bps=[100, np.inf, 300, 400],
    )


@pytest.mark.parametrize("ending", [".graphml", ".gml", ".json", ".npz", ".csv", ".npy"])
def test_what_is_written_is_read_back(network, tmp_path, ending):
    path = tmp_path / f"net{ending}"
    write_network(network, path)
    again = load_network(str(path))
    assert again.links.tolist() == network.links.tolist()
    assert again.names == network.names
    if ending != ".npy":
        assert again.latency_s == pytest.approx(network.latency_s)
        assert again.bandwidth_Bps == pytest.approx(network.bandwidth_Bps)
    if ending in (".graphml", ".gml", ".json", ".npz"):
        assert again.compute_s == pytest.approx(network.compute_s)
        assert again.uplink_Bps == pytest.approx(network.uplink_Bps)
        assert np.isinf(again.downlink_Bps).all()


def test_uplinks_in_units(tmp_path):
    path = tmp_path / "net.gml"
    path.write_text("""graph [
  node [ id 0 label "a" uplink_Mbps 8 ]
  node [ id 1 label "b" downlink_kBps 2 ]
  edge [ source 0 target 1 ]
]""")
    network = read_network(path)
    assert network.uplink_Bps.tolist() == [1e6, np.inf]
    assert network.downlink_Bps.tolist() == [np.inf, 2e3]
    path.write_text(path.read_text().replace("uplink_Mbps", "uplink"))
    with pytest.raises(
        InputError, match="attribute of device a = uplink = 8: expected one of .*uplink_Mbps"
    ):
        read_network(path)


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
        (
            "net.csv",
            "source,target,latency\na,b,1\n",
            "latency = 1: expected one of latency_s, latency_ms",
        ),
        ("net.csv", "source,target,latency_ms,latency_s\na,b,1,1\n", "latency_s of .* one value"),
        ("net.csv", "source,target\na,b\na,b\n", "link = a-b: expected one entry"),
        ("net.json", TWICE, "link = 0-1: expected one entry"),
        (
            "net.json",
            TWICE.replace("{", '{"directed": true, ', 1),
            "link = 0-1: expected one entry",
        ),
        ("net.gml", f"graph [ {NODES} {EDGE} {EDGE} ]", "duplicated"),
        ("net.gml", f"graph [ multigraph 1 {NODES} {EDGE} {EDGE} ]", "one entry"),
        (
            "net.gml",
            "graph [ node [ id 0 Latitude 91 Longitude 0 ] ]",
            "latitude = 91.0: expected degrees",
        ),
        ("net.gml", "graph [", "a readable .gml network"),
        ("net.csv", "source,target\na,\n", "line 2 = a: expected two devices"),
        ("net.json", '{"nodes": [1, 2], "edges": []}', "a readable .json network"),
        (
            "net.json",
            '{"nodes": [{"id": 1, "x": "left", "y": 0}], "edges": []}',
            "x of a device = left",
        ),
        ("net.npy", "", "a readable .npy network"),
        ("net.graphml", GRAPHML_WITH_TWO_COSTS, "link = b-a: expected one set of costs"),
        (
            "net.csv",
            "source,target,latency_s\na,b,fast\n",
            "latency_s of link 0-1 = fast: expected a number",
        ),
        (
            "net.csv",
            "source,target,latency_s\na,b,1\nb,a,2\n",
            "link = b-a: expected one set of costs",
        ),
        ("net.csv", "source,target,latency_s\na,b,-1\n", "latency_s"),
        ("net.json", "{not json", "a readable .json network"),
        ("net.json", "[]", "a readable .json network"),
        ("net.graphml", "<graphml", "a readable .graphml network"),
        ("net.npy", "nonsense", "a readable .npy network"),
        ("net.npz", "nonsense", "a readable .npz network"),
        ("net.xyz", "?", "one of .graphml"),
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


def test_gml_of_topology_zoo_has_coordinates_speeds_and_distances(tmp_path):
    (tmp_path / "net.gml").write_text(ZOO)
    with pytest.warns(InputWarning) as told:
        network = read_network(tmp_path / "net.gml")
    assert network.names == ("Oslo", "Rome (1)", "Rome (2)")
    assert network.geographic
    assert network.positions[0].tolist() == [10.75, 59.91]
    assert network.bandwidth_Bps.tolist() == [1e6, 12.5e6]
    # Oslo and Rome are about 2,008 km apart; the other link says 100 km itself.
    assert network.latency_s[0] == pytest.approx(0.004 + 0.0085e-3 * 2008, rel=0.005)
    assert network.latency_s[1] == pytest.approx(0.004 + 0.00085)
    texts = " ".join(str(one.message) for one in told)
    assert "ignored attributes of links: LinkLabel" in texts
    assert "ignored attributes of devices: Country" in texts
    assert "from their distance in km: 4 ms + 0.0085 ms/km" in texts
    assert "from the coordinates of their ends" in texts


@pytest.mark.parametrize("ending", [".graphml", ".gml", ".json"])
def test_coordinates_survive(tmp_path, ending):
    places = np.array([[2.35, 48.86], [-0.13, 51.5]])
    network = make_network(2, [(0, 1)], positions=places, geographic=True, latency_s=0.25)
    write_network(network, tmp_path / f"net{ending}")
    again = read_network(tmp_path / f"net{ending}")
    assert again.geographic
    assert again.positions == pytest.approx(places)
    assert again.latency_s.tolist() == [0.25]


@pytest.mark.parametrize(
    ("column", "value", "latency_s", "bandwidth_Bps"),
    [
        ("latency_ms", 20, 0.02, 12.5e6),
        ("delay_us", 20, 2e-5, 12.5e6),
        ("bandwidth_Mbps", 8, 0.005, 1e6),
        ("bandwidth_MBps", 8, 0.005, 8e6),
        ("bandwidth_bps", 8, 0.005, 1),
    ],
)
def test_costs_come_in_units_in_every_format(tmp_path, column, value, latency_s, bandwidth_Bps):
    (tmp_path / "net.csv").write_text(f"source,target,{column}\na,b,{value}\n")
    graph = nx.Graph()
    graph.add_edge("a", "b", **{column: value})
    nx.write_graphml(graph, tmp_path / "net.graphml")
    nx.write_gml(graph, tmp_path / "net.gml")
    (tmp_path / "net.json").write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
    for path in tmp_path.iterdir():
        network = read_network(path)
        assert network.latency_s[0] == pytest.approx(latency_s), path
        assert network.bandwidth_Bps[0] == pytest.approx(bandwidth_Bps), path


@pytest.mark.parametrize("ending", [".csv", ".graphml", ".gml", ".json"])
def test_what_is_not_read_is_announced_in_every_format(tmp_path, ending):
    path = tmp_path / f"net{ending}"
    graph = nx.Graph()
    graph.add_edge("a", "b", colour="red")
    if ending == ".csv":
        path.write_text("source,target,colour\na,b,red\n")
    elif ending == ".json":
        path.write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
    else:
        {".graphml": nx.write_graphml, ".gml": nx.write_gml}[ending](graph, path)
    with pytest.warns(InputWarning, match="ignored attributes of links: colour"):
        read_network(path)


def test_arrays_that_are_not_read_are_announced(tmp_path):
    np.savez(tmp_path / "net.npz", adjacency=1 - np.eye(2), colour=np.ones(2))
    with pytest.warns(InputWarning, match="ignored array: colour"):
        read_network(tmp_path / "net.npz")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_a_small_matrix_that_claims_many_rows_is_not_built(tmp_path, kind):
    """1.5 kB that would become 30 million devices."""
    path = tmp_path / "net.npz"
    with zipfile.ZipFile(path, "w") as files:
        arrays = {
            "format": np.array(kind.encode()),
            "shape": np.array([30_000_000, 30_000_000]),
            "data": np.ones(4),
            "indices": np.zeros(4, dtype=np.int32),
            "indptr": np.zeros(5, dtype=np.int32),
            "row": np.zeros(4, dtype=np.int32),
            "col": np.zeros(4, dtype=np.int32),
        }
        for name, array in arrays.items():
            with files.open(f"{name}.npy", "w") as file:
                np.save(file, array)
    with pytest.raises(
        InputError, match="30,000,000 devices and 4 links: expected a connected network"
    ):
        read_network(path)


def test_indices_beyond_a_sparse_matrix_are_refused(tmp_path):
    matrix = csr_array(np.ones((3, 3)))
    matrix.indices[4] = 10**6
    save_npz(tmp_path / "net.npz", matrix)
    with pytest.raises(InputError, match="a readable .npz network"):
        read_network(tmp_path / "net.npz")


@pytest.mark.parametrize("end", [0, -(2**63)])
def test_rows_of_a_sparse_matrix_that_end_before_they_begin_are_refused(end, tmp_path):
    matrix = csr_array(np.ones((3, 3)))
    parts = {"indices": matrix.indices, "data": matrix.data, "shape": matrix.shape}
    np.savez(tmp_path / "net.npz", indptr=[0, 3, 6, end], format=b"csr", **parts)
    with pytest.raises(InputError, match="ends before it begins"):
        read_network(tmp_path / "net.npz")


def test_indices_of_a_sparse_matrix_are_whole_numbers(tmp_path):
    parts = {"row": [0.0, 1.0], "col": [1, 0], "data": [1, 1], "shape": [2, 2], "format": b"coo"}
    np.savez(tmp_path / "net.npz", **parts)
    with pytest.raises(InputError, match="the array row holds float64"):
        read_network(tmp_path / "net.npz")


@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_an_array_that_claims_more_than_a_file_can_hold_is_not_read(tmp_path, ending):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (30_000, 30_000)}
    )
    path = tmp_path / f"net{ending}"
    path.write_bytes(header.getvalue())
    if ending == ".npz":
        with zipfile.ZipFile(path, "w") as files:
            files.writestr("adjacency.npy", header.getvalue())
    with pytest.raises(InputError, match=r"7,200 MB when expanded: expected at most 67 MB"):
        read_network(path)
