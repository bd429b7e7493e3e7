"""Verdicts and held-out criteria follow from results by their rules, on made-up results."""

import csv

import pytest

import held_out
from findings import (
    Finding,
    NotRunError,
    Results,
    growing,
    judged,
    lead,
    least,
    roughness,
    saving,
    smoother,
    wins,
)

COLUMNS = (
    "panel",
    "point",
    "series",
    "threshold",
    "value",
    "of_mean",
    "values",
    "clusters",
    "paper",
)


def cell(panel, series, threshold, values, paper="", point=""):
    """A row of results: of each seed its number, or None."""
    known = [value for value in values if value is not None]
    mean = sum(known) / len(known) if len(known) == len(values) else ""
    told = " ".join("–" if value is None else f"{value:g}" for value in values)
    return dict(
        zip(COLUMNS, (panel, point, series, threshold, mean, mean, told, "", paper), strict=True)
    )


def written(folder, artefact, rows):
    with (folder / f"{artefact}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return Results(folder)


def duel(panel, threshold, ours, periodic, papers=("", "")):
    return [
        cell(panel, "SSD-FL", threshold, ours, papers[0]),
        cell(panel, "pDFL", threshold, periodic, papers[1]),
    ]


@pytest.mark.parametrize(
    ("lead_points", "half", "paper", "verdict"),
    [
        (5, 1, 9, "reproduced"),
        (4, 1, 9, "in kind"),
        (1, 1, 9, "level"),
        (-1, 2, 9, "level"),
        (-3, 1, 9, "reversed"),
        (-3, 1, -4, "reproduced"),
        (1, 0.1, 0, "reproduced"),
        (2, 3, 0, "level"),
        (2, 1, 0, "not"),
    ],
)
def test_the_rule_for_leads(lead_points, half, paper, verdict):
    assert judged(lead_points, half, paper) == verdict


def table_of(panel, threshold, **of_methods):
    methods = {"SSD-FL": "ssdfl", "sDFL": "sdfl", "pDFL": "pdfl", "STC": "stc", "cSTC": "cstc"}
    return [cell(panel, name, threshold, of_methods[key]) for name, key in methods.items()]


def test_savings_are_held_against_the_best_of_the_papers_baselines(tmp_path):
    slow = [20.0, 20.0, 20.0]
    of_methods = {
        "ssdfl": [8, 9, 10],
        "sdfl": [5, 5, 5],
        "pdfl": [10, 11, 12.1],
        "stc": slow,
        "cstc": slow,
    }
    results = written(tmp_path, "fmnist-taur", table_of("p", "0.5", **of_methods))
    found = saving(results, "fmnist-taur", "p", "0.5", 2.0)
    assert found.verdict == "reproduced"
    assert found.ours.startswith("+18 % (9.00 against pDFL 11.03); -80 % against sDFL; +2.03 ±")
    assert saving(results, "fmnist-taur", "p", "0.5", 5.0).verdict == "in kind"
    assert saving(results, "fmnist-taur", "p", "0.5", -2.0).verdict == "reversed"
    assert wins(results, "fmnist-taur", 1, 1).ours == "1 of 1"
    assert wins(results, "fmnist-taur", 2, 1).verdict == "not"
    with pytest.raises(NotRunError, match="15 cells"):
        wins(results, "fmnist-taur", 14, 16)


def test_what_too_few_seeds_reach_is_not_reached(tmp_path):
    never = [None, None]
    of_methods = {"ssdfl": [8, 9], "sdfl": never, "pdfl": never, "stc": never, "cstc": never}
    results = written(tmp_path, "fmnist-taur", table_of("p", "0.5", **of_methods))
    assert saving(results, "fmnist-taur", "p", "0.5", 2.0).verdict == "not reached"
    assert saving(results, "fmnist-taur", "p", "0.5", 2.0).ours == "reached by SSD-FL"
    assert growing(results, "fmnist-taur", "p", ["0.5"], [6]).verdict == "not reached"


def test_leads_are_paired_by_seeds(tmp_path):
    rows = [
        cell("p", "SSD-FL", "", [0.30, 0.50, 0.70], point="10"),
        cell("p", "STC", "", [0.25, 0.46, 0.64], point="10"),
    ]
    found = lead(written(tmp_path, "fmnist-size", rows), "fmnist-size", "p", 6, "10", "STC")
    assert found.ours == "+5.0 ± 2.5 (50.0 against STC 45.0)"  # each method alone has ± 50
    assert found.verdict == "reproduced"


def test_leads_are_over_the_seeds_that_both_have(tmp_path):
    rows = [
        cell("p", "SSD-FL", "", [0.30, 0.50, 0.01], point="10"),
        cell("p", "STC", "", [0.25, 0.45], point="10"),
    ]
    found = lead(written(tmp_path, "fmnist-size", rows), "fmnist-size", "p", 6, "10", "STC")
    assert found.ours == "+5.0 ± 0.0 (40.0 against STC 35.0)"


PANEL = "τ_r = 5, mild"


def test_cycles_near_the_papers_are_counted_and_what_is_not_reached_is_a_miss(tmp_path):
    rows = [
        *duel(PANEL, "0.1", [12.5, 12.5], [1, 1], ("10", "")),
        *duel(PANEL, "0.2", [12.6, 12.6], [1, 1], ("10", "")),
        *duel(PANEL, "0.3", [7.5, 7.5], [1, 1], ("10", "")),
        *duel(PANEL, "0.4", [None, 7], [1, 1], ("10", "")),
        *duel(PANEL, "0.5", [7, 7], [1, 1], ("–", "")),
        *duel("τ_r = 3, mild", "0.5", [1, 1], [1, 1], ("10", "")),
    ]
    found = held_out.near_the_paper(written(tmp_path, "fmnist-taur", rows))
    assert found.found == (
        "2 of 4 that the paper reaches, 3 of them reached by us; "
        "2 by the mean of the seeds' own cycles"
    )
    assert found.met is False
    more = [*rows[:2], *duel(PANEL, "0.6", [10, 10], [1, 1], ("10", ""))] * 2
    assert held_out.near_the_paper(written(tmp_path, "fmnist-taur", more)).met is True


def test_the_order_counts_where_the_papers_lead_is_large(tmp_path):
    rows = [
        *duel(PANEL, "0.1", [8, 8], [9, 9], ("9.4", "10")),
        *duel(PANEL, "0.2", [9, 9], [8, 8], ("9.6", "10")),  # only 4 %: not counted
        *duel(PANEL, "0.3", [8, 8], [None, None], ("9", "–")),
        *duel(PANEL, "0.4", [None, None], [None, None], ("–", "10")),  # the paper does not reach it
    ]
    assert held_out.order(written(tmp_path, "cifar10-taur", rows)).found == "2 of 2"
    wrong = [*rows, *duel(PANEL, "0.5", [9, 9], [8, 8], ("9", "10"))]
    found = held_out.order(written(tmp_path, "cifar10-taur", wrong))
    assert found.found == "2 of 3; not at cifar10-taur, τ_r = 5, mild, 50 %"
    assert found.met is False


def test_agreement_with_the_papers_tables_is_counted_panel_by_panel(tmp_path):
    rows = [
        *duel(PANEL, "0.1", [12, 12], [9, 9], ("10", "11")),
        *duel(PANEL, "0.2", [20, 20], [None, None], ("10", "9")),
        *duel("τ_r = 3, mild", "0.1", [5, 5], [6, 6], ("–", "–")),
    ]
    written(tmp_path, "fmnist-taur-sgd", rows)
    *_, held, other = held_out.agreement(tmp_path).splitlines()
    assert held == f"| fmnist-taur-sgd | {PANEL} | 1 of 2 | 1 of 2 | 1 of 2 |"
    assert other == "| fmnist-taur-sgd | τ_r = 3, mild | 0 of 0 | 1 of 1 | 0 of 1 |"


def test_the_complete_graph_and_what_has_not_been_run(tmp_path):
    rows = [
        cell("mild", "SSD-FL", "", [0.84, 0.86], point="Comp"),
        cell("extreme", "SSD-FL", "", [0.74, 0.75], point="Comp"),
    ]
    results = written(tmp_path, "fmnist-architecture", rows)
    met = [one.met for one in held_out.all_criteria(results)]
    assert met == [None, True, False, None]
    text = held_out.criteria(tmp_path)
    assert "| complete graph, mild: SSD-FL ≥ 85 % | 85.0 % | met |" in text
    assert text.count("not run") == 2


@pytest.mark.parametrize(
    ("numbers", "told", "verdict"),
    [
        ((4, 3, 2), "4, 3, 2; formed: 3.0, 3.0, 3.0", "reproduced"),
        ((10, 10, 10), "10, 10, 10; formed: 3.0, 3.0, 3.0", "not"),
        ((None, None, 2), "–, –, 2; formed: 3.0, 3.0, 3.0", "not"),
    ],
)
def test_a_bound_that_is_infinite_is_least_nowhere(tmp_path, numbers, told, verdict):
    points = [f"τ_a = {tau}" for tau in (1, 3, 5)]
    runs = [{**cell(f"{point}, mild", "SSD-FL", "", [0.5]), "clusters": 3} for point in points]
    written(tmp_path, "fmnist-taua", runs)
    bounds = [
        cell("mild", "stationarity", "", [number] * 3, point=point)
        for point, number in zip(points, numbers, strict=True)
    ]
    results = written(tmp_path, "fmnist-bound", bounds)
    assert least(results, "stationarity", {1: 4, 5: 2}) == Finding(told, verdict)


def curves(folder, **of_methods):
    """A figure's curves: for each method those of its seeds."""
    lines = ["panel,point,series,seed,cycle,accuracy"]
    for name, of_seeds in of_methods.items():
        for seed, curve in enumerate(of_seeds):
            lines += [f"p,,{name},{seed},{k},{value}" for k, value in enumerate(curve, start=1)]
    (folder / "figure-curves.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Results(folder)


STEADY, ROUGH, ROUGHER = [0.1, 0.2, 0.3], [0.1, 0.3, 0.2], [0.3, 0.4, 0.1]


def test_a_curve_is_as_rough_as_it_falls():
    assert roughness(STEADY) == 0
    assert roughness([0.5, 0.4, 0.6, 0.3]) == pytest.approx(40)


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([STEADY, STEADY, STEADY], [ROUGH, ROUGH, ROUGH], "reproduced"),
        ([ROUGH, ROUGH, ROUGH], [STEADY, STEADY, STEADY], "reversed"),
        ([STEADY, ROUGH, STEADY], [ROUGH, STEADY, ROUGHER], "level"),
        ([STEADY], [ROUGH], "one seed"),
        ([STEADY, STEADY, ROUGHER], [ROUGH, ROUGH], "reproduced"),  # the seeds that both have
    ],
)
def test_smoothness_is_judged_by_its_sign(tmp_path, ours, theirs, verdict):
    results = curves(tmp_path, **{"SSD-FL": ours, "STC": theirs})
    assert smoother(results, "figure", "p", "STC").verdict == verdict


def test_curves_that_were_not_run_are_left_out(tmp_path):
    results = curves(tmp_path, **{"SSD-FL": [STEADY]})
    for artefact, over in (("figure", "STC"), ("other", "STC")):
        with pytest.raises(NotRunError):
            smoother(results, artefact, "p", over)
