"""Networks on disk: GraphML, CSV edge list, node-link JSON, adjacency ``.npy``/``.npz``."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx
import numpy as np
from scipy.sparse import coo_array, issparse, load_npz

from ssdfl.errors import InputError
from ssdfl.files import atomic_path, write_text
from ssdfl.graph.network import Network, from_networkx

LINK_COSTS = ("latency_s", "bandwidth_Bps")


def read_network(path: Path) -> Network:
    """The network in a file, by its ending.

    Raises:
        InputError: no such file, an unknown ending, unreadable content, or a network that is not connected.
    """
    reader = FORMATS.get(path.suffix.lower(), (None, None))[0]
    if reader is None:
        raise InputError("network file", str(path), f"an ending of {', '.join(FORMATS)}", "Convert the file.")
    try:
        graph = reader(path)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError("network file", str(path), "an existing file", "Check the path.") from None
    except (OSError, ValueError, KeyError, TypeError, ParseError, nx.NetworkXException) as error:
        raise InputError(
            "network file", str(path), f"a readable {path.suffix} network", f"The reader says: {error}."
        ) from error
    if len(graph) == 0:
        raise InputError("network file", str(path), "at least 1 device", "The file holds no devices.")
    network = from_networkx(graph, title=path.name)
    _check_connected(network, path)
    return network


def _check_connected(network: Network, path: Path) -> None:
    labels = network.components()
    if labels.max() > 0:
        stranded = network.names[int(np.argmax(labels != labels[0]))]
        raise InputError(
            f"network file {path}: connected parts",
            int(labels.max() + 1),
            "1, a connected network",
            f"Add a link between device {network.names[0]} and device {stranded}, or keep one part.",
        )


def write_network(network: Network, path: Path) -> None:
    """Write a network in the format of the path's ending, so that `read_network` gives it back.

    CSV has no place for device costs, and CSV and adjacency files none for positions.
    """
    writer = FORMATS.get(path.suffix.lower(), (None, None))[1]
    if writer is None:
        raise InputError("network file", str(path), f"an ending of {', '.join(FORMATS)}", "Choose one.")
    writer(network, path)


def _read_graphml(path: Path) -> nx.Graph:
    return nx.read_graphml(path)


def _write_graphml(network: Network, path: Path) -> None:
    with atomic_path(path) as temporary:
        nx.write_graphml(network.to_networkx(), temporary)


def _read_json(path: Path) -> nx.Graph:
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    return nx.node_link_graph(data, edges="edges" if "edges" in data else "links")


def _write_json(network: Network, path: Path) -> None:
    write_text(path, json.dumps(nx.node_link_data(network.to_networkx(), edges="edges"), indent=1) + "\n")


def _read_csv(path: Path) -> nx.Graph:
    with path.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    if not rows or not {"source", "target"} <= rows[0].keys():
        raise InputError(
            f"header of {path}",
            ",".join(rows[0] if rows else []),
            "source,target[,latency_s,bandwidth_Bps]",
            "Name the columns so.",
        )
    graph = nx.Graph()
    names = {row[end] for row in rows for end in ("source", "target")}
    whole = all(name.isdecimal() for name in names)
    graph.add_nodes_from(sorted(names, key=lambda name: (int(name) if whole else 0, name)))
    for line, row in enumerate(rows, start=2):
        costs = {key: row[key] for key in LINK_COSTS if row.get(key)}
        link = (row["source"], row["target"])
        if graph.has_edge(*link) and dict(graph.edges[link]) != costs:
            raise InputError(
                f"{path} line {line}", "-".join(link), "one cost per link", "Keep one of its lines."
            )
        graph.add_edge(*link, **costs)
    return graph


def _write_csv(network: Network, path: Path) -> None:
    with atomic_path(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines)
        writer.writerow(["source", "target", *LINK_COSTS])
        for (i, j), *costs in zip(network.links, network.latency_s, network.bandwidth_Bps, strict=True):
            writer.writerow([network.names[i], network.names[j], *map(float, costs)])


def _read_npy(path: Path) -> nx.Graph:
    return _from_arrays({"adjacency": np.load(path, allow_pickle=False)})


def _read_npz(path: Path) -> nx.Graph:
    """Named arrays ``adjacency`` and perhaps costs, or a matrix that `scipy.sparse.save_npz` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        if "adjacency" in arrays:
            return _from_arrays(dict(arrays))
    return _from_arrays({"adjacency": load_npz(path)})


def _from_arrays(arrays: dict[str, Any]) -> nx.Graph:
    """(N, N) ``adjacency`` (non-zero is a link), ``latency_s``, ``bandwidth_Bps``; (N,) ``compute_s``."""
    A = arrays["adjacency"]
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise InputError("adjacency", A.shape, "a square matrix", "Store one row and column per device.")
    links = coo_array(A)
    symmetric = (A != A.T).nnz == 0 if issparse(A) else np.array_equal(A, A.T)
    if not symmetric:
        raise InputError("adjacency", "asymmetric", "a symmetric matrix", "Links go both ways: use A + A.T.")
    graph = nx.empty_graph(A.shape[0])
    for i, j in zip(links.row.tolist(), links.col.tolist(), strict=True):
        if i < j:
            graph.add_edge(i, j, **{key: float(arrays[key][i, j]) for key in LINK_COSTS if key in arrays})
    if "compute_s" in arrays:
        nx.set_node_attributes(graph, dict(enumerate(arrays["compute_s"].tolist())), "compute_s")
    return graph


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
            compute_s=network.compute_s,
        )


Reader = Callable[[Path], nx.Graph]
Writer = Callable[[Network, Path], None]

FORMATS: dict[str, tuple[Reader, Writer]] = {
    ".graphml": (_read_graphml, _write_graphml),
    ".csv": (_read_csv, _write_csv),
    ".json": (_read_json, _write_json),
    ".npy": (_read_npy, _write_npy),
    ".npz": (_read_npz, _write_npz),
}
