"""A repaired plan fits the changed network and depends on the old plan and the facts alone."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdfl.clusters import (
    Device,
    FormationSettings,
    Plan,
    Standing,
    compare_plans,
    fitting_plan,
    form_clusters,
    misfit,
    read_plan,
    repair,
    unknown_devices,
    write_plan,
)
from ssdfl.clusters.labelled import LinkTable, with_pieces_apart
from ssdfl.clusters.plan_repair import _places, carried_labels
from ssdfl.clusters.scores import ScoreInputs
from ssdfl.clusters.settling import settle
from ssdfl.clusters.standing import WORTH, reasons_to_form
from ssdfl.errors import InputError
from ssdfl.graph import load_network, make_network

SLOW_S, FAST_S = 0.2, 0.002


def sites(names="abcdefgh", slow=(("a", "e"),), more=()):
    """Two cliques of four with slow links between them; ``more`` are links (a, b, seconds)."""
    fast = [(a, b) for site in ("abcd", "efgh") for a in site for b in site if a < b]
    links = [(a, b, FAST_S) for a, b in fast] + [(a, b, SLOW_S) for a, b in slow] + list(more)
    there = [link for link in links if link[0] in names and link[1] in names]
    place = {name: k for k, name in enumerate(names)}
    pairs = [(place[a], place[b]) for a, b, _ in there]
    return make_network(len(names), pairs, latency_s=[s for *_, s in there], names=list(names))


def skewed(count, seed=0, labels=10):
    rng = np.random.default_rng(seed)
    return [
        Device(np.bincount([rng.integers(labels)], minlength=labels).astype(float))
        for _ in range(count)
    ]


def named(plan):
    return {frozenset(plan.names[device] for device in cluster) for cluster in plan.clusters}


def groups(*texts):
    return {frozenset(text) for text in texts}


def test_nothing_changes_on_an_unchanged_network():
    network = sites()
    plan = form_clusters(network, skewed(8))
    found = repair(plan, network, skewed(8))
    assert named(found.plan) == named(plan)
    assert found.plan.chosen.score == pytest.approx(plan.chosen.score)
    assert (found.steps, found.reasons) == ((), ())
    assert found.plan.standing == plan.standing


def test_a_device_joins_where_its_links_are_fast():
    joined = sites("abcdefghi", more=[("i", "e", FAST_S), ("i", "f", FAST_S), ("a", "i", SLOW_S)])
    assert named(form_clusters(sites())) == groups("abcd", "efgh")
    found = repair(form_clusters(sites()), joined)
    assert named(found.plan) == groups("abcd", "efghi")
    assert found.steps == ("i (new) to the cluster of e, over the fastest links.",)


def test_a_new_site_is_a_cluster_of_its_own():
    more = [("i", "j", FAST_S), ("j", "k", FAST_S), ("i", "k", FAST_S), ("a", "i", SLOW_S)]
    found = repair(form_clusters(sites()), sites("abcdefghijk", more=more))
    assert named(found.plan) == groups("abcd", "efgh", "ijk")
    assert "i, j, k (new) in a new cluster" in found.steps[0]


def test_who_leaves_is_gone_and_a_part_that_loses_its_links_moves():
    chain = ["ab", "bc", "cd", "de"]
    names = "abcde"
    links = [(names.index(a), names.index(b)) for a, b in chain]
    plan = Plan(((0, 1, 2), (3, 4)), "x", names=tuple(names))
    network = make_network(5, links, names=list(names))
    plan = replace(form_clusters(network), clusters=plan.clusters, candidates=())
    left = make_network(4, [(0, 1), (1, 2), (2, 3), (0, 2)], names=list("acde"))
    found = repair(plan, left)
    assert not misfit(found.plan, left)
    assert named(found.plan) == groups("ac", "de")
    cut = make_network(5, [(0, 1), (3, 1), (2, 3), (3, 4)], names=list(names))
    found = repair(plan, cut)
    assert named(found.plan) == groups("ab", "cde")
    assert "c (no links to the rest of the cluster any more) to the cluster of d" in found.steps[0]


def test_a_link_that_became_slow_leaves_its_cluster():
    plan = form_clusters(sites(), skewed(8))
    before = sites(more=[("d", "h", FAST_S)])
    slower = replace(before, latency_s=np.where(_is(before, "b", "d"), 5.0, before.latency_s))
    found = repair(plan, slower, skewed(8))
    one_cluster_less = form_clusters(slower, skewed(8))
    assert found.plan.chosen.score <= 1.05 * one_cluster_less.chosen.score
    assert any("cycles wait for b – d" in step for step in found.steps)
    labels = found.plan.labels
    assert labels[1] != labels[3]


def test_a_device_whose_uplink_became_slow_leaves_its_cluster():
    plan = form_clusters(sites(), skewed(8))
    uplink_Bps = np.full(8, np.inf)
    uplink_Bps[3] = 2e4
    slower = replace(sites(more=[("d", "h", FAST_S)]), uplink_Bps=uplink_Bps)
    found = repair(plan, slower, skewed(8))
    assert found.plan.chosen.score <= 1.05 * form_clusters(slower, skewed(8)).chosen.score
    assert any("cycles wait for" in step and "d" in step for step in found.steps)


def _is(network, a, b):
    ends = [{network.names[i], network.names[j]} for i, j in network.links]
    return np.array([one == {a, b} for one in ends])


def test_the_facts_decide_and_not_their_order():
    rng = np.random.default_rng(3)
    network = load_network("sites:sites=4,size=6,density=0.6,links=2,seed=2")
    names = [f"d{k:02}" for k in rng.permutation(24)]
    network = replace(
        network,
        names=tuple(names),
        latency_s=network.latency_s * rng.uniform(0.5, 2, network.num_links),
    )
    devices = skewed(24, 1)
    old = form_clusters(network, devices)
    changed = replace(network, latency_s=network.latency_s * rng.uniform(0.2, 5, network.num_links))
    expected = repair(old, changed, devices)
    for _ in range(3):
        order = rng.permutation(24)
        shuffled = changed.renumbered(order)
        found = repair(old, shuffled, [devices[k] for k in order])
        assert named(found.plan) == named(expected.plan)
        assert found.plan.chosen.score == expected.plan.chosen.score
        assert found.steps == expected.steps
        renamed = fitting_plan(old, network.renumbered(order))
        assert named(repair(renamed, changed, devices).plan) == named(expected.plan)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000))
def test_a_repaired_plan_is_a_plan_and_never_worse_than_settling(seed):
    rng = np.random.default_rng(seed)
    network = load_network(f"er:n=16,p=0.25,seed={seed % 7}")
    plan = form_clusters(network, skewed(16, seed))
    graph = network.to_networkx()
    graph.remove_node(int(rng.integers(16)))
    graph.add_edges_from((100, int(host)) for host in rng.permutation(list(graph))[:2])
    parts = [list(part) for part in nx.connected_components(graph)]
    graph.add_edges_from((parts[0][0], part[0]) for part in parts[1:])
    nodes = sorted(graph)
    place = {node: k for k, node in enumerate(nodes)}
    links = [(place[a], place[b]) for a, b in graph.edges]
    latency_s = rng.choice([FAST_S, SLOW_S], len(links))
    changed = make_network(
        len(nodes), links, latency_s=latency_s, names=[str(node) for node in nodes]
    )
    devices = skewed(len(nodes), seed + 1)
    found = repair(plan, changed, devices)
    assert not misfit(found.plan, changed)
    inputs = ScoreInputs(changed, devices, message_bytes=FormationSettings().message_bytes)
    order = np.argsort(changed.names)
    table = LinkTable(ScoreInputs(changed.renumbered(order), [devices[k] for k in order]))
    labels, _ = settle(table, carried_labels(plan.clusters, _places(plan, changed), len(nodes)))
    settled = tuple(
        sorted(tuple(sorted(order[labels == one].tolist())) for one in np.unique(labels))
    )
    least = inputs.cycle_cost(settled).time_s * inputs.slowdown(settled)
    assert found.plan.chosen.score <= least * (1 + 1e-9)
    actual = inputs.cycle_cost(found.plan.clusters).time_s * inputs.slowdown(found.plan.clusters)
    assert found.plan.chosen.score == pytest.approx(actual)


def test_pieces_of_a_cluster_get_labels_of_their_own():
    line = make_network(5, [(0, 1), (1, 2), (2, 3), (3, 4)])
    table = LinkTable(ScoreInputs(line, [Device(np.ones(1))] * 5))
    labels = np.array([0, 1, 0, 0, -1])
    assert with_pieces_apart(table, labels).tolist() == [2, 1, 0, 0, -1]


def test_a_feasible_plan_stays_feasible_or_says_so():
    network = load_network("complete:n=10")
    plan = form_clusters(network)
    assert plan.choice == "feasible"
    fewer = make_network(9, [(i, j) for j in range(9) for i in range(j)], names=network.names[:9])
    kept = repair(plan, fewer)
    assert kept.plan.chosen.feasible
    assert not kept.worth_forming
    thin = make_network(10, [(i, i + 1) for i in range(9)], names=network.names)
    found = repair(plan, thin)
    assert not found.plan.chosen.feasible
    assert any("conductance threshold" in reason for reason in found.reasons)


def test_large_networks_get_a_bound_of_conductance_only():
    network = load_network("grid:rows=20,cols=15")
    halves = tuple(range(150)), tuple(range(150, 300))
    plan = replace(form_clusters(sites()), clusters=halves, names=network.names)
    found = repair(plan, network).plan.chosen
    assert found.clusters == halves
    exact = ScoreInputs(network, unknown_devices(network)).cache.weakest(halves)
    assert found.min_conductance.lower <= exact.lower <= exact.upper <= found.min_conductance.upper


@pytest.mark.parametrize(
    ("formed", "now", "words"),
    [
        (Standing(1.2, 2.0), Standing(1.2, 2.0), []),
        (Standing(1.2, 2.0), Standing(1.3, 2.0), ["1.3 times the least possible"]),
        (Standing(1.2, 2.0), Standing(WORTH * 1.2, 2.0), []),  # no more than is worth it
        (Standing(1.0, 2.0), Standing(1.04, 1.0), []),  # nothing left to gain
        (Standing(1.2, 2.0), Standing(1.2, 1.5), ["Links cost less"]),
        (Standing(1.2, 2.0), Standing(1.2, 2.5), []),
        (Standing(1.2, 2.0), Standing(1.2, 2.0, changed=21), ["21 of 100 devices"]),
        (None, Standing(9.0, 2.0), []),
        (Standing(1.2, 2.0), None, []),
    ],
)
def test_when_forming_anew_is_worth_it(formed, now, words):
    reasons = list(reasons_to_form(formed, now, num_devices=100))
    assert len(reasons) == len(words)
    assert all(word in reason for word, reason in zip(words, reasons, strict=True))


def test_changes_add_up_until_forming_anew_is_worth_it():
    plan = form_clusters(sites("abcdefgh"))
    without = {}
    for names in ("abcdefg", "abcdef"):
        found = repair(plan, sites(names))
        without[names], plan = found, found.plan
    assert [one.plan.standing.changed for one in without.values()] == [1, 2]
    assert [one.worth_forming for one in without.values()] == [False, True]


def test_faster_links_between_clusters_make_forming_worth_it():
    plan = form_clusters(sites(), skewed(8))
    assert plan.num_clusters == 2
    fast = replace(sites(), latency_s=np.full(13, FAST_S))
    found = repair(plan, fast, skewed(8))
    anew = form_clusters(fast, skewed(8))
    assert found.worth_forming or found.plan.chosen.score <= 1.05 * anew.chosen.score


def test_a_repaired_plan_is_read_back_and_compared(tmp_path):
    plan = form_clusters(sites())
    found = repair(plan, sites("abcdefg"))
    write_plan(found.plan, tmp_path / "plan.json")
    back = read_plan(tmp_path / "plan.json")
    assert back == found.plan
    assert back.decision.rule == "repaired"
    assert back.remark == ""
    assert compare_plans(plan, back).gone == ("h",)


def test_scores_that_predict_no_cost_only_settle():
    plan = form_clusters(
        sites(), skewed(8), FormationSettings(partition="paper", score="stationarity")
    )
    found = repair(plan, sites("abcdefg"), skewed(7))
    assert found.plan.standing is None
    assert all("instead of" not in step for step in found.steps)
    assert not misfit(found.plan, sites("abcdefg"))


def test_what_cannot_be_repaired():
    plan = form_clusters(sites())
    other = make_network(2, [(0, 1)], names=["x", "y"])
    with pytest.raises(InputError, match="some of the network's"):
        repair(plan, other)
    with pytest.raises(InputError, match="a connected network"):
        repair(plan, make_network(3, [(0, 1)], names=list("abc")))
    with pytest.raises(InputError, match="a formed plan"):
        repair(Plan(((0, 1),), "by hand", names=("a", "b")), sites())
