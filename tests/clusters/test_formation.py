"""Algorithms 1 and 2: invariants on every topology, and the literal text written anew for small ones."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest

from helpers import TOPOLOGY_SPECS
from ssdfl.clusters import Device, FormationSettings, choose, form_candidates
from ssdfl.clusters.formation import Candidate
from ssdfl.clusters.spectral import ClusterCache
from ssdfl.errors import InputError
from ssdfl.graph import Conductance, conductance, load_network, metropolis, spectrum
from ssdfl.theory import Constants, conductance_threshold, stationarity_bound


def devices_of(network, seed=0):
    rng = np.random.default_rng(seed)
    return [Device(1.0 + rng.multinomial(20, [0.25] * 4)) for _ in range(network.num_devices)]


def form(spec, **constants):
    network = load_network(spec)
    return network, form_candidates(network, devices_of(network), FormationSettings(Constants(**constants)))


def phi(network, cluster):
    return conductance(metropolis(network.adjacency[list(cluster)][:, list(cluster)])).upper


@pytest.mark.parametrize("spec", TOPOLOGY_SPECS)
def test_invariants_on_every_topology(spec):
    network, found = form(spec)
    graph = network.to_networkx()
    assert [candidate.num_clusters for candidate in found] == list(range(1, network.num_devices + 1))
    for before, after in zip([None, *found], found, strict=False):
        assert sorted(d for cluster in after.clusters for d in cluster) == list(range(network.num_devices))
        assert all(nx.is_connected(graph.subgraph(cluster)) for cluster in after.clusters)
        assert after.min_conductance.upper == pytest.approx(min(phi(network, c) for c in after.clusters))
        assert after.threshold == conductance_threshold(Constants(), network.num_devices, after.num_clusters)
        if before is not None:
            assert set(before.clusters) - set(after.clusters) == {after.split}
    assert form(spec)[1] == found


def literal_split(network, clusters, threshold):
    """Algorithm 2 as printed, every prefix's conductance computed, with the readings of the paper notes."""

    def best(cluster):
        positions = np.array(cluster)
        W = metropolis(network.adjacency[positions][:, positions])
        order = np.argsort(np.round(spectrum(W).fiedler, 9), kind="stable")
        halves = [
            (tuple(sorted(positions[order[:n]].tolist())), tuple(sorted(positions[order[n:]].tolist())))
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
    "spec", ["er:n=9,p=0.3,seed=4", "barbell:size=4", "cliques:cliques=3,size=4", "ws:n=10,k=4,p=0.3"]
)
def test_the_literal_algorithm_gives_the_same(spec):
    network, found = form(spec)
    cache = ClusterCache(network)
    for before, after in itertools.pairwise(found):
        cluster, value, rule = literal_split(network, before.clusters, before.threshold)
        assert (after.split, after.rule) == (cluster, rule)
        assert cache.split(cluster).conductance == pytest.approx(value, abs=1e-12)


def test_scores_average_theorem_1():
    _, found = form("barbell:size=3")
    alone = found[-1]
    expected = stationarity_bound(Constants(), 1.0, 1, amplification=0.0)
    assert alone.score == pytest.approx(expected)
    assert alone.min_conductance.upper == 0
    assert not alone.feasible


def test_the_papers_score_falls_with_every_split():
    """Against the paper's "complete → one cluster": its score prefers ever more clusters."""
    for spec in ("complete:n=10", "sites:sites=4,size=5", "er:n=20,p=0.2"):
        scores = [candidate.score for candidate in form(spec)[1]]
        assert scores == sorted(scores, reverse=True)


def candidate(S, score, lower, threshold=0.5):
    return Candidate(((0,),) * S, score, threshold, Conductance(lower, max(lower, 0.6), ()), (), "start")


def test_choice_is_the_best_certainly_feasible_candidate():
    found = [candidate(1, 5.0, 0.6), candidate(2, 3.0, 0.5), candidate(3, 1.0, 0.4)]
    assert choose(found).num_clusters == 2
    assert choose([candidate(1, 1.0, 0.1), candidate(2, 9.0, 0.3)]).num_clusters == 2  # nothing feasible
    assert choose([candidate(1, math.inf, 0.6), candidate(2, math.inf, 0.6)]).num_clusters == 1


def test_a_barbells_bells_are_passed_through():
    assert form("barbell:size=5")[1][1].clusters == ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9))


def test_descriptors_must_cover_the_devices():
    network = load_network("ring:n=5")
    with pytest.raises(InputError, match="number of device descriptors = 4: expected 5"):
        form_candidates(network, devices_of(network)[:4], FormationSettings())
