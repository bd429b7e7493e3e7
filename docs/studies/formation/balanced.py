"""Would candidates that see data be chosen, and would they be better?

    python docs/studies/formation/balanced.py               # cases with one label per device, to 20 devices
    python docs/studies/formation/balanced.py er-50-1 ba-30-1

At every number of clusters a third partition joins bisection and agglomeration: agglomeration that, among
links of about the same time, merges the two clusters whose data together are nearest to the whole's. Of the
best of the three single devices are moved by the predicted score. If the least score of all these is below
that of the partitions in ``measurements.csv``, its partition is trained, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from heapq import heapify, heappop, heappush

import numpy as np
from measure import Case, Row, cases, costs_to, inputs_of, instance_of, read, train_to

from report import clusters_in
from ssdfl.arrays import FloatArray, IntArray
from ssdfl.clusters import SCORES, Clusters, ScoreInputs
from ssdfl.clusters.cost_aware import Agglomeration, clusters_after_merges, move_devices, partitions_by_cost

SCORE = SCORES["time"]


def balanced_merges(inputs: ScoreInputs) -> IntArray:
    """(N − 1, 2) merges as of `agglomerate`, but for closeness the fall of Σ_s N_s ‖mean_s − mean‖²."""
    clusters = Agglomeration(inputs)
    sums = dict(enumerate(inputs.differences))

    def scatter(total: FloatArray, size: int) -> float:
        return float(total @ total) / size

    def priority(a: int, b: int) -> tuple[int, float, int, int]:
        sizes = clusters.size[a], clusters.size[b]
        apart = scatter(sums[a], sizes[0]) + scatter(sums[b], sizes[1])
        fall = apart - scatter(sums[a] + sums[b], sum(sizes))
        return clusters.between[a][b][0], -round(fall, 9), min(a, b), max(a, b)

    queue = [priority(a, b) for a in clusters.between for b in clusters.between[a] if a < b]
    heapify(queue)
    merges = []
    while queue:
        entry = heappop(queue)
        a, b = entry[2:]
        if b not in clusters.between.get(a, {}) or priority(a, b) != entry:
            continue
        merges.append((a, b))
        clusters.merge(a, b)
        sums[a] = sums[a] + sums[b]
        for c in clusters.between[a]:
            heappush(queue, priority(a, c))
    return np.array(merges, dtype=np.int64).reshape(-1, 2)


def candidates(inputs: ScoreInputs) -> Iterator[Clusters]:
    """The best of three partitions of every size, with devices moved."""
    n = inputs.network.num_devices
    merges = balanced_merges(inputs)
    for size, found in enumerate(partitions_by_cost(inputs, range(1, n + 1)), start=1):
        options = [clusters for clusters, _ in found] + [clusters_after_merges(merges, n, size)]
        best = min(options, key=lambda clusters: SCORE(inputs, clusters))
        yield move_devices(inputs, best, SCORE)


def line(case: Case, rows: list[Row]) -> str:
    """What changes in a case, as a row of a table."""
    inputs = inputs_of(case, 0)
    seconds = {clusters_in(row): float(row["seconds"]) for row in rows}
    before = min((clusters_in(row) for row in rows if "cost" in row["rules"]), key=lambda c: SCORE(inputs, c))
    after = min([before, *candidates(inputs)], key=lambda clusters: SCORE(inputs, clusters))
    if after not in seconds:
        target = float(rows[0]["target"])
        instance = instance_of(case, inputs.network, 0)
        seconds[after] = costs_to(target, train_to(target, case, instance, after))[1]
    less = 1 - SCORE(inputs, after) / SCORE(inputs, before)
    best = min(float(row["seconds"]) for row in rows)
    regrets = (f"{seconds[clusters] / best - 1:.1%}" for clusters in (before, after))
    return f"| {case.name} | {len(before)} | {len(after)} | {less:.1%} | {' | '.join(regrets)} |"


def main() -> None:
    """Print a table of the cases."""
    wanted = sys.argv[1:]
    rows = read()
    print("| case | S before | S after | predicted less | regret before | after |\n|---|---|---|---|---|---|")
    for case in cases():
        small = case.labels_per_device == 1 and int(case.name.split("-")[1]) <= 20
        if case.name in wanted or (not wanted and small):
            print(line(case, [row for row in rows if row["case"] == case.name]), flush=True)


if __name__ == "__main__":
    main()
