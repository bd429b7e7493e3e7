"""Would candidates that see data be chosen, and would they be better?

    python docs/studies/formation/balanced.py             # up to 20 devices, one label each
    python docs/studies/formation/balanced.py er-50-1 ba-30-1

At every number of clusters, all partitions that ``--partition balanced`` weighs are scored, and
the best one is improved by moving single devices by the predicted score. If the least score of
all is below that of the partitions in ``measurements.csv``, its partition is trained, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from measure import Case, Row, cases, costs_to, inputs_of, instance_of, read, train_to

from report import clusters_in
from ssdfl.clusters import SCORES, Clusters, ScoreInputs
from ssdfl.clusters.balanced import partitions_by_data
from ssdfl.clusters.cost_aware import move_devices

SCORE = SCORES["time"]


def candidates(inputs: ScoreInputs) -> Iterator[Clusters]:
    """The best of three partitions of every size, with devices moved."""
    for found in partitions_by_data(inputs, range(1, inputs.network.num_devices + 1)):
        best = min(
            (clusters for clusters, _ in found), key=lambda clusters: SCORE(inputs, clusters)
        )
        yield move_devices(inputs, best, SCORE)


def line(case: Case, rows: list[Row]) -> str:
    """What changes in a case, as a row of a table."""
    inputs = inputs_of(case, 0)
    seconds = {clusters_in(row): float(row["seconds"]) for row in rows}
    before = min(
        (clusters_in(row) for row in rows if "cost" in row["rules"]), key=lambda c: SCORE(inputs, c)
    )
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
    print(
        "| case | S before | S after | predicted less | regret before | after |\n"
        "|---|---|---|---|---|---|"
    )
    for case in cases():
        small = case.labels_per_device == 1 and int(case.name.split("-")[1]) <= 20
        if case.name in wanted or (not wanted and small):
            print(line(case, [row for row in rows if row["case"] == case.name]), flush=True)


if __name__ == "__main__":
    main()
