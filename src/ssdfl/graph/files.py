"""Networks on disk: GraphML, GML, CSV edge list, node-link JSON, adjacency ``.npy``/``.npz``."""

from __future__ import annotations

import csv
import json
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, load_npz

from ssdfl.arrays import IntArray, SparseMatrix
from ssdfl.claims import DEFLATE_EXPANSION, check_arrays
from ssdfl.errors import InputError, InputWarning
from ssdfl.files import atomic_path, indentation, write_text
from ssdfl.graph.attributes import LINK_UNITS, read_costs
from ssdfl.graph.conversion import DEVICE_DEFAULTS, announcements, from_networkx
from ssdfl.graph.memory import check_fits
from ssdfl.graph.network import Graph, Network
from ssdfl.lazy import LazyModule
from ssdfl.mappings import picked

if TYPE_CHECKING:
    import networkx as nx
else:
    nx = LazyModule("networkx")

LINK_COSTS = ("latency_s", "bandwidth_Bps")
_ENDS = ("source", "target")
_ARRAYS = ("adjacency", *LINK_COSTS, *DEVICE_DEFAULTS)
_INDICES = {"row", "col", "coords", "indices", "indptr", "offsets", "shape"}
"""Arrays of a sparse matrix's file that say where its entries are."""


def read_network(path: Path | str, connected: bool = True) -> Network:
    """The network in a file, by its ending.

    Args:
        connected: refuse a network of several parts; a file of links to add may have them.

    Raises:
        InputError: no such file, an unknown ending, unreadable content, or a network that is not
            connected.
    """
    path = Path(path)
    reader, _ = _format_of(path, "Convert the file.")
    try:
        graph = reader(path)
        if len(graph) == 0:
            raise ValueError("it holds no devices")
        network = from_networkx(graph, title=path.name)
        notes = announcements(graph)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError("network file", str(path), "an existing file", "Check the path.") from None
    except Exception as error:  # whatever a broken file makes one of six parsers raise
        raise InputError(
            "network file",
            str(path),
            f"a readable {path.suffix} network",
            f"The reader says: {type(error).__name__}: {error}.",
        ) from error
    if connected:
        check_connected(network, f"network file {path}")
    for note in notes:
        warnings.warn(f"{path.name}: {note}", InputWarning, stacklevel=2)
    return network


def check_connected(network: Network, what: str) -> None:
    """Refuse a network of several parts, naming a link that would join two of them.

    Raises:
        InputError: it is not connected.
    """
    labels = network.components()
    if labels.max() > 0:
        stranded = network.names[int(np.argmax(labels != labels[0]))]
        raise InputError(
            f"{what}: connected parts",
            int(labels.max() + 1),
            "1, a connected network",
            f"Add a link between device {network.names[0]} and device {stranded}, "
            "or keep one part.",
        )


def write_network(network: Network, path: Path | str) -> None:
    """Write a network in the format of the path's ending, so that `read_network` gives it back.

    CSV has no place for device costs, and CSV and adjacency files none for positions.
    """
    path = Path(path)
    _, writer = _format_of(path, "Choose one.")
    writer(network, path)


def _format_of(path: Path, remedy: str) -> tuple[Reader, Writer]:
    """What reads and writes files of a path's ending."""
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise InputError("network file", str(path), f"an ending of {', '.join(FORMATS)}", remedy)
    return FORMATS[ending]


def _read_graphml(path: Path) -> Graph:
    return _simple(nx.read_graphml(path))


def _simple(graph: Graph) -> Graph:
    """One undirected edge per link, listed once, or once in each direction with the same costs."""
    simple: Graph = nx.Graph()
    simple.add_nodes_from(graph.nodes(data=True))
    listed: set[tuple[Any, Any]] = set()
    for source, target, attributes in graph.edges(data=True):
        _add_link(simple, listed, source, target, attributes)
    return simple


def _add_link(
    graph: Graph, listed: set[tuple[Any, Any]], source: Any, target: Any, attributes: dict[str, Any]
) -> None:
    where = f"{source}-{target}"
    if (source, target) in listed:
        remedy = (
            "Merge its entries into one, with the latency and bandwidth that they have together."
        )
        raise InputError("link", where, "one entry, not several in parallel", remedy)
    listed.add((source, target))
    if graph.has_edge(source, target) and _costs(graph.edges[source, target]) != _costs(attributes):
        raise InputError("link", where, "one set of costs for it", "Keep one of its entries.")
    graph.add_edge(source, target, **attributes)


def _costs(attributes: dict[str, Any]) -> dict[str, float]:
    return read_costs(attributes, LINK_UNITS, "a link")


def _read_gml(path: Path) -> Graph:
    """GML as Topology Zoo and Rocketfuel maps have it: devices are called by their labels."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        text = path.read_text(encoding="latin-1")
    graph: Graph = nx.parse_gml(text, label="id")
    labels = Counter(str(data.get("label", node)) for node, data in graph.nodes(data=True))
    for node, data in graph.nodes(data=True):
        label = str(data.get("label", node))
        data.setdefault("name", label if labels[label] == 1 else f"{label} ({node})")
    return _simple(graph)


def _write_gml(network: Network, path: Path) -> None:
    with atomic_path(path) as temporary:
        nx.write_gml(network.to_networkx(), temporary)


def _write_graphml(network: Network, path: Path) -> None:
    with atomic_path(path) as temporary:
        nx.write_graphml(network.to_networkx(), temporary)


def _read_json(path: Path) -> Graph:
    return _parse_json(path.read_text(encoding="utf-8"))


def _parse_json(text: str) -> Graph:
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    key = "edges" if "edges" in data else "links"
    return _simple(
        nx.node_link_graph({**data, "multigraph": True}, edges=key)
    )  # keeps parallel links


def _write_json(network: Network, path: Path) -> None:
    write_text(path, to_json(network))


def to_json(network: Network) -> str:
    """A network as node-link JSON, with costs, positions and added links."""
    data = nx.node_link_data(network.to_networkx(), edges="edges")
    return json.dumps(data, indent=indentation(network.num_devices)) + "\n"


def from_json(text: str, title: str) -> Network:
    """The network that `to_json` has written; its title is not in the text."""
    return from_networkx(_parse_json(text), title=title)


def _read_csv(path: Path) -> Graph:
    header, rows = _csv_rows(path)
    _check_columns(path, header)
    graph: Graph = nx.Graph()
    graph.add_nodes_from(_in_order(_ends(path, rows)))
    listed: set[tuple[Any, Any]] = set()
    for row in rows:
        given = {key: value for key, value in row.items() if key not in _ENDS and value}
        _add_link(graph, listed, row["source"], row["target"], given)
    return graph


def _csv_rows(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    with path.open(newline="", encoding="utf-8-sig") as lines:
        reader = csv.DictReader(lines)
        header = [name.strip() for name in reader.fieldnames or []]
        reader.fieldnames = header
        return header, list(reader)


def _check_columns(path: Path, header: list[str]) -> None:
    if not {"source", "target"} <= set(header):
        expected = "source,target[,latency_s,bandwidth_Bps]"
        raise InputError(f"header of {path}", ",".join(header), expected, "Name the columns so.")


def _ends(path: Path, rows: list[dict[str, str]]) -> set[str]:
    """The names of all devices that links end at."""
    names: set[str] = set()
    for line, row in enumerate(rows, start=2):
        ends = {row["source"], row["target"]}
        if not all(ends):
            got = ",".join(filter(None, row.values()))
            raise InputError(f"{path} line {line}", got, "two devices", "Name both.")
        names |= ends
    return names


def _in_order(names: set[str]) -> list[str]:
    """Numbers by value, if all names are numbers; otherwise by the alphabet."""
    if all(name.isdecimal() for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


def _write_csv(network: Network, path: Path) -> None:
    with atomic_path(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines)
        writer.writerow(["source", "target", *LINK_COSTS])
        for (i, j), *costs in zip(
            network.links, network.latency_s, network.bandwidth_Bps, strict=True
        ):
            writer.writerow([network.names[i], network.names[j], *map(float, costs)])


def _read_npy(path: Path) -> Graph:
    check_arrays(path, DEFLATE_EXPANSION)
    return _from_arrays({"adjacency": np.load(path, allow_pickle=False)})


def _read_npz(path: Path) -> Graph:
    """Named arrays ``adjacency`` and optional costs, or a `scipy.sparse.save_npz` file."""
    claims = check_arrays(path, DEFLATE_EXPANSION)
    with np.load(path, allow_pickle=False) as arrays:
        if "adjacency" in arrays:
            for name in set(arrays) - set(_ARRAYS):
                warnings.warn(f"{path.name}: ignored array: {name}", InputWarning, stacklevel=2)
            return _from_arrays(picked(arrays, _ARRAYS))
        _check_kinds({name: arrays[name] for name in arrays.files})
        _check_sparse(path, int(arrays["shape"][0]), claims["data"].entries)
    matrix: Any = load_npz(path)
    if hasattr(matrix, "check_format"):  # else indices beyond the matrix would be followed
        matrix.check_format(full_check=True)
        _check_rows(matrix.indptr)
    return _from_arrays({"adjacency": matrix})


def _check_kinds(arrays: dict[str, NDArray[Any]]) -> None:
    """Refuse indices that are no whole numbers, which scipy would convert."""
    for name in _INDICES & arrays.keys():
        if arrays[name].dtype.kind not in "iu":
            raise ValueError(f"the array {name} holds {arrays[name].dtype}")


def _check_rows(ends: IntArray) -> None:
    """Refuse rows that end before they begin; scipy looks only if the last one ends above 0."""
    if (ends[1:] < ends[:-1]).any():  # a difference could overflow
        raise ValueError("a row of the matrix ends before it begins")


def _check_sparse(path: Path, num_devices: int, entries: int) -> None:
    """Refuse a matrix with too few entries to link all of its rows."""
    if num_devices > entries + 1:
        got = f"{num_devices:,} devices and {entries:,} links"
        raise InputError(f"matrix in {path}", got, "a connected network", "Check its shape.")
    check_fits(str(path), num_devices, entries / 2)


def _from_arrays(arrays: dict[str, Any]) -> Graph:
    """(N, N) ``adjacency``, ``latency_s``, ``bandwidth_Bps``; (N,) costs of devices."""
    A = csr_array(arrays["adjacency"])
    A.eliminate_zeros()
    _check_shapes(arrays, A.shape[0])
    for key, values in picked(arrays, ("adjacency", *LINK_COSTS)).items():
        _check_symmetric(key, csr_array(values))
    graph: Graph = nx.empty_graph(A.shape[0])
    _add_array_links(graph, A, picked(arrays, LINK_COSTS))
    for name, values in picked(arrays, DEVICE_DEFAULTS).items():
        nx.set_node_attributes(graph, dict(enumerate(values.tolist())), name)
    return graph


def _add_array_links(graph: Graph, A: SparseMatrix, costs: dict[str, Any]) -> None:
    links = A.tocoo()
    for i, j in zip(links.row.tolist(), links.col.tolist(), strict=True):
        if i < j:
            graph.add_edge(i, j, **{key: float(values[i, j]) for key, values in costs.items()})


def _check_shapes(arrays: dict[str, Any], num_devices: int) -> None:
    """Refuse arrays that do not have one row per device."""
    for key, array in arrays.items():
        shape = (num_devices,) if key in DEVICE_DEFAULTS else (num_devices, num_devices)
        if array.shape != shape:
            raise InputError(key, array.shape, f"the shape {shape}", "Store one row per device.")


def _check_symmetric(key: str, matrix: SparseMatrix) -> None:
    if abs(matrix - matrix.T).nnz:
        remedy = "Links go both ways: make it symmetric."
        raise InputError(key, "asymmetric", "a symmetric matrix of numbers", remedy)


def _write_npy(network: Network, path: Path) -> None:
    with atomic_path(path) as temporary:
        np.save(temporary, network.adjacency.toarray())


def _write_npz(network: Network, path: Path) -> None:
    with atomic_path(path) as temporary:
        np.savez_compressed(
            temporary,
            adjacency=network.adjacency.toarray(),
            latency_s=network.link_matrix(network.latency_s).toarray(),
            bandwidth_Bps=network.link_matrix(network.bandwidth_Bps).toarray(),
            **{name: getattr(network, name) for name in DEVICE_DEFAULTS},
        )


Reader = Callable[[Path], Graph]
Writer = Callable[[Network, Path], None]

FORMATS: dict[str, tuple[Reader, Writer]] = {
    ".graphml": (_read_graphml, _write_graphml),
    ".gml": (_read_gml, _write_gml),
    ".csv": (_read_csv, _write_csv),
    ".json": (_read_json, _write_json),
    ".npy": (_read_npy, _write_npy),
    ".npz": (_read_npz, _write_npz),
}
