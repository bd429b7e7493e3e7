"""Compare plans by label frequencies with plans by sketches of gradients.

    python docs/studies/formation/sketches.py     # writes sketches.csv, prints a summary; minutes

Both choose from the same measured partitions of the study, by the score ``time`` with the linear
prediction, since learning is simulated only with labels. The regret is how many more seconds a
choice took to the target than the best partition.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
from measure import Case, Row, cases, inputs_of, instance_of, network_of, pool, read

from report import POLICIES, candidates_of, clusters_in
from ssdfl.clusters import ScoreInputs, choose
from ssdfl.clusters.formation import INDIFFERENCE
from ssdfl.learning import describe_devices

HERE = Path(__file__).parent
POLICY = POLICIES["default (cost, time)"]


def sketched(case: Case, seed: int, inputs: ScoreInputs) -> ScoreInputs:
    """The same case with devices described by their gradients."""
    instance = instance_of(case, network_of(case), seed)
    devices = describe_devices(instance.task, instance.optimizers, seed=seed, sketch=True)
    return replace(inputs, devices=devices)


def regrets(case: Case, seed: int, rows: list[Row]) -> dict[str, object]:
    """What each description's choice cost beyond the best."""
    inputs = replace(inputs_of(case, seed), simulates=False)
    known = pool(inputs)
    measured_rows = [row for row in rows if clusters_in(row) in known]
    seconds = {row["labels"]: float(row["seconds"]) for row in measured_rows}
    result: dict[str, object] = {
        "case": case.name,
        "seed": seed,
        "labels_per_device": case.labels_per_device,
    }
    for name, one in (("labels", inputs), ("sketch", sketched(case, seed, inputs))):
        found = candidates_of(one, measured_rows, POLICY, known)
        chosen, _ = choose(found, POLICY.price, INDIFFERENCE)
        result[f"{name}_clusters"] = chosen.num_clusters
        result[f"{name}_regret"] = round(seconds[chosen.rule] / min(seconds.values()) - 1, 4)
    return result


def main() -> None:
    """Judge all cases of the first seed, and print medians and percentiles."""
    by_case: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in read():
        by_case[row["case"], int(row["seed"])].append(row)
    named = {case.name: case for case in cases()}
    found = [regrets(named[name], seed, rows) for (name, seed), rows in by_case.items()]
    with (HERE / "sketches.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, found[0])
        writer.writeheader()
        writer.writerows(found)
    print("| described by | median regret | mean | 90th percentile | worst |")
    print("|---|---|---|---|---|")
    for name in ("labels", "sketch"):
        values = np.array([float(str(row[f"{name}_regret"])) for row in found])
        shown = (
            np.median(values),
            values.mean(),
            np.quantile(values, 0.9, method="higher"),
            values.max(),
        )
        print(f"| {name} | {' | '.join(f'{value:.1%}' for value in shown)} |")
    same = np.mean([row["labels_clusters"] == row["sketch_clusters"] for row in found])
    print(f"\n{len(found)} cases; the same number of clusters in {same:.0%}.")


if __name__ == "__main__":
    main()
