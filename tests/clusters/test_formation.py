"""Algorithms 1 and 2: invariants on every topology, and the literal text written anew."""

import itertools
import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from helpers import TOPOLOGY_SPECS
from ssdfl.clusters import (
    Device,
    FormationSettings,
    choose,
    clusters_of,
    form_clusters,
    formation,
    labels_of,
)
from ssdfl.clusters.candidates import Candidate
from ssdfl.clusters.cluster_cache import ClusterCache
from ssdfl.clusters.formation import INDIFFERENCE, Skipped, _Weigher, form
from ssdfl.clusters.heterogeneity import assumed_directions
from ssdfl.clusters.recorded_settings import settings_from
from ssdfl.clusters.spectral import Splits
from ssdfl.errors import InputError
from ssdfl.graph import Conductance, conductance, load_network, metropolis, spectrum
from ssdfl.theory import ClusterTerms, Constants, conductance_threshold, published


def devices_of(network, seed=0):
    rng = np.random.default_rng(seed)
    return [Device(1.0 + rng.multinomial(20, [0.25] * 4)) for _ in range(network.num_devices)]


def by_the_paper(spec, **constants):
    network = load_network(spec)
    settings = FormationSettings(Constants(**constants), partition="paper", score="stationarity")
    return network, form(network, devices_of(network), settings).candidates


def phi(network, cluster):
    return conductance(metropolis(network.adjacency[list(cluster)][:, list(cluster)])).upper


@pytest.mark.parametrize("spec", TOPOLOGY_SPECS)
def test_invariants_on_every_topology(spec):
    network, found = by_the_paper(spec)
    graph = network.to_networkx()
    assert [candidate.num_clusters for candidate in found] == list(
        range(1, network.num_devices + 1)
    )
    for before, after in zip([None, *found], found, strict=False):
        assert sorted(d for cluster in after.clusters for d in cluster) == list(
            range(network.num_devices)
        )
        assert all(nx.is_connected(graph.subgraph(cluster)) for cluster in after.clusters)
        assert after.min_conductance.upper == pytest.approx(
            min(phi(network, c) for c in after.clusters)
        )
        assert after.threshold == conductance_threshold(
            Constants(), network.num_devices, after.num_clusters
        )
        if before is not None:
            assert set(before.clusters) - set(after.clusters) == {after.split}
    assert by_the_paper(spec)[1] == found


def literal_split(network, clusters, threshold):
    """Algorithm 2 as printed, every prefix's conductance computed, as the paper notes read it."""

    def best(cluster):
        positions = np.array(cluster)
        W = metropolis(network.adjacency[positions][:, positions])
        order = np.argsort(np.round(spectrum(W).fiedler, 9), kind="stable")
        halves = [
            (
                tuple(sorted(positions[order[:n]].tolist())),
                tuple(sorted(positions[order[n:]].tolist())),
            )
            for n in range(1, len(cluster))
        ]
        return max(min(phi(network, half) for half in pair) for pair in halves)

    queue = sorted((c for c in clusters if len(c) > 1), key=lambda c: (phi(network, c), c))
    values = {cluster: best(cluster) for cluster in queue}
    for cluster in queue:
        if values[cluster] >= threshold:
            return cluster, values[cluster], "threshold"
    return queue[0], values[queue[0]], "weakest"


@pytest.mark.parametrize(
    "spec",
    ["er:n=9,p=0.3,seed=4", "barbell:size=4", "cliques:cliques=3,size=4", "ws:n=10,k=4,p=0.3"],
)
def test_the_literal_algorithm_gives_the_same(spec):
    network, found = by_the_paper(spec)
    splits = Splits(ClusterCache(network))
    for before, after in itertools.pairwise(found):
        cluster, value, rule = literal_split(network, before.clusters, before.threshold)
        assert (after.split, after.rule) == (cluster, rule)
        assert splits(cluster).conductance == pytest.approx(value, abs=1e-12)


def test_scores_average_theorem_1():
    _, found = by_the_paper("barbell:size=3")
    alone = found[-1]
    expected = published.intra_convergence(Constants(), ClusterTerms(1), Constants().initial_loss)
    assert alone.score == pytest.approx(expected)
    assert alone.min_conductance.upper == 0
    assert not alone.feasible


def test_the_papers_score_falls_with_every_split():
    """Against the paper's "complete → one cluster": its score prefers ever more clusters."""
    for spec in ("complete:n=10", "sites:sites=4,size=5", "er:n=20,p=0.2"):
        scores = [candidate.score for candidate in by_the_paper(spec)[1]]
        assert scores == sorted(scores, reverse=True)


def candidate(S, score, lower, threshold=0.5):
    return Candidate(
        ((0,),) * S, score, threshold, Conductance(lower, max(lower, 0.6), ()), (), "start"
    )


def test_choice_is_the_best_certainly_feasible_candidate():
    found = [candidate(1, 5.0, 0.6), candidate(2, 3.0, 0.5), candidate(3, 1.0, 0.4)]
    assert (choose(found)[0].num_clusters, choose(found)[1]) == (2, "feasible")
    nothing = [candidate(1, 1.0, 0.1), candidate(2, 9.0, 0.3)]
    assert (choose(nothing)[0].num_clusters, choose(nothing)[1]) == (2, "nearest")
    assert choose([candidate(1, math.inf, 0.6), candidate(2, math.inf, 0.6)])[0].num_clusters == 1


def test_candidates_of_infinite_score_are_equal_and_fewer_clusters_win():
    found = [candidate(S, math.inf, 0.6) for S in (3, 2, 4)]
    assert choose(found)[0].num_clusters == 2
    assert choose([*found, candidate(5, 7.0, 0.6)])[0].num_clusters == 5
    assert choose([*found, candidate(5, 7.0, 0.4)]) == (found[1], "feasible")


def test_nearest_looks_at_the_threshold_alone():
    far, near, as_near = candidate(1, 1.0, 0.1), candidate(3, math.inf, 0.3), candidate(4, 2.0, 0.3)
    assert choose([far, as_near, near]) == (near, "nearest")
    lower_threshold = candidate(5, math.inf, 0.2, threshold=0.25)
    assert choose([far, near, lower_threshold]) == (lower_threshold, "nearest")


def test_a_threshold_that_costs_too_much_gives_way():
    found = [candidate(1, 5.0, 0.6), candidate(2, 3.0, 0.5), candidate(3, 2.8, 0.4)]
    assert choose(found, price=1.1)[1] == "feasible"
    assert (choose(found, price=1.05)[0].num_clusters, choose(found, price=1.05)[1]) == (3, "price")
    found = [candidate(1, 1.016, 0.6), candidate(2, 1.009, 0.6), candidate(3, 1.0, 0.4)]
    chosen, rule = choose(found, price=1.002, indifference=INDIFFERENCE)
    assert (chosen.num_clusters, rule) == (2, "feasible")
    nothing = [candidate(1, 1.0, 0.1), candidate(2, 1.05, 0.3)]
    assert (choose(nothing, price=1.1)[0].num_clusters, choose(nothing, price=1.1)[1]) == (
        1,
        "price",
    )


@pytest.mark.parametrize(
    ("apart", "num_clusters"), [(1.005, 2), (1.0099, 2), (1.011, 3), (1.02, 3)]
)
def test_scores_within_one_percent_count_as_equal_and_fewer_clusters_win(apart, num_clusters):
    found = [candidate(1, 2.0, 0.6), candidate(2, apart, 0.6), candidate(3, 1.0, 0.6)]
    assert choose(found, indifference=INDIFFERENCE)[0].num_clusters == num_clusters
    assert choose(found)[0].num_clusters == 3


@pytest.mark.parametrize(("score", "num_clusters"), [("time", 2), ("bytes", 2), ("drift", 3)])
def test_only_predicted_costs_are_known_so_roughly(monkeypatch, score, num_clusters):
    by_size = {1: 2.0, 2: 1.008, 3: 1.0}
    monkeypatch.setattr(
        formation, "evaluate", lambda _, __, clusters: by_size.get(len(clusters), 9.0)
    )
    settings = FormationSettings(Constants(learning_rate=1e-6), score=score)
    plan = form_clusters("cliques:cliques=3,size=3", None, settings)
    assert (plan.num_clusters, plan.choice) == (num_clusters, "feasible")


def test_a_barbells_bells_are_passed_through():
    assert by_the_paper("barbell:size=5")[1][1].clusters == ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9))


def test_descriptors_must_cover_the_devices():
    network = load_network("ring:n=5")
    with pytest.raises(InputError, match="number of device descriptors = 4: expected 5"):
        form(network, devices_of(network)[:4], FormationSettings())


ALIKE = Device(np.ones(1))


@pytest.mark.parametrize(
    ("spec", "size"),
    [
        ("complete:n=10", 10),
        ("complete:n=30", 30),
        ("barbell:size=5", 5),
        ("barbell:size=12", 12),
        ("cliques:cliques=5,size=6", 6),
        ("sites:sites=4,size=5,seed=0", 5),
        ("sites:sites=6,size=8,links=2,seed=3", 8),
    ],
)
def test_defaults_find_the_obvious_clusters(spec, size):
    network = load_network(spec)
    plan = form_clusters(network, [ALIKE] * network.num_devices)
    assert plan.clusters == clusters_of(np.arange(network.num_devices) // size)
    assert plan.choice == "feasible"


@pytest.mark.parametrize("spec", TOPOLOGY_SPECS)
def test_cost_aware_candidates_are_connected_partitions_of_every_size(spec):
    network = load_network(spec)
    graph = network.to_networkx()
    plan = form_clusters(network, devices_of(network))
    assert [c.num_clusters for c in plan.candidates] == list(range(1, network.num_devices + 1))
    for candidate_ in plan.candidates:
        assert sorted(d for c in candidate_.clusters for d in c) == list(range(network.num_devices))
        assert all(nx.is_connected(graph.subgraph(cluster)) for cluster in candidate_.clusters)
    assert form_clusters(network, devices_of(network)) == plan


def test_differing_devices_may_overrule_the_threshold_and_strictness_forbids_it():
    network = load_network("barbell:size=5")
    devices = [Device(np.eye(10)[k % 10] + 1e-3) for k in range(10)]
    assert form_clusters(network, devices).choice == "price"
    strict = form_clusters(network, devices, FormationSettings(price=math.inf))
    assert (strict.num_clusters, strict.choice) == (2, "feasible")


def test_partitions_that_cannot_be_chosen_are_not_searched_and_nothing_changes(monkeypatch):
    network = load_network("er:n=24,p=0.2,seed=1")
    searched = []
    weakest = ClusterCache.weakest
    monkeypatch.setattr(
        ClusterCache, "weakest", lambda *args: searched.append(args[1]) or weakest(*args)
    )
    found = form(network, devices_of(network), FormationSettings())
    num_searched = len(searched)
    monkeypatch.setattr(_Weigher, "contenders", lambda _, options: options)
    assert form(network, devices_of(network), FormationSettings()) == found
    assert num_searched < len(searched) - num_searched


def test_the_threshold_counts_local_steps_if_told():
    def thresholds(threshold_step="eta", **constants):
        settings = FormationSettings(Constants(**constants), threshold_step=threshold_step)
        return [c.threshold for c in form_clusters("barbell:size=3", None, settings).candidates]

    four_steps = {"learning_rate": 0.01, "local_steps": 4}
    assert thresholds("eta_E", **four_steps) == thresholds(learning_rate=0.04, local_steps=1)
    assert thresholds(**four_steps) == thresholds(learning_rate=0.01, local_steps=1)


def test_slow_links_stay_between_clusters():
    network = load_network("sites:sites=3,size=6,density=0.6,links=3,seed=1")
    plan = form_clusters(network, devices_of(network))
    labels = labels_of(plan.clusters, network.num_devices)
    i, j = network.links.T
    assert (network.latency_s[labels[i] == labels[j]] == network.latency_s.min()).all()


def test_a_score_of_ones_own():
    def most_equal_sizes(inputs, clusters):
        return (
            max(len(c) for c in clusters) - min(len(c) for c in clusters) + abs(len(clusters) - 4)
        )

    network = load_network("torus:rows=4,cols=4")
    settings = FormationSettings(Constants(learning_rate=0.01), score=most_equal_sizes)
    plan = form_clusters(network, [ALIKE] * 16, settings)
    assert sorted(len(c) for c in plan.clusters) == [4, 4, 4, 4]
    assert plan.score_name == "most_equal_sizes"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"score": "beauty"}, "score = beauty: expected one of time"),
        ({"partition": "random"}, "partition = random"),
        ({"mode": "slow"}, "mode = slow"),
        ({"threshold_step": "E"}, "threshold_step = E: expected one of eta, eta_E"),
        ({"price": 0.5}, "price = 0.5"),
        ({"message_bytes": 0}, "message_bytes = 0"),
    ],
)
def test_bad_settings(changes, message):
    network = load_network("ring:n=5")
    with pytest.raises(InputError, match=message):
        form_clusters(network, [ALIKE] * 5, FormationSettings(**changes))


def literal_and_fast(spec, partition):
    network = load_network(spec)
    return [
        form_clusters(
            network, devices_of(network), FormationSettings(partition=partition, mode=mode)
        )
        for mode in ("literal", "fast")
    ]


@pytest.mark.parametrize(
    ("spec", "partition"),
    [
        ("er:n=14,p=0.3,seed=1", "cost"),
        ("cliques:cliques=3,size=4", "cost"),
        ("path:n=9", "cost"),
        ("path:n=5", "paper"),
        ("complete:n=6", "paper"),
        ("star:n=6", "paper"),
    ],
)
def test_fast_equals_literal_where_it_skips_nothing(spec, partition):
    literal, fast = literal_and_fast(spec, partition)
    assert fast.skipped == Skipped()
    assert fast.candidates == literal.candidates
    assert fast.clusters == literal.clusters


@pytest.mark.parametrize("spec", ["er:n=14,p=0.3,seed=1", "cliques:cliques=3,size=4", "ring:n=7"])
def test_fast_tries_fewer_splits_than_literal_and_so_finds_no_better_one(spec):
    literal, fast = literal_and_fast(spec, "paper")
    assert fast.skipped.prefixes > 0
    assert fast.candidates[0] == literal.candidates[0]
    found, best = (plan.candidates[1].min_conductance.upper for plan in (fast, literal))
    assert 0 < found <= best + 1e-12


def test_fast_says_what_it_skipped():
    network = load_network("er:n=300,p=0.02,seed=1")
    plan = form_clusters(network, [ALIKE] * 300)
    assert plan.mode == "fast"
    assert plan.skipped.sizes == 300 - len(plan.candidates) > 0
    assert plan.skipped.inexact == sum(not c.min_conductance.exact for c in plan.candidates) > 0


def test_of_unknown_devices_the_usual_drift_decides_where_nothing_is_feasible():
    """A ring with four slow links: nearest to Φ_min is one cluster, which always waits for them."""
    ring = load_network("ring:n=12")
    slow = np.isin(np.arange(12), (1, 4, 7, 10))
    ring = replace(ring, latency_s=np.where(slow, 0.04, 0.004))
    plan = form_clusters(ring)
    labels = plan.labels
    i, j = ring.links[slow].T
    assert plan.choice == "assumed"
    assert 1 < plan.num_clusters < 12
    assert (labels[i] != labels[j]).all()
    assert plan.chosen.score < 0.7 * plan.candidates[0].score
    strict = form_clusters(ring, settings=FormationSettings(price=math.inf))
    assert strict.choice in ("nearest", "fewest")


def test_assumed_costs_choose_only_among_those_that_cost_less_than_all_with_fewer_clusters():
    candidates = [
        candidate(num, score, 0.0) for num, score in ((1, 2.0), (2, 2.0), (3, 1.0), (4, 0.9))
    ]
    slowdowns = {1: 1.0, 3: 1.5, 4: 1.64}

    def assumed(one):
        return one.score * slowdowns[one.num_clusters]

    chosen, rule = choose(candidates, indifference=1.03, assumed=assumed)
    assert (chosen.num_clusters, rule) == (3, "assumed")


def test_assumed_directions_are_as_long_as_those_of_three_labels_of_ten():
    directions = assumed_directions(4000)
    assert directions.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert np.square(directions).sum(axis=1).mean() == pytest.approx(1 / 3 - 1 / 10, rel=0.03)


def liars_survived(plan):
    (found,) = [one.detail for one in plan.diagnostics if one.name.startswith("Lying neighbours")]
    return found


@pytest.mark.parametrize("partition", ["cost", "paper"])
def test_formation_can_demand_that_each_cluster_survives_a_liar(partition):
    network = "barbell:size=5"  # two cliques; as a whole it survives none, since one link joins it
    plan = form_clusters(network, settings=FormationSettings(partition=partition, liars=1))
    assert plan.clusters == ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9))
    assert liars_survived(plan) == "F = 1, 1, cluster by cluster"
    assert plan.settings["liars"] == 1
    assert settings_from(plan.settings, partition, "time").liars == 1


def test_without_a_demand_the_plan_says_what_its_clusters_survive():
    whole = form_clusters("complete:n=9", settings=FormationSettings(mode="literal"))
    assert liars_survived(whole).startswith("F = ")


def test_what_no_partition_survives_is_refused_with_what_one_does():
    expected = (
        "clusters.liars = 2: expected at most 1, "
        "which the best of 10 partitions survives. Add links"
    )
    with pytest.raises(InputError, match=expected):
        form_clusters("barbell:size=5", settings=FormationSettings(liars=2))
