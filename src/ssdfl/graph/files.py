"""Read and write networks: GraphML, GML, CSV, node-link JSON, adjacency ``.npy``/``.npz``."""

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
from ssdfl.graph.conversion import DEVICE_DEFAULTS, announcements, from_listing
from ssdfl.graph.listing import Listing, from_node_link, listing_of
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
"""The arrays with the positions of entries in a sparse matrix's file."""


def read_network(path: Path | str, connected: bool = True) -> Network:
    """The network in a file; the suffix decides the format.

    Args:
        connected: refuse a network of several parts; a file of links to add may have them.

    Raises:
        InputError: the file does not exist, its suffix is unknown, its content is unreadable, or
            the network is not connected.
    """
    path = Path(path)
    reader, _ = _format_of(path, "Convert the file.")
    try:
        listing = reader(path)
        if not listing.devices:
            raise ValueError("it holds no devices")
        network = from_listing(listing, title=path.name)
        notes = announcements(listing)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError("network file", str(path), "an existing file", "Check the path.") from None
    except Exception as error:  # the six parsers raise many kinds of errors for broken files
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
    """Refuse a network of several parts; the error suggests a link that joins two of them.

    Raises:
        InputError: the network is not connected.
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
    """Write a network, so that `read_network` reads it back; the suffix decides the format.

    CSV files cannot hold device costs. CSV and adjacency files cannot hold positions.
    """
    path = Path(path)
    _, writer = _format_of(path, "Choose one.")
    writer(network, path)


def _format_of(path: Path, remedy: str) -> tuple[Reader, Writer]:
    """The reader and writer for a path's suffix."""
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise InputError("network file", str(path), f"one of {', '.join(FORMATS)}", remedy)
    return FORMATS[ending]


def _read_graphml(path: Path) -> Listing:
    return listing_of(nx.read_graphml(path))


def _read_gml(path: Path) -> Listing:
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
    return listing_of(graph)


def _write_gml(network: Network, path: Path) -> None:
    with atomic_path(path) as temporary:
        nx.write_gml(network.to_networkx(), temporary)


def _write_graphml(network: Network, path: Path) -> None:
    with atomic_path(path) as temporary:
        nx.write_graphml(network.to_networkx(), temporary)


def _read_json(path: Path) -> Listing:
    return from_node_link(json.loads(path.read_text(encoding="utf-8")))


def _write_json(network: Network, path: Path) -> None:
    write_text(path, to_json(network))


def to_json(network: Network) -> str:
    """A network as node-link JSON, with costs, positions and added links."""
    devices, links = network.device_attributes(), network.link_attributes()
    data = {
        "directed": False,
        "multigraph": False,
        "graph": {"title": network.title},
        "nodes": [{**device, "id": place} for place, device in enumerate(devices)],
        "edges": [
            {**link, "source": i, "target": j}
            for (i, j), link in zip(network.links.tolist(), links, strict=True)
        ],
    }
    return json.dumps(data, indent=indentation(network.num_devices)) + "\n"


def from_json(text: str, title: str) -> Network:
    """The network that `to_json` has written; its title is not in the text."""
    return from_listing(from_node_link(json.loads(text)), title=title)


def _read_csv(path: Path) -> Listing:
    header, rows = _csv_rows(path)
    _check_columns(path, header)
    listing = Listing()
    for name in _in_order(_ends(path, rows)):
        listing.add_device(name, {})
    for row in rows:
        given = {key: value for key, value in row.items() if key not in _ENDS and value}
        listing.add_link(row["source"], row["target"], given)
    return listing


def _csv_rows(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    with path.open(newline="", encoding="utf-8-sig") as lines:
        reader = csv.DictReader(lines)
        header = [name.strip() for name in reader.fieldnames or []]
        reader.fieldnames = header
        return header, list(reader)


def _check_columns(path: Path, header: list[str]) -> None:
    if not {"source", "target"} <= set(header):
        expected = "source,target[,latency_s,bandwidth_Bps]"
        raise InputError(f"header of {path}", ",".join(header), expected, "Rename the columns.")


def _ends(path: Path, rows: list[dict[str, str]]) -> set[str]:
    """The names of all devices at the ends of links."""
    names: set[str] = set()
    for line, row in enumerate(rows, start=2):
        ends = {row["source"], row["target"]}
        if not all(ends):
            got = ",".join(filter(None, row.values()))
            raise InputError(f"{path} line {line}", got, "two devices", "Name both.")
        names |= ends
    return names


def _in_order(names: set[str]) -> list[str]:
    """Sort names by value if all are numbers, otherwise alphabetically."""
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


def _read_npy(path: Path) -> Listing:
    check_arrays(path, DEFLATE_EXPANSION)
    return _from_arrays({"adjacency": np.load(path, allow_pickle=False)})


def _read_npz(path: Path) -> Listing:
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
    if hasattr(matrix, "check_format"):  # otherwise indices outside the matrix would be used
        matrix.check_format(full_check=True)
        _check_rows(matrix.indptr)
    return _from_arrays({"adjacency": matrix})


def _check_kinds(arrays: dict[str, NDArray[Any]]) -> None:
    """Refuse indices that are not whole numbers, which scipy would convert."""
    for name in _INDICES & arrays.keys():
        if arrays[name].dtype.kind not in "iu":
            raise ValueError(f"the array {name} holds {arrays[name].dtype}")


def _check_rows(ends: IntArray) -> None:
    """Refuse rows that end before they begin; scipy checks only if the last one ends above 0."""
    if (ends[1:] < ends[:-1]).any():  # a difference could overflow
        raise ValueError("a row of the matrix ends before it begins")


def _check_sparse(path: Path, num_devices: int, entries: int) -> None:
    """Refuse a matrix with too few entries to be connected."""
    if num_devices > entries + 1:
        got = f"{num_devices:,} devices and {entries:,} links"
        raise InputError(f"matrix in {path}", got, "a connected network", "Check its shape.")
    check_fits(str(path), num_devices, entries / 2)


def _from_arrays(arrays: dict[str, Any]) -> Listing:
    """(N, N) ``adjacency``, ``latency_s``, ``bandwidth_Bps``; (N,) costs of devices."""
    A = csr_array(arrays["adjacency"])
    A.eliminate_zeros()
    _check_shapes(arrays, A.shape[0])
    for key, values in picked(arrays, ("adjacency", *LINK_COSTS)).items():
        _check_symmetric(key, csr_array(values))
    listing = Listing()
    costs = {name: values.tolist() for name, values in picked(arrays, DEVICE_DEFAULTS).items()}
    for device in range(A.shape[0]):
        listing.add_device(device, {name: values[device] for name, values in costs.items()})
    _add_array_links(listing, A, picked(arrays, LINK_COSTS))
    return listing


def _add_array_links(listing: Listing, A: SparseMatrix, costs: dict[str, Any]) -> None:
    links = A.tocoo()
    for i, j in zip(links.row.tolist(), links.col.tolist(), strict=True):
        if i < j:
            listing.add_link(i, j, {key: float(values[i, j]) for key, values in costs.items()})


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


Reader = Callable[[Path], Listing]
Writer = Callable[[Network, Path], None]

FORMATS: dict[str, tuple[Reader, Writer]] = {
    ".graphml": (_read_graphml, _write_graphml),
    ".gml": (_read_gml, _write_gml),
    ".csv": (_read_csv, _write_csv),
    ".json": (_read_json, _write_json),
    ".npy": (_read_npy, _write_npy),
    ".npz": (_read_npz, _write_npz),
}
