"""Tables and figures beside the paper's."""

import csv
import math
from dataclasses import replace

import numpy as np
import pytest

from ssdfl.clusters.decision import Decision
from ssdfl.records.artefacts import load_artefact
from ssdfl.report.paper import entries, half_width
from ssdfl.report.paper_figures import plot_artefact
from ssdfl.report.paper_pages import write_artefact
from ssdfl.report.target import cost_to_target


def rows(accuracies):
    return [
        {
            "cycle": k,
            "score": value,
            "average_model_score": value,
            "transmissions": 10 * k,
            "sent_bytes": 2_000_000 * k,
            "time_s": 0.5 * k,
            "clusters": 4,
        }
        for k, value in enumerate(accuracies, start=1)
    ]


def made_up(artefact):
    """Records whose final accuracy tells series and seed."""
    if artefact.kind == "bound":
        scores = [{"clusters": S, "score": (S - 3) ** 2 + 1.0} for S in range(1, 9)]
        return {case.key: [scores] * 3 for case in artefact.cases}
    places = {series.name: k for k, series in enumerate(artefact.series)}
    return {
        case.key: [
            rows(np.linspace(0.05, 0.75 - 0.05 * places[case.series] + 0.01 * seed, 20))
            for seed in range(3)
        ]
        for case in artefact.cases
    }


def test_cycles_are_interpolated_and_untested_ones_skipped():
    run = rows([0.2, math.nan, 0.6, 0.5, 0.9])
    cycles = {
        target: cost_to_target(run, target, interpolate=True) for target in (0.4, 0.1, 0.75, 0.95)
    }
    assert cycles == {
        0.4: pytest.approx(2),
        0.1: pytest.approx(0.5),
        0.75: pytest.approx(4.625),
        0.95: None,
    }


def test_without_interpolation_it_is_the_first_test_that_counts():
    run = rows([0.2, math.nan, 0.6, 0.5, 0.9])
    cycles = {target: cost_to_target(run, target) for target in (0.4, 0.1, 0.75, 0.95)}
    assert cycles == {0.4: 3, 0.1: 1, 0.75: 5, 0.95: None}


@pytest.mark.parametrize(("interpolate", "share"), [(True, 0.5), (False, 1.0)])
def test_what_a_target_costs_along_each_axis(interpolate, share):
    run = rows([0.2, 0.6])
    costs = [
        cost_to_target(run, 0.4, cost, interpolate=interpolate)
        for cost in ("cycle", "transmissions", "sent_bytes", "time_s")
    ]
    assert costs == pytest.approx(
        [1 + share, 10 * (1 + share), 2e6 * (1 + share), 0.5 * (1 + share)]
    )
    assert cost_to_target(run, 0.4, "real_s", interpolate=interpolate) is None


def test_the_interval_is_students():
    values = [1.0, 2.0, 4.0]
    assert half_width(values) == pytest.approx(
        4.302653 * np.std(values, ddof=1) / math.sqrt(3), rel=1e-6
    )
    assert half_width([1.0]) is None


def test_a_threshold_that_one_seed_misses_is_a_dash():
    artefact = load_artefact("fmnist-taur")
    runs = made_up(artefact)
    key = ("τ_r = 3, mild", "", "SSD-FL")
    runs[key] = [rows([0.6] * 20), rows([0.6] * 20), rows([0.5] * 20)]
    found = {
        cell.threshold: cell
        for cell in entries(artefact, runs)
        if (cell.panel, cell.point, cell.series) == key
    }
    assert found["0.51"].value is None
    assert (found["0.51"].reached, found["0.51"].seeds) == (2, 3)
    assert found["0.51"].values == "0.85 0.85 –"
    assert found["0.51"].of_mean == pytest.approx(0.51 / (1.7 / 3))
    assert found["0.51"].paper == "2.89"


@pytest.mark.parametrize("what", ["taur", "taua", "size", "architecture", "bound", "costs"])
def test_what_is_written_holds_our_numbers_and_the_papers(what, tmp_path):
    name = "beyond-costs" if what == "costs" else f"fmnist-{what}"
    artefact = load_artefact(name)
    written = write_artefact(artefact, made_up(artefact), tmp_path, "ssdfl reproduce it")
    assert all(path.stat().st_size > 200 for path in written)
    assert {path.suffix for path in written} == {".csv", ".md", ".tex", ".png", ".pdf"}
    with (tmp_path / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        told = list(csv.DictReader(file))
    paper_rows = [row for row in told if row["series"] != "weak sDFL"]
    with_paper = [row for row in paper_rows if row["paper"] not in ("", "–")]
    assert len(with_paper) == sum(1 for row in artefact.expected if row["value"])
    text, source = (tmp_path / f"{name}.md").read_text(), (tmp_path / f"{name}.tex").read_text()
    assert "ssdfl reproduce it" in text
    for row in with_paper[:3]:
        value = float(row["paper"])
        shown = (
            f"({row['paper']})" if artefact.kind in ("table", "bound") else f"({100 * value:.1f})"
        )
        assert shown in text
    table_rows = source.split("\\midrule")[1].split("\\bottomrule")[0].strip().splitlines()
    each = {"table": 4, "costs": 3 * 4}.get(artefact.kind, len(artefact.points))
    columns = len(artefact.panels) * each
    assert {line.count("&") for line in table_rows} == {columns}


def with_decisions(runs):
    """Runs of SSD-FL whose plans were feasible, nearest and infinite, nearest."""
    decisions = [
        Decision("feasible", 4, "stationarity", 2.5, 0.3, 0.2, 5, 10),
        Decision("nearest", 2, "stationarity", math.inf, 0.1, 0.2, 0, 10),
        Decision("nearest", 3, "stationarity", 1.5, 0.1, 0.2, 0, 10),
    ]
    return {
        key: [
            [{**row, "decision": decision if key[-1] == "SSD-FL" else None} for row in run]
            for run, decision in zip(of_seeds, decisions, strict=True)
        ]
        for key, of_seeds in runs.items()
    }


def test_which_rule_chose_the_clusters_is_written_run_by_run(tmp_path):
    artefact = load_artefact("fmnist-taur")
    written = write_artefact(
        artefact, with_decisions(made_up(artefact)), tmp_path, "ssdfl reproduce it"
    )
    assert tmp_path / "fmnist-taur-plans.csv" in written
    with (tmp_path / "fmnist-taur-plans.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 4 * 3  # panels and seeds; no other method has plans
    assert [(one["seed"], one["rule"], one["clusters"], one["score"]) for one in lines[:3]] == [
        ("0", "feasible", "4", "2.5"),
        ("1", "nearest", "2", "inf"),
        ("2", "nearest", "3", "1.5"),
    ]
    text = (tmp_path / "fmnist-taur.md").read_text(encoding="utf-8")
    assert "Profile small, seeds 0, 1, 2. Accuracy is the averaged model's.\n" in text
    assert (
        "Clusters of 12 plans: 8 by the rule “nearest to its threshold” and 4 by the rule "
        "“least score of the feasible candidates”; S from 2 to 4, 4 of them with an infinite score."
    ) in text


def test_curves_are_written_run_by_run(tmp_path):
    artefact = load_artefact("fmnist-taua", seeds=2)
    untested = rows([0.1, math.nan, 0.3])
    runs = {case.key: [untested, rows([0.2, 0.25, 0.5])] for case in artefact.cases}
    written = write_artefact(artefact, runs, tmp_path, "ssdfl reproduce it")
    assert tmp_path / "fmnist-taua-curves.csv" in written
    with (tmp_path / "fmnist-taua-curves.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 5 * len(artefact.cases)
    of_one = [(one["seed"], one["cycle"], one["accuracy"]) for one in lines[:5]]
    assert of_one == [
        ("0", "1", "0.1"),
        ("0", "3", "0.3"),
        ("1", "1", "0.2"),
        ("1", "2", "0.25"),
        ("1", "3", "0.5"),
    ]
    table = load_artefact("fmnist-taur1", seeds=1)
    names = {
        path.name
        for path in write_artefact(
            table, {case.key: [rows([0.2, 0.9])] for case in table.cases}, tmp_path, "it"
        )
    }
    assert not any("curves" in name for name in names)


def test_what_is_read_is_shown_and_said(tmp_path):
    artefact = load_artefact("fmnist-links", "medium", seeds=1)
    runs = {
        case.key: [[{**rows([0.9])[0], "score": 0.25, "average_model_score": 0.75}]]
        for case in artefact.cases
    }
    found = {}
    for reading, said in (("score", "the mean over devices"), ("average_model_score", "averaged")):
        chosen = replace(artefact, reading=reading)
        numbers = entries(chosen, runs)
        assert said in plot_artefact(chosen, runs, numbers).get_suptitle()
        found[reading] = {entry.value for entry in numbers}
    assert found == {"score": {0.25}, "average_model_score": {0.75}}
    bound = load_artefact("fmnist-bound")
    numbers = entries(bound, made_up(bound))
    assert "Accuracy" not in plot_artefact(bound, made_up(bound), numbers).get_suptitle()


def test_a_table_is_drawn_with_the_papers_numbers_beside_ours():
    artefact = load_artefact("fmnist-taur")
    runs = made_up(artefact)
    numbers = entries(artefact, runs)
    axes = plot_artefact(artefact, runs, numbers).axes[0]
    own = [entry for entry in numbers if entry.panel == axes.get_title()]
    crosses = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == "x"]
    top = 1.05 * 20
    assert crosses == [top if entry.paper == "–" else float(entry.paper) for entry in own]
    shown = [container for container in axes.containers if container.has_yerr]
    assert [one[0].get_ydata()[0] for one in shown] == [entry.value for entry in own if entry.value]
    rings = [
        line
        for line in axes.lines
        if line.get_markerfacecolor() == "none" and len(line.get_xdata())
    ]
    assert len(rings) == sum(entry.value is None for entry in own) > 0


def test_bars_stand_side_by_side_in_the_order_of_the_series():
    artefact = load_artefact("fmnist-architecture")
    runs = made_up(artefact)
    axes = plot_artefact(artefact, runs, entries(artefact, runs)).axes[0]
    bars = [one for one in axes.containers if hasattr(one, "patches")]
    assert [one.get_label() for one in bars] == [series.name for series in artefact.series]
    for place in range(len(artefact.points)):
        edges = [(one[place].get_x(), one[place].get_width()) for one in bars]
        ends = [left + width for left, width in edges]
        assert [left for left, _ in edges[1:]] == pytest.approx(ends[:-1])
        assert (edges[0][0], ends[-1]) == pytest.approx((place - 0.4, place + 0.4))


@pytest.fixture
def of_architectures():
    """A figure of which some cells have fewer seeds than others, or none."""
    whole = load_artefact("fmnist-architecture")
    gone = {("mild", "RNG", "SSD-FL"), ("extreme", "Comp", "STC")}
    few = ("mild", "RNG", "STC")
    held = {case.key: (0,) if case.key == few else (0, 1, 2) for case in whole.cases}
    artefact = replace(whole, held={key: held[key] for key in held.keys() - gone})
    runs = made_up(artefact)
    return artefact, {**runs, few: runs[few][:1]}


def test_cells_with_fewer_seeds_say_so_and_missing_ones_are_empty(of_architectures, tmp_path):
    write_artefact(*of_architectures, tmp_path, "ssdfl reproduce it --finished")
    text = (tmp_path / "fmnist-architecture.md").read_text(encoding="utf-8")
    assert "the mean over up to 3 seeds ±" in text
    mild, extreme = text.split("## extreme")
    rows = {line.split(" | ")[0]: line.split(" | ") for line in mild.splitlines()}
    assert rows["| SSD-FL"][1] == ""
    assert rows["| SSD-FL"][5].endswith(", 3 seeds **(88.3)** |")
    assert rows["| STC"][1] == "60.0, 1 seed **(78.2)**"
    assert next(line for line in extreme.splitlines() if "| STC" in line).endswith("|  |")
    latex = (tmp_path / "fmnist-architecture.tex").read_text(encoding="utf-8")
    of_ours = next(line for line in latex.splitlines() if line.startswith("SSD-FL"))
    assert of_ours.count("&") == 2 * len(of_architectures[0].points)


def test_bars_stay_in_their_places_and_colours_where_some_are_missing(of_architectures):
    artefact, runs = of_architectures
    whole = load_artefact("fmnist-architecture")
    figures = [
        plot_artefact(one, own, entries(one, own))
        for one, own in ((artefact, runs), (whole, made_up(whole)))
    ]
    drawn = [
        {
            (axes.get_title(), bars.get_label(), round(bar.get_x(), 6), bar.get_facecolor())
            for axes in figure.axes
            for bars in axes.containers
            if hasattr(bars, "patches")
            for bar in bars
        }
        for figure in figures
    ]
    assert drawn[0] < drawn[1]
    assert len(drawn[1] - drawn[0]) == 2
    of_legends = [[text.get_text() for text in one.legends[0].texts] for one in figures]
    assert of_legends[0] == of_legends[1] == [series.name for series in artefact.series]


def test_what_a_panel_costs_stands_in_one_row():
    artefact = load_artefact("beyond-costs")
    runs = made_up(artefact)
    axes = plot_artefact(artefact, runs, entries(artefact, runs)).axes
    places = {(one.get_title(), one.get_subplotspec().rowspan.start) for one in axes}
    assert sorted(row for _, row in places) == list(range(len(artefact.panels)))
    assert {title for title, _ in places} == {panel.name for panel in artefact.panels}


def test_both_readings_of_sdfl_are_held_against_what_the_paper_says_of_it():
    artefact = load_artefact("fmnist-taur")
    papers = {
        entry.series: entry.paper
        for entry in entries(artefact, made_up(artefact))
        if (entry.panel, entry.threshold) == ("τ_r = 3, mild", "0.65")
    }
    assert papers["sDFL"] == papers["weak sDFL"] == "7.40"
    assert papers["pDFL"] == "7.43"


def test_final_accuracies_are_means_over_seeds(tmp_path):
    artefact = load_artefact("fmnist-architecture")
    found = {(c.panel, c.point, c.series): c for c in entries(artefact, made_up(artefact))}
    cell = found["mild", "PrefA", "STC"]
    assert cell.value == pytest.approx(0.75 - 0.15 + 0.01)
    assert cell.paper == "0.677"
    assert cell.clusters == 4
    least = entries(load_artefact("fmnist-bound"), made_up(load_artefact("fmnist-bound")))
    assert {c.value for c in least} == {3.0}


@pytest.mark.parametrize("finite", [True, False])
def test_a_bound_without_finite_scores_says_so(finite):
    artefact = load_artefact("fmnist-bound").part(["mild", "stationarity"])
    runs = made_up(artefact)
    if not finite:
        infinite = [{"clusters": S, "score": math.inf} for S in range(1, 9)]
        runs = {key: [infinite] for key in runs}
    figure = plot_artefact(artefact, runs, entries(artefact, runs))
    told = [text.get_text() for text in figure.axes[0].texts]
    assert told == ([] if finite else ["infinite at every S"])
