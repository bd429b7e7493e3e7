import json

import pytest

from ssdfl.clusters import Plan, plan_clusters, read_plan, write_plan
from ssdfl.errors import InputError
from ssdfl.graph import load_network


def test_a_plan_is_read_back(tmp_path):
    plan = plan_clusters(load_network("barbell:size=3"), 2)
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan
    data = json.loads((tmp_path / "plan.json").read_text())
    assert (data["num_devices"], data["num_clusters"], data["clusters"]) == (6, 2, [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"version": 99, "clusters": []}'])
def test_bad_plans(tmp_path, content):
    (tmp_path / "plan.json").write_text(content)
    with pytest.raises(InputError, match="plan"):
        read_plan(tmp_path / "plan.json")


def test_counts():
    plan = Plan(((0, 1), (2,)), "by hand")
    assert (plan.num_devices, plan.num_clusters) == (3, 2)
