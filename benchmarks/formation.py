"""How long formation takes, how that grows, and how its cuts compare with other tools'.

    python benchmarks/formation.py --quick        # small networks only, about a minute
    python benchmarks/formation.py --json         # the same as JSON

Peers that are not installed are skipped with a line: ``pip install -c constraints.txt '.[peers]'``.
Times are of this machine; compare the growth exponent and the ratios within one run.
"""

import argparse
import importlib
import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
from scipy.sparse import csr_matrix

from ssdfl.arrays import IntArray
from ssdfl.clusters import (
    Clusters,
    Device,
    FormationSettings,
    ScoreInputs,
    clusters_of,
    form_clusters,
    labels_of,
    unknown_devices,
)
from ssdfl.clusters.cost_aware import partitions_by_cost
from ssdfl.graph import Network, conductance, load_network, metropolis
from ssdfl.rng import generator

PAPER = {"partition": "paper", "score": "stationarity"}
LITERAL = (
    "er:n=50,p=0.1,seed=1",
    "er:n=50,p=0.1,seed=2",
    "er:n=50,p=0.1,seed=3",
    "ba:n=50,m=1,seed=1",
    "rgeo:n=50,radius=0.2,seed=1",
    "ws:n=50,k=3,p=0.2,seed=1",
    "complete:n=50",
)
GROWTH = (1000, 2000, 4000, 10_000)
KINDS = {"er": "er:n={n},p={p},seed=1", "rgeo": "rgeo:n={n},radius={radius},seed=1"}


def some_devices(network: Network) -> list[Device]:
    """Devices with three labels of ten each."""
    rng = generator(0, "benchmark")
    return [Device(np.bincount(rng.choice(10, 3, replace=False), minlength=10).astype(float))
            for _ in range(network.num_devices)]  # fmt: skip


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and the result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def formation_time(spec: str, settings: dict[str, Any]) -> dict[str, Any]:
    """One formation: how long, and what it skipped."""
    network = load_network(spec)
    devices = some_devices(network)
    cpu_s = time.process_time()
    seconds, plan = timed(lambda: form_clusters(network, devices, FormationSettings(**settings)))
    cpu_s = time.process_time() - cpu_s
    return {
        "network": spec,
        "devices": network.num_devices,
        "partition": plan.partition,
        "mode": plan.mode,
        "seconds": round(seconds, 3),
        "cpu_s": round(cpu_s, 3),
        "clusters": plan.num_clusters,
        "inexact": plan.skipped.inexact,
        "memory_MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
    }


def sparse_spec(kind: str, n: int) -> str:
    """A network of about six links per device."""
    return KINDS[kind].format(n=n, p=6 / n, radius=round(float(np.sqrt(6 / np.pi / n)), 5))


def exponent(rows: list[dict[str, Any]]) -> float:
    """e of seconds ~ N^e, by least squares on logarithms."""
    sizes = np.log([row["devices"] for row in rows])
    return float(np.polyfit(sizes, np.log([row["seconds"] for row in rows]), 1)[0])


def by_metis(network: Network, num_clusters: int) -> IntArray:
    """METIS's k-way partition."""
    pymetis = importlib.import_module("pymetis")
    A = network.adjacency
    graph = pymetis.CSRAdjacency(A.indptr.tolist(), A.indices.tolist())
    options = pymetis.Options(contig=True)
    return np.array(pymetis.part_graph(num_clusters, adjacency=graph, options=options)[1])


def by_paris(network: Network, num_clusters: int) -> IntArray:
    """scikit-network's hierarchical clustering, cut at so many clusters."""
    hierarchy = importlib.import_module("sknetwork.hierarchy")
    A = network.adjacency
    matrix = csr_matrix(
        (A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32)), shape=A.shape
    )
    dendrogram = hierarchy.Paris().fit_predict(matrix)
    return np.asarray(hierarchy.cut_straight(dendrogram, n_clusters=num_clusters))


def by_leiden(network: Network, num_clusters: int) -> IntArray:
    """Leiden's communities at the resolution that gives about so many."""
    leidenalg, igraph = (importlib.import_module(name) for name in ("leidenalg", "igraph"))
    graph = igraph.Graph(n=network.num_devices, edges=network.links.tolist())
    low, high = 1e-4, 100.0
    best: list[int] = []
    for _ in range(12):
        middle = (low * high) ** 0.5
        found = leidenalg.find_partition(
            graph, leidenalg.RBConfigurationVertexPartition, resolution_parameter=middle, seed=0
        )
        if not best or abs(len(found) - num_clusters) < abs(len(set(best)) - num_clusters):
            best = found.membership
        low, high = (middle, high) if len(found) < num_clusters else (low, middle)
    return np.array(best)


def by_greedy_modularity(network: Network, num_clusters: int) -> IntArray:
    """NetworkX's greedy modularity, stopped at so many communities."""
    found = nx.community.greedy_modularity_communities(
        network.to_networkx(), cutoff=num_clusters, best_n=num_clusters
    )
    return labels_of(tuple(tuple(sorted(group)) for group in found), network.num_devices)


def by_ssdfl(rule: str) -> Callable[[Network, int], IntArray]:
    """One family of our cost-aware partition."""

    def work(network: Network, num_clusters: int) -> IntArray:
        found = next(
            partitions_by_cost(ScoreInputs(network, unknown_devices(network)), [num_clusters])
        )
        clusters = {name: clusters for clusters, name in found}.get(rule, found[0][0])
        return labels_of(clusters, network.num_devices)

    return work


PEERS: dict[str, tuple[str, Callable[[Network, int], IntArray]]] = {
    "ssdfl bisection": ("ssdfl", by_ssdfl("bisection")),
    "ssdfl agglomeration": ("ssdfl", by_ssdfl("agglomeration")),
    "METIS": ("pymetis", by_metis),
    "scikit-network Paris": ("sknetwork", by_paris),
    "Leiden": ("leidenalg", by_leiden),
    "NetworkX greedy modularity": ("networkx", by_greedy_modularity),
}


def quality(network: Network, clusters: Clusters) -> dict[str, Any]:
    """Share of links between clusters, least conductance inside one, and unconnected pieces."""
    labels = labels_of(clusters, network.num_devices)
    i, j = network.links.T
    graph = network.to_networkx()
    blocks = [network.adjacency[list(c)][:, list(c)] for c in clusters]
    return {
        "clusters": len(clusters),
        "links_cut": round(float((labels[i] != labels[j]).mean()), 4),
        "least_conductance": round(
            min(conductance(metropolis(b), 1 << 14).upper for b in blocks), 4
        ),
        "smallest": min(len(c) for c in clusters),
        "largest": max(len(c) for c in clusters),
        "disconnected": sum(not nx.is_connected(graph.subgraph(c)) for c in clusters),
    }


def compare(spec: str, num_clusters: int) -> list[dict[str, Any]]:
    """All peers on one network at the same number of clusters."""
    network = load_network(spec)
    rows = []
    for name, (module, work) in PEERS.items():
        try:
            importlib.import_module(module)
        except ImportError:
            print(f"skipped {name}: {module} is not installed", file=sys.stderr)
            continue
        seconds, labels = timed(lambda work=work: work(network, num_clusters))  # type: ignore[misc]
        found = quality(network, clusters_of(labels))
        rows.append({"network": spec, "tool": name, "seconds": round(seconds, 4), **found})
    return rows


def print_rows(title: str, rows: list[dict[str, Any]]) -> None:
    """A table in Markdown."""
    print(f"\n{title}\n")
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(str(value) for value in row.values()) + " |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="networks of at most 2,000 devices")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sizes = GROWTH[:2] if options.quick else GROWTH
    literal = [formation_time(s, {"mode": "literal", **p}) for s in LITERAL for p in (PAPER, {})]
    growth = {
        f"{kind}, {settings.get('partition', 'cost')}": [
            formation_time(sparse_spec(kind, n), {"mode": "fast", **settings}) for n in sizes
        ]
        for kind in KINDS
        for settings in ({}, PAPER)
    }
    peers = [
        *compare("sites:sites=10,size=20,density=0.3,links=2,seed=1", 10),
        *compare("rgeo:n=400,radius=0.08,seed=1", 16),
        *compare("er:n=400,p=0.015,seed=1", 16),
    ]
    exponents = {name: round(exponent(rows), 2) for name, rows in growth.items()}
    if options.json:
        print(
            json.dumps(
                {"literal": literal, "fast": growth, "exponents": exponents, "peers": peers},
                indent=1,
            )
        )
        return
    print_rows("Literal, 50 devices", literal)
    for name, rows in growth.items():
        print_rows(f"Fast: {name}: seconds ~ N^{exponents[name]}", rows)
    print_rows("At the same number of clusters", peers)


if __name__ == "__main__":
    main()
