import re

import numpy as np
import pytest

from pages import data_of
from ssdfl.clusters import Device, FormationSettings, Plan, form_clusters, unknown_devices
from ssdfl.errors import InputError
from ssdfl.graph import load_network, make_network
from ssdfl.report import write_plan_page
from ssdfl.theory import Constants


def page_of(network, tmp_path, devices=None, **settings):
    plan = form_clusters(network, devices or unknown_devices(network), FormationSettings(**settings))
    write_plan_page(network, plan, tmp_path / "plan.html")
    return plan, (tmp_path / "plan.html").read_text()


def test_the_page_holds_every_candidate_and_nothing_from_elsewhere(tmp_path):
    network = load_network("sites:sites=3,size=4,seed=1")
    plan, page = page_of(network, tmp_path)
    data = data_of(page)
    assert [c["num_clusters"] for c in data["candidates"]] == list(range(1, 13))
    chosen = data["candidates"][data["chosen"]]
    assert chosen["num_clusters"] == plan.num_clusters == 3
    assert chosen["score"] == plan.chosen.score
    assert chosen["sizes"] == "3 × 4"
    assert len(data["links"]) == network.num_links
    assert np.array(data["places"]).min() >= 0
    assert np.array(data["places"]).max() <= 1
    assert not re.search(r"(src|href)=[\"']?(https?:|/|\.)|@import|fetch\(", page)
    for diagnostic in plan.diagnostics:
        assert diagnostic.name.replace("<", "&lt;") in page


def test_infinite_scores_and_odd_names_do_no_harm(tmp_path):
    names = ["</script><b>", "$style", "Zürich"]
    network = make_network(3, [(0, 1), (1, 2)], names=names, title="<i>net</i>")
    devices = [Device(np.array(labels)) for labels in ([1.0, 0], [0, 1.0], [1.0, 1.0])]
    _, page = page_of(
        network,
        tmp_path,
        devices,
        constants=Constants(learning_rate=0.9),
        partition="paper",
        score="stationarity",
    )
    assert data_of(page)["names"] == names
    assert data_of(page)["candidates"][0]["score"] is None
    assert "<i>net" not in page


def test_what_cannot_be_shown(tmp_path):
    with pytest.raises(InputError, match=r"3 devices new \(2, 3, 4\)"):
        write_plan_page(load_network("ring:n=5"), Plan(((0, 1),), "by hand"), tmp_path / "a.html")
    with pytest.raises(InputError, match="candidates of the plan"):
        write_plan_page(load_network("path:n=2"), Plan(((0, 1),), "by hand"), tmp_path / "a.html")
    assert not (tmp_path / "a.html").exists()
