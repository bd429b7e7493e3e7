"""Is the simulation's choice faster than the linear law's on data that nobody has looked at?

    python docs/studies/formation/fresh.py     # writes fresh.csv, prints it; continues, minutes

The study's cases with strong drift and up to 30 devices, with seeds 1 to 3: other labels, samples,
optimizers and models than the study's seed 0. Only the two choices are trained, so there is no
regret, only the seconds of one against the other's.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import geometric_mean

from measure import (
    HERE,
    Case,
    base_cycles,
    cases,
    costs_to,
    inputs_of,
    instance_of,
    train,
    train_to,
)

from ssdfl.clusters import Clusters, FormationSettings, ScoreInputs, form_clusters
from ssdfl.clusters.candidates import choose
from ssdfl.clusters.formation import INDIFFERENCE, PRICE
from ssdfl.clusters.scores import SCORES

RESULTS = HERE / "fresh.csv"
FIELDS = ("case", "seed", "law_clusters", "simulated_clusters", "law_s", "simulated_s")
SEEDS = (1, 2, 3)
MOST_DEVICES = 30


def choices(inputs: ScoreInputs) -> tuple[Clusters, Clusters]:
    """What the linear law and the simulation choose from the same candidates."""
    settings = FormationSettings(
        inputs.constants, mode="literal", message_bytes=inputs.message_bytes
    )
    plan = form_clusters(inputs.network, inputs.devices, settings)
    linear = replace(inputs, simulates=False)
    by_law = [replace(c, score=SCORES["time"](linear, c.clusters)) for c in plan.candidates]
    return choose(by_law, PRICE, INDIFFERENCE)[0].clusters, plan.clusters


def compare(case: Case, seed: int) -> dict[str, object] | None:
    """Seconds to the target of both choices; None if drift is mild."""
    inputs = inputs_of(case, seed)
    if inputs.pilot is None:
        return None
    law, simulated = choices(inputs)
    seconds = {law: 1.0, simulated: 1.0}
    if law != simulated:
        instance = instance_of(case, inputs.network, seed)
        one = (tuple(range(inputs.network.num_devices)),)
        target = 0.9 * list(train(case, instance, one, base_cycles(case)))[-1]["score"]
        for clusters in seconds:
            records = train_to(target, case, instance, clusters)
            seconds[clusters] = costs_to(target, records)[1]
    times = (f"{seconds[clusters]:.6g}" for clusters in (law, simulated))
    values = (case.name, seed, len(law), len(simulated), *times)
    return dict(zip(FIELDS, values, strict=True))


def small_cases() -> list[Case]:
    """The study's cases with few devices, without those that repeat a network for every τ_a."""
    drawn = [case for case in cases() if not case.name.startswith("tau")]
    return [case for case in drawn if int(case.name.split("-")[1]) <= MOST_DEVICES]


def read() -> list[dict[str, str]]:
    """What was compared; equal choices have 1 second each."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def gains(rows: Sequence[Mapping[str, str]]) -> list[float]:
    """How many times as fast the simulation's choice is, where the choices differ."""
    return [
        float(row["law_s"]) / float(row["simulated_s"])
        for row in rows
        if row["law_s"] != row["simulated_s"]
    ]


def main() -> None:
    """Compare what is not compared yet."""
    known = read()
    done = {(row["case"], int(row["seed"])) for row in known}
    with RESULTS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not known:
            writer.writeheader()
        for seed, case in product(SEEDS, small_cases()):
            if (case.name, seed) not in done and (row := compare(case, seed)):
                writer.writerow(row)
                file.flush()
                print(*row.values(), flush=True)
    found = sorted(gains(read()))
    print(
        f"{len(found)} of {len(read())} choices differ; times as fast: least {found[0]:.2f}, "
        f"geometric mean {geometric_mean(found):.2f}, most {found[-1]:.2f}"
    )


if __name__ == "__main__":
    main()
