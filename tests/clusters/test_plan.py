import json

import networkx as nx
import numpy as np
import pytest

from ssdfl.clusters import (
    Device,
    FormationSettings,
    Plan,
    form_clusters,
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
    assert (data["num_devices"], data["num_clusters"], data["clusters"]) == (6, 2, [[0, 1, 2], [3, 4, 5]])


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


def test_what_cannot_be_planned():
    with pytest.raises(InputError, match="number of devices = 1"):
        form_clusters(load_network("complete:n=1"), [Device(np.ones(1))])
    with pytest.raises(InputError, match="expected a connected network"):
        form_clusters(make_network(3, [(0, 1)]), [Device(np.ones(1))] * 3)


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
        json.dumps(Plan(((0, 1),), "by hand").to_json() | {"settings": 3}),
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
