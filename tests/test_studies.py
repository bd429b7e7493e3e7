"""What the studies' pages say is what their data say."""

import csv
import re
from pathlib import Path

import numpy as np

FORMATION = Path(__file__).parents[1] / "docs" / "studies" / "formation"


def choices(policy):
    with (FORMATION / "choices.csv").open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["policy"] == policy]


def percentile(values, share):
    return sorted(values)[int(np.ceil(share * len(values))) - 1]


def test_enough_networks_were_judged():
    rows = choices("default (cost, time)")
    assert len(rows) >= 48
    assert len({row["case"] for row in rows}) == len(rows)
    assert {row["costs"] for row in rows} == {"uniform", "scarce", "two-tier", "distance"}
    assert {row["labels_per_device"] for row in rows} == {"1", "3"}
    assert {row["tau_a"] for row in rows} == {"1", "3", "5", "7"}


def test_the_table_is_what_the_choices_give():
    page = (FORMATION / "index.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", page, re.M)
    table = {name.strip(): [cell.strip() for cell in cells] for name, *cells in lines}
    for name in ("default (cost, time)", "time, Φ_min kept", "paper (Algorithms 1, 2)"):
        regrets = [float(row["regret"]) for row in choices(name)]
        expected = [np.median(regrets), percentile(regrets, 0.9), max(regrets)]
        assert table[name][1:4] == [f"{value:.1%}" for value in expected]


def test_the_default_meets_what_the_page_claims():
    regrets = [float(row["regret"]) for row in choices("default (cost, time)")]
    assert percentile(regrets, 0.5) < 0.05
    assert percentile(regrets, 0.9) < 0.20
    for other in ("paper (Algorithms 1, 2)", "time, Φ_min kept", "time, paper's partition"):
        assert np.mean(regrets) < np.mean([float(row["regret"]) for row in choices(other)])


def test_plans_by_sketches_are_as_good_as_plans_by_labels():
    with (FORMATION / "sketches.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    page = (FORMATION / "index.md").read_text(encoding="utf-8")
    means = []
    for name in ("labels", "sketch"):
        values = np.array([float(row[f"{name}_regret"]) for row in rows])
        shown = (np.median(values), values.mean(), np.quantile(values, 0.9, method="higher"), values.max())
        assert f"| {name} | {' | '.join(f'{value:.1%}' for value in shown)} |" in page
        means.append(values.mean())
    assert len(rows) == 56
    assert means[1] < means[0] + 0.01
