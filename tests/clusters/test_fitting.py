import json
from dataclasses import replace

import numpy as np
import pytest

from ssdfl.clusters import Misfit, Plan, fitting_plan, form_clusters, misfit, parse_plan
from ssdfl.errors import InputError
from ssdfl.graph import load_network, make_network

CITIES = ("paris", "lyon", "oslo", "bergen")
TWO_SITES = [(0, 1), (1, 2), (2, 3)]


def network_in(order, links=TWO_SITES):
    """The same four cities and links, listed in another order."""
    place = {city: device for device, city in enumerate(order)}
    numbered = [(place[CITIES[i]], place[CITIES[j]]) for i, j in links]
    return make_network(4, numbered, names=order)


@pytest.fixture
def plan():
    return Plan(((0, 1), (2, 3)), "by hand", names=CITIES)


def members(plan):
    return {frozenset(plan.names[device] for device in cluster) for cluster in plan.clusters}


def test_devices_are_matched_by_name_in_any_order(plan):
    for order in [CITIES, CITIES[::-1], ("oslo", "paris", "bergen", "lyon")]:
        fitted = fitting_plan(plan, network_in(order))
        assert fitted.names == order
        assert members(fitted) == {frozenset(CITIES[:2]), frozenset(CITIES[2:])}
        assert [cluster[0] for cluster in fitted.clusters] == sorted(c[0] for c in fitted.clusters)


def test_all_that_a_formed_plan_says_of_devices_is_renumbered():
    network = load_network("sites:sites=3,size=4,seed=1")
    formed = form_clusters(network)
    order = np.random.default_rng(0).permutation(12)
    place = np.argsort(order)
    shuffled = make_network(12, place[network.links], names=[network.names[k] for k in order])
    fitted = fitting_plan(formed, shuffled)
    assert members(fitted) == members(formed)
    for ours, theirs in zip(fitted.candidates, formed.candidates, strict=True):
        assert [order[k] for k in ours.min_conductance.cut] == pytest.approx(
            sorted(theirs.min_conductance.cut, key=lambda k: place[k])
        )
        assert (ours.score, ours.num_clusters) == (theirs.score, theirs.num_clusters)
    back = fitting_plan(fitted, network)
    assert back == formed


def test_what_does_not_fit_is_named(plan):
    replaced = make_network(4, TWO_SITES, names=["paris", "lyon", "oslo", "turku"])
    assert misfit(plan, replaced) == Misfit(new=("turku",), gone=("bergen",))
    with pytest.raises(InputError, match=r"1 device new \(turku\), 1 device gone \(bergen\)"):
        fitting_plan(plan, replaced)
    moved = network_in(CITIES, [(0, 1), (1, 2), (1, 3)])
    assert misfit(plan, moved) == Misfit(moved=("bergen",))
    assert not misfit(plan, network_in(CITIES))


def test_a_plan_of_version_2_goes_by_numbers(plan):
    old = plan.to_json() | {"version": 2, "clusters": [[0, 1], [2, 3]]}
    del old["devices"]
    read = parse_plan(json.dumps(old))
    assert read == replace(plan, names=())
    assert fitting_plan(read, network_in(CITIES)) == plan
    assert misfit(read, load_network("path:n=5")) == Misfit(new=("4",))


def test_two_devices_of_one_name_are_refused():
    with pytest.raises(InputError, match="name of two devices = a"):
        make_network(3, [(0, 1), (1, 2)], names=["a", "b", "a"])
