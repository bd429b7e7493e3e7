"""What the studies' pages say is what their data say."""

import csv
import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

STUDIES = Path(__file__).parents[1] / "docs" / "studies"
FORMATION = STUDIES / "formation"
METHODS = STUDIES / "methods"


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


@pytest.fixture
def methods_report(monkeypatch):
    """The study's own script, whose folder is on the path while it is imported."""
    monkeypatch.syspath_prepend(METHODS)
    monkeypatch.delitem(sys.modules, "measure", raising=False)
    monkeypatch.delitem(sys.modules, "report", raising=False)
    yield importlib.import_module("report")
    for name in ("measure", "report"):
        sys.modules.pop(name, None)


def test_the_methods_page_shows_what_was_measured(methods_report):
    rows, lies = methods_report.measured()
    page = (METHODS / "index.md").read_text(encoding="utf-8")
    tables = [methods_report.gain_table(rows, cost) for cost in ("seconds", "bytes")]
    tables += [methods_report.level_table(rows, arm, n) for arm in ("one", "several") for n in (3, 1)]
    for table in (*tables, methods_report.sites_table(rows), methods_report.attack_table(lies)):
        assert table in page


def test_the_recommended_method_is_ahead_of_the_papers(methods_report):
    rows, _ = methods_report.measured()
    assert len({row["network"] for row in rows}) >= 8
    assert len({row["method"] for row in rows}) >= 12
    sooner = methods_report.ahead(rows, "extra", "cta", "seconds")
    fewer = methods_report.ahead(rows, "extra, int8", "cta", "bytes")
    assert np.mean([one > 1 for one in sooner]) > 0.9
    assert min(fewer) > 1


def test_the_cnns_page_shows_what_was_searched(monkeypatch):
    monkeypatch.syspath_prepend(STUDIES / "cnn")
    table = importlib.import_module("search_table").table()
    assert table in (STUDIES / "cnn" / "index.md").read_text(encoding="utf-8")
    assert table.count("\n") > 10
