"""What the studies' pages say is what their data say."""

import csv
import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from ssdfl.graph import Clock, make_network

STUDIES = Path(__file__).parents[1] / "docs" / "studies"
FORMATION = STUDIES / "formation"
METHODS = STUDIES / "methods"
UNDERLAYS = STUDIES / "underlays"


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
    lines = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", page, re.M
    )
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


def test_simulated_choices_are_faster_on_fresh_data(monkeypatch):
    monkeypatch.syspath_prepend(FORMATION)
    for name in ("measure", "fresh"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    fresh = importlib.import_module("fresh")
    rows = fresh.read()
    gains = fresh.gains(rows)
    for name in ("measure", "fresh"):
        sys.modules.pop(name, None)
    page = " ".join((FORMATION / "index.md").read_text(encoding="utf-8").split())
    mean = np.exp(np.mean(np.log(gains)))
    assert f"In {len(gains)} of {len(rows)} draws" in page
    assert f"{min(gains):.2f} to {max(gains):.2f} times, {mean:.2f} in" in page
    assert min(gains) > 1


def test_plans_by_sketches_are_as_good_as_plans_by_labels():
    with (FORMATION / "sketches.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    page = (FORMATION / "index.md").read_text(encoding="utf-8")
    means = []
    for name in ("labels", "sketch"):
        values = np.array([float(row[f"{name}_regret"]) for row in rows])
        shown = (
            np.median(values),
            values.mean(),
            np.quantile(values, 0.9, method="higher"),
            values.max(),
        )
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
    tables += [
        methods_report.level_table(rows, arm, n) for arm in ("one", "several") for n in (3, 1)
    ]
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


def test_the_cnns_pages_show_what_was_searched(monkeypatch):
    monkeypatch.syspath_prepend(STUDIES / "cnn")
    search = importlib.import_module("search_table")
    records, page = (
        (STUDIES / "cnn" / f"{name}.md").read_text(encoding="utf-8") for name in ("search", "index")
    )
    shown = (
        (search.table(), records),
        (search.ranking(search.of_their_average), records),
        (search.ranking(search.of_one_table), page),
        (search.ranking(search.of_devices), page),
    )
    for table, place in shown:
        assert table in place
        assert table.count("\n") > 10


def test_the_cnns_page_shows_where_theorem_1_applies(monkeypatch):
    monkeypatch.syspath_prepend(STUDIES / "cnn")
    study = importlib.import_module("step_sizes")
    found = study.read_found()
    page = (STUDIES / "cnn" / "index.md").read_text(encoding="utf-8")
    plain, normalised = (found[found["profile"] == name] for name in ("plain", "medium"))
    assert study.table(plain) in page
    assert study.table(normalised) in page
    assert set(found["least_at"].dropna()) == {10}
    assert not plain[plain["eta"] >= 0.01]["finite"].any()
    assert (normalised[normalised["eta"] <= 0.003]["finite"] == 10).all()


@pytest.fixture
def underlays_report(monkeypatch):
    """The underlay study's own script."""
    monkeypatch.syspath_prepend(UNDERLAYS)
    for name in ("measure", "report"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module("report")
    for name in ("measure", "report", "underlays"):
        sys.modules.pop(name, None)


def test_the_underlays_page_shows_what_was_measured(underlays_report):
    rows = underlays_report.rows_of("0")
    page = (UNDERLAYS / "index.md").read_text(encoding="utf-8")
    tables = (underlays_report.cycle_table(), underlays_report.gain_table(rows))
    fresh = underlays_report.gain_table(underlays_report.rows_of("1"))
    for table in (*tables, underlays_report.result_table(rows), fresh):
        assert table in page


@pytest.mark.parametrize("seed", ["0", "1"])
def test_published_cycle_times_are_reproduced_and_clusters_are_faster(underlays_report, seed):
    deviations = re.findall(r"([+-]\d+\.\d)%", underlays_report.cycle_table())
    assert len(deviations) == 30
    assert max(abs(float(one)) for one in deviations) < 5
    found = underlays_report.compared(underlays_report.rows_of(seed))
    gains = [one["others"][0] / one["ssdfl+extra"][0] for one in found.values()]
    assert len(gains) == 30
    assert np.exp(np.mean(np.log(gains))) > 1.5
    assert min(gains) > 1.2


@pytest.mark.parametrize(("name", "least"), [("predicted.csv", 20), ("predicted-fresh.csv", 11)])
def test_the_page_of_networks_shows_which_seconds_were_measured(name, least, monkeypatch):
    monkeypatch.syspath_prepend(STUDIES.parents[1] / "benchmarks")
    predicted = importlib.import_module("predicted")
    rows = predicted.read(predicted.RESULTS.with_name(name))
    page = (STUDIES.parent / "networks.md").read_text(encoding="utf-8")
    assert predicted.report_table(rows) in page
    networks, best, _ = predicted.orders(rows)
    assert networks >= least
    assert best >= 0.9 * networks
    assert np.median(predicted.errors(rows)) <= 0.1
    assert max(predicted.errors(rows)) <= 0.25


def test_bf16_learns_what_float32_does(monkeypatch):
    monkeypatch.syspath_prepend(STUDIES / "precision")
    measured = importlib.import_module("precisions")
    page = (STUDIES / "precision" / "index.md").read_text(encoding="utf-8")
    assert measured.table() in page
    found = measured.compare(measured.read(), "mlp")
    assert abs(found["end"]) < found["end_seeds"]
    assert found["apart"] < found["seeds"]


def test_pairs_of_silos_share_paths_as_the_designs_assume(underlays_report):
    tools = sys.modules["underlays"]
    length_km = np.array([100.0, 200.0])
    underlay = make_network(3, [(0, 1), (1, 2)], latency_s=(4 + 0.0085 * length_km) * 1e-3)
    pairs = tools.silos(underlay, access_bps=1e8)
    assert pairs.links.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert pairs.latency_s * 1e3 == pytest.approx(4 + 0.0085 * np.array([100, 300, 200]))
    assert pairs.bandwidth_Bps == pytest.approx(tools.CORE_BPS / np.array([1, 2, 1]))
    # A star around silo 0: computing, two messages to its downlink, and two from its uplink.
    clock = Clock(tools.overlay(pairs, tools.star(pairs)), 125_000, sends_early=False)
    access_s = 2 * 125_000 / (1e8 / 8)
    there = 2 * (pairs.latency_s[1] + access_s)
    assert tools.cycle_s(clock, None, steps=4) == pytest.approx(tools.COMPUTE_S + there)
    W = tools.ring_matrix(3, [(0, 1), (1, 2), (2, 0)]).toarray()
    assert W.tolist() == [[0.5, 0, 0.5], [0.5, 0.5, 0], [0, 0.5, 0.5]]
