import re

import numpy as np
import pytest

from pages import data_of
from ssdfl.clusters import Device, FormationSettings, Plan, form_clusters, unknown_devices
from ssdfl.errors import InputError
from ssdfl.graph import load_network, make_network
from ssdfl.report import write_plan_page
from ssdfl.report.page import asset
from ssdfl.report.places import MAP_SHAPE, discs_of_clusters, map_projection
from ssdfl.report.world import WORLD
from ssdfl.theory import Constants


def page_of(network, tmp_path, devices=None, **settings):
    plan = form_clusters(
        network, devices or unknown_devices(network), FormationSettings(**settings)
    )
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


def test_maps_have_the_shape_of_the_frame_that_pages_draw_them_in():
    width, height = MAP_SHAPE
    assert f"width: {width:.0f}, height: {height:.0f} }}" in asset("network.js")


def test_maps_are_not_stretched_and_hold_every_device(tmp_path):
    network = load_network("gaia")
    _, page = page_of(network, tmp_path)
    places = np.array(data_of(page)["places"])
    assert places.min() >= 0
    assert places.max() <= 1
    width, height = MAP_SHAPE
    scale, shift = map_projection(network.positions)
    assert np.allclose(places, network.positions * scale + shift, atol=1e-5)
    assert len(data_of(page)["world"]) == len(WORLD)
    middle = (network.positions[:, 1].min() + network.positions[:, 1].max()) / 2
    assert scale[0] * width == pytest.approx(scale[1] * height * np.cos(np.radians(middle)))
    assert sum(len(outline) for outline in WORLD) < 500
    for outline in WORLD:
        assert outline[0] == outline[-1]
        assert all(abs(longitude) <= 180 and abs(latitude) <= 90 for longitude, latitude in outline)


def test_clusters_of_many_devices_are_discs_apart():
    network = load_network("cliques:cliques=20,size=40")
    labels = np.arange(800) // 40
    places = discs_of_clusters(network, labels)
    centres = np.array([places[labels == k].mean(axis=0) for k in range(20)])
    radius = np.linalg.norm(places - centres[labels], axis=1)
    assert radius.max() <= 1.2 * np.sqrt(40)
    between = np.linalg.norm(centres[:, None] - centres[None], axis=2)[np.triu_indices(20, 1)]
    assert np.median(between) > 2 * np.sqrt(40)
