import json

import numpy as np
import pytest

from pages import data_of
from ssdfl.clusters import FormationSettings, clusters_of, form_clusters, labels_of
from ssdfl.experiments import run_experiment
from ssdfl.graph import load_network, to_json
from ssdfl.records import load_experiment
from ssdfl.report import condensed as module
from ssdfl.report import write_report
from ssdfl.report.condensed import condensed, if_large
from ssdfl.report.network_data import drawn_data

NETWORK = load_network("sites:sites=6,size=5,seed=0")
SITES = clusters_of(np.arange(30) // 5)


@pytest.mark.parametrize("groups", [3, 6, 10, 30])
def test_groups_lie_in_clusters_or_are_whole_ones(groups):
    found = condensed(NETWORK, SITES, groups)
    site = labels_of(SITES, 30)
    pairs = {(int(g), int(s)) for g, s in zip(found.group, site, strict=True)}
    count = found.network.num_devices
    assert sorted(set(found.group.tolist())) == list(range(count))
    assert len(pairs) == (len(SITES) if groups < len(SITES) else count)
    assert count <= groups + len(SITES)
    assert (np.diff(found.first) > 0).all()


def test_links_between_groups_have_mean_costs():
    found = condensed(NETWORK, SITES, groups=6)
    expected = {}
    for (i, j), latency_s in zip(NETWORK.links, NETWORK.latency_s, strict=True):
        ends = tuple(sorted((int(found.group[i]), int(found.group[j]))))
        if ends[0] != ends[1]:
            expected.setdefault(ends, []).append(latency_s)
    assert [tuple(link) for link in found.network.links.tolist()] == sorted(expected)
    means = [np.mean(expected[ends]) for ends in sorted(expected)]
    assert found.network.latency_s == pytest.approx(means)


def test_facts_add_up():
    kinds = ["sgd"] * 7 + ["adam"] * 23
    devices = [
        {"device": k, "optimizer": kinds[k], "samples": k, "labels": [k, 1]} for k in range(30)
    ]
    devices[29]["liar"] = True
    facts = condensed(NETWORK, SITES, groups=6).facts(devices)
    assert sum(one["samples"] for one in facts) == sum(range(30))
    assert [one["labels"][1] for one in facts] == [5] * 6
    assert [one["optimizer"] for one in facts] == ["sgd", "several", "adam", "adam", "adam", "adam"]
    assert [one.get("liar", False) for one in facts] == [False] * 5 + [True]


def test_pages_draw_groups_of_large_networks(monkeypatch):
    plan = form_clusters(NETWORK, None, FormationSettings(mode="fast"))
    assert if_large(NETWORK, plan.clusters) is None
    monkeypatch.setattr(module, "MOST_DRAWN", 20)
    groups = condensed(NETWORK, plan.clusters, 6)
    data = drawn_data(NETWORK, plan, groups)
    shown = groups.network.num_devices
    assert len(data["names"]) == len(data["labels"]) == len(data["places"]) == shown < 20
    assert {len(candidate["labels"]) for candidate in data["candidates"]} == {shown}
    assert if_large(NETWORK, plan.clusters) is not None


def test_a_page_of_a_large_run_shows_means_of_groups(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "MOST_DRAWN", 10)
    monkeypatch.setattr(module, "GROUPS", 4)
    settings = [
        "cycles=1",
        "clusters.number=2",
        "model.name=logreg",
        "network.spec=sites:sites=4,size=5,seed=0",
    ]
    experiment = load_experiment(None, settings, {"methods": ["ssdfl"], "seeds": [0]})
    folder = run_experiment(experiment, tmp_path / "run")
    found = condensed(folder.network(0), folder.plan(0).clusters, groups=4)
    (seed,) = data_of(write_report(folder).read_text(encoding="utf-8"))["seeds"]
    assert len(seed["names"]) == len(seed["devices"]) == found.network.num_devices < 10
    (row,) = folder.all_rows()
    assert seed["scores"]["ssdfl"]["devices"][-1] == pytest.approx(
        found.means(row["device_score"]), rel=1e-3
    )


def test_large_facts_may_be_written_without_line_breaks(monkeypatch, tmp_path):
    # As folders of earlier versions are resumed, whose facts have line breaks at any size.
    experiment = load_experiment(
        None, ["cycles=1", "model.name=logreg"], {"methods": ["pdfl"], "seeds": [0]}
    )
    folder = run_experiment(experiment, tmp_path / "run")
    readable = to_json(folder.network(0))
    monkeypatch.setattr("ssdfl.files._READABLE_DEVICES", 10)
    assert to_json(folder.network(0)) == json.dumps(json.loads(readable)) + "\n"
    run_experiment(experiment, tmp_path / "run", resume=True)
    assert (folder.seed_folder(0) / "network.json").read_text(encoding="utf-8").count("\n") == 1
