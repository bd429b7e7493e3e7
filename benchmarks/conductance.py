"""Conductance before certificates and certified: intervals, seconds, and seconds to check.

    python benchmarks/conductance.py
    python benchmarks/conductance.py --seconds 60 --only grid-15 regular-0

Seconds are those of one core. ``before`` are the intervals of `conductance` at commit 9096024.
"""

import argparse
import json
import time
from collections.abc import Callable

import networkx as nx

from ssdfl.graph import (
    NetworkLike,
    certify,
    check_certificate,
    conductance,
    load_network,
    metropolis,
)
from ssdfl.graph.conductance import Conductance
from ssdfl.graph.mixing import MixingMatrix

NETWORKS: dict[str, tuple[Callable[[], NetworkLike], str]] = {
    "grid-10": (lambda: "grid:rows=10,cols=10", "0.042"),
    "grid-15": (lambda: "grid:rows=15,cols=15", "0.00451 … 0.02946"),
    "er-0.05": (lambda: "er:n=100,p=0.05", "0.03042 … 0.09646"),
    "er-0.08": (lambda: "er:n=100,p=0.08", "0.04824 … 0.125"),
    "er-0.1": (lambda: "er:n=100,p=0.1", "0.11048 … 0.21221"),
    "er-0.2": (lambda: "er:n=100,p=0.2", "0.23195 … 0.30722"),
    "regular-0": (lambda: nx.random_regular_graph(4, 100, seed=0), "0.0657 … 0.128"),
    "regular-1": (lambda: nx.random_regular_graph(4, 100, seed=1), "0.06408 … 0.12766"),
    "rgeo-0.08": (lambda: "rgeo:n=400,radius=0.08", "0.00561"),
    "rgeo-0.09": (lambda: "rgeo:n=400,radius=0.09", "0.00194 … 0.01432"),
    "rgeo-0.1": (lambda: "rgeo:n=400,radius=0.1", "0.00332 … 0.01997"),
    "rgeo-0.2": (lambda: "rgeo:n=400,radius=0.2", "0.0202 … 0.06861"),
    "hypercube-64": (lambda: nx.hypercube_graph(6), "0.14286 … 0.14286"),
}


def shown(found: Conductance) -> str:
    """A value, or both ends."""
    lower, upper = (f"{round(end, 5):g}" for end in (found.lower, found.upper))
    return upper if found.exact else f"{lower} … {upper}"


def row(name: str, before: str, W: MixingMatrix, seconds: float) -> str:
    """Measure one network."""
    begin = time.process_time()
    searched = conductance(W)
    search_s = time.process_time() - begin
    certificate = certify(W, seconds)
    certify_s = time.process_time() - begin - search_s
    text = json.dumps(certificate.as_json())
    begin = time.process_time()
    check_certificate(W.toarray(), json.loads(text))
    check_s = time.process_time() - begin
    return (
        f"| {name} | {before} | {shown(searched)} | {search_s:.1f} "
        f"| {shown(certificate.conductance)} | {certificate.proof['kind']} "
        f"| {certify_s:.1f} | {check_s:.1f} | {len(text) / 1e6:.2f} |"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Conductance, searched and certified.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", nargs="*", default=list(NETWORKS), choices=list(NETWORKS))
    arguments = parser.parse_args()
    print("| network | before | `conductance` | s | certified | proof | s | check s | MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in arguments.only:
        make, before = NETWORKS[name]
        W = metropolis(load_network(make()).adjacency)
        print(row(name, before, W, arguments.seconds), flush=True)


if __name__ == "__main__":
    main()
