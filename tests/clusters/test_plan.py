import json
import math

import networkx as nx
import numpy as np
import pytest

from ssdfl.clusters import (
    CHOICES,
    AmplificationSettings,
    Decision,
    Device,
    FormationSettings,
    Plan,
    form_clusters,
    parse_plan,
    plan_clusters,
    read_plan,
    write_plan,
)
from ssdfl.errors import InputError
from ssdfl.graph import load_network, make_network
from ssdfl.theory import Constants


def test_a_plan_is_read_back(tmp_path):
    plan = plan_clusters(load_network("barbell:size=3"), 2)
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan
    data = json.loads((tmp_path / "plan.json").read_text())
    assert (data["num_devices"], data["num_clusters"]) == (6, 2)
    assert data["clusters"] == [["0", "1", "2"], ["3", "4", "5"]]


def test_a_formed_plan_is_read_back_with_its_candidates(tmp_path):
    network = load_network("barbell:size=4")
    settings = FormationSettings(Constants(learning_rate=0.02))
    plan = form_clusters(network, [Device(np.ones(2))] * 8, settings)
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan
    data = json.loads((tmp_path / "plan.json").read_text())
    assert data["score"] == plan.chosen.score
    assert [candidate["num_clusters"] for candidate in data["candidates"]] == list(range(1, 9))
    first = data["candidates"][0]
    assert {"num_clusters", "score", "threshold", "min_conductance", "feasible"} <= first.keys()
    assert first["min_conductance"]["exact"] is True


def test_an_infinite_score_survives_the_file(tmp_path):
    settings = FormationSettings(Constants(learning_rate=0.9))
    plan = form_clusters(load_network("ring:n=5"), [Device(np.ones(2))] * 5, settings)
    write_plan(plan, tmp_path / "plan.json")
    assert "Infinity" not in (tmp_path / "plan.json").read_text()
    assert read_plan(tmp_path / "plan.json") == plan
    assert not plan.chosen.feasible


UNLIKE = [Device(np.eye(10)[k % 10] + 1e-3) for k in range(10)]
PAPER = {"partition": "paper", "score": "stationarity"}


@pytest.mark.parametrize(
    ("devices", "settings", "choice", "words", "num_feasible"),
    [
        (None, {}, "feasible", "least score of the feasible candidates", range(1, 10)),
        (UNLIKE, {}, "price", "least predicted cost, though below its threshold", range(1, 10)),
        (
            UNLIKE,
            {"price": math.inf},
            "feasible",
            "least score of the feasible candidates",
            range(1, 10),
        ),
        (UNLIKE, {"constants": Constants(learning_rate=0.9)}, "price", "least predicted cost", [0]),
        (
            UNLIKE,
            {"constants": Constants(learning_rate=0.9), **PAPER},
            "nearest",
            "nearest to its",
            [0],
        ),
        (
            None,
            {"constants": Constants(learning_rate=0.9)},
            "assumed",
            "least predicted cost if",
            [0],
        ),
    ],
)
def test_a_plan_tells_which_rule_chose_it(tmp_path, devices, settings, choice, words, num_feasible):
    plan = form_clusters("barbell:size=5", devices, FormationSettings(**settings))
    write_plan(plan, tmp_path / "plan.json")
    data = json.loads((tmp_path / "plan.json").read_text())
    assert (data["choice"], data["num_clusters"]) == (choice, plan.num_clusters)
    decision = read_plan(tmp_path / "plan.json").decision
    assert decision == plan.decision
    assert (decision.rule, decision.num_clusters, decision.score) == (
        choice, plan.num_clusters, plan.chosen.score
    )  # fmt: skip
    assert decision.words.startswith(words)
    assert decision.words == CHOICES[choice]
    assert decision.num_feasible in num_feasible
    assert (
        (decision.conductance >= decision.threshold)
        == plan.chosen.feasible
        == (choice == "feasible")
    )
    assert bool(plan.remark) == (choice != "feasible")


def test_a_decision_in_a_line():
    plan = form_clusters("ring:n=5", None, FormationSettings(Constants(learning_rate=0.9), **PAPER))
    assert plan.decision.score == math.inf
    found = plan.decision
    numbers = f"Φ = {found.conductance:.4f}, Φ_min = {found.threshold:.4f}, 0 of 5 feasible"
    expected = f"S = {plan.num_clusters}: nearest to its threshold; stationarity = ∞, {numbers}"
    assert str(plan.decision) == expected


def test_given_clusters_say_so(tmp_path):
    by_number = plan_clusters("barbell:size=3", 2)
    by_hand = Plan(((0, 1, 2), (3, 4, 5)), "by hand")
    for plan in (by_number, by_hand):
        assert (plan.choice, str(plan.decision)) == ("given", "S = 2: given, not formed")
        assert plan.decision.score is None
        assert plan.remark == ""
    older = json.dumps(by_hand.to_json() | {"choice": "", "checksum": None})
    assert parse_plan(older) == by_hand
    formed = form_clusters("barbell:size=3")
    others = {"clusters": [["0", "1"], ["2", "3"], ["4", "5"]], "checksum": None}
    changed = parse_plan(json.dumps(formed.to_json() | others))
    assert changed.decision == Decision("given", 3)


def test_a_plan_keeps_every_number_that_formation_was_given():
    scales = AmplificationSettings(kind_weight=2.0, data_max=0.7)
    settings = FormationSettings(threshold_step="eta_E", amplification=scales)
    found = form_clusters("barbell:size=3", None, settings).settings
    assert (found["threshold_step"], found["kind_weight"], found["data_max"]) == ("eta_E", 2.0, 0.7)
    assert (found["rho_weight"], found["optimizer_min"], found["variance_floor"]) == (1.0, 0.0, 0.1)


def test_what_cannot_be_planned():
    with pytest.raises(InputError, match="number of devices = 1"):
        form_clusters(load_network("complete:n=1"), [Device(np.ones(1))])
    with pytest.raises(InputError, match="expected a connected network"):
        form_clusters(make_network(3, [(0, 1)]), [Device(np.ones(1))] * 3)


def changed_by_hand(**values):
    """The text of a small plan with other values, whose checksum is switched off."""
    plan = Plan(((0, 1),), "by hand", names=("a", "b"))
    return json.dumps(plan.to_json() | {"checksum": None} | values)


def test_a_plan_without_its_checksum_is_refused_unless_it_is_switched_off():
    plan = Plan(((0, 1),), "by hand", names=("a", "b"))
    data = plan.to_json()
    assert parse_plan(changed_by_hand()) == plan
    with pytest.raises(InputError, match=r'plan = damaged: .*set "checksum": null'):
        parse_plan(json.dumps(data | {"mode": "fast"}))
    del data["checksum"]
    with pytest.raises(InputError, match="checksum in plan = none"):
        parse_plan(json.dumps(data))
    assert parse_plan(json.dumps(data | {"version": 3})) == plan


def test_one_flipped_bit_of_a_plan_is_refused(tmp_path):
    """Every bit, but for a few that change how a number is spelled and not what it is."""
    path = tmp_path / "plan.json"
    plan = form_clusters("barbell:size=2")
    write_plan(plan, path)
    whole, spellings = path.read_bytes(), 0
    for bit in range(0, 8 * len(whole), 7):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            spellings += read_plan(path) == plan
        except InputError:
            continue
        assert read_plan(path) == plan
    assert spellings < 0.01 * len(whole)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        '{"version": 99, "clusters": [], "candidates": []}',
        '{"version": 1, "clusters": [[0, 1]], "partition": "x", "candidates": []}',
        '{"version": 2, "clusters": [["a"]], "partition": "x", "candidates": []}',
        json.dumps(Plan(((0, 0),), "by hand").to_json()),
        json.dumps(Plan(((0, 1),), "by hand", names=("a", "a")).to_json()),
        json.dumps(Plan(((0, 1),), "by hand", names=("a", "b", "c")).to_json()),
        changed_by_hand(clusters=[["a", "c"]]),
        changed_by_hand(settings=3),
        changed_by_hand(settings={"eta": 10**400}),
        changed_by_hand(candidates=[3]),
        changed_by_hand(diagnostics=[{"name": 1, "holds": None, "detail": ""}]),
        "[" * 100_000,
    ],
)
def test_bad_plans(tmp_path, content):
    (tmp_path / "plan.json").write_text(content)
    with pytest.raises(InputError, match="plan"):
        read_plan(tmp_path / "plan.json")


def test_counts():
    plan = Plan(((0, 1), (2,)), "by hand")
    assert (plan.num_devices, plan.num_clusters) == (3, 2)


def test_formation_takes_a_spec_or_a_graph_and_devices_of_which_nothing_is_known(tmp_path):
    plan = form_clusters("barbell:size=4")
    assert form_clusters(nx.barbell_graph(4, 0)) == plan
    assert plan.labels.tolist() == [0] * 4 + [1] * 4
    write_plan(plan, str(tmp_path / "plan.json"))
    assert read_plan(str(tmp_path / "plan.json")) == plan
