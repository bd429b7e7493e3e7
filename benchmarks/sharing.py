"""How devices are shared out to ranks: ours beside METIS.

    python benchmarks/sharing.py        # a minute; needs pymetis, which the extra `peers` has

For each network and number of ranks: rows that have to cross between ranks when all links mix, the
largest share of devices over a fair one, and seconds of one core.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from ssdfl.arrays import IntArray, SparseMatrix
from ssdfl.clusters import assign_to_ranks, labels_of
from ssdfl.graph import load_network

NETWORKS = (
    "er:n=50,p=0.1,seed=1",
    "er:n=400,p=0.02,seed=1",
    "er:n=2000,p=0.004,seed=1",
    "ba:n=500,m=2,seed=0",
    "ws:n=300,k=4,p=0.1,seed=0",
    "rgeo:n=300,seed=0",
    "grid:rows=20,cols=20",
    "torus:rows=20,cols=20",
    "ring:n=200",
    "sites:sites=40,size=10,seed=0",
    "sites:sites=200,size=10,seed=0",
    "sites:sites=1000,size=10,seed=0",
    "cliques:cliques=12,size=8",
    "complete:n=60",
)
RANKS = (2, 7, 8)


def ours(links: SparseMatrix, num_ranks: int) -> IntArray:
    """The ranks that devices get in runs."""
    return labels_of(assign_to_ranks(links, num_ranks), links.shape[0])


def metis(links: SparseMatrix, num_ranks: int) -> IntArray:
    """Those that METIS gives them, by recursive bisection and with 2 % of slack, as ours."""
    pymetis = importlib.import_module("pymetis")
    graph = pymetis.CSRAdjacency(links.indptr.tolist(), links.indices.tolist())
    options = pymetis.Options(ufactor=20, seed=0)
    found = pymetis.part_graph(num_ranks, adjacency=graph, options=options, recursive=True)
    return np.array(found[1], dtype=np.int64)


def measure(
    share: Callable[[SparseMatrix, int], IntArray], links: SparseMatrix, num_ranks: int
) -> tuple[int, float, float]:
    """Rows that cross, the largest share over a fair one, and seconds."""
    begun_s = time.process_time()
    owner = share(links, num_ranks)
    took_s = time.process_time() - begun_s
    entries = links.tocoo()
    apart = owner[entries.row] != owner[entries.col]
    pairs = np.stack([entries.row[apart], owner[entries.col[apart]]])
    largest = np.bincount(owner, minlength=num_ranks).max()
    return len(np.unique(pairs, axis=1).T), largest * num_ranks / len(owner), took_s


def main() -> None:
    """Measure and print."""
    metis(csr_array(load_network("ring:n=4").adjacency), 2)  # loads it
    print("| network | ranks | rows | METIS | largest share | METIS | seconds | METIS |")
    print("|---|---|---|---|---|---|---|---|")
    ratios = []
    for spec in NETWORKS:
        links = csr_array(load_network(spec).adjacency)
        for num_ranks in RANKS:
            pairs = zip(*(measure(share, links, num_ranks) for share in (ours, metis)), strict=True)
            rows, shares, seconds = pairs
            ratios.append(rows[0] / rows[1])
            print(
                f"| `{spec}` | {num_ranks} | {rows[0]:,} | {rows[1]:,} | {shares[0]:.2f} "
                f"| {shares[1]:.2f} | {seconds[0]:.2f} | {seconds[1]:.3f} |",
                flush=True,
            )
    print(f"\nRows, ours / METIS, geometric mean: {np.exp(np.mean(np.log(ratios))):.3f}")


if __name__ == "__main__":
    main()
