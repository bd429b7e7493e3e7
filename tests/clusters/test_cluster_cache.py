import numpy as np
import pytest

from ssdfl.clusters import cluster_cache
from ssdfl.clusters.cluster_cache import Budget, ClusterCache
from ssdfl.clusters.spectral import Splits
from ssdfl.graph import conductance, load_network, metropolis, prefix_conductance, slowest_mode

SPECS = ("er:n=40,p=0.1,seed=4", "rgeo:n=40,radius=0.25,seed=1", "sites:sites=5,size=7,seed=0")


def mixing(network, cluster):
    return metropolis(network.adjacency[list(cluster)][:, list(cluster)])


def halves(devices, sizes):
    return [(tuple(devices[:n]), tuple(devices[n:])) for n in sizes]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("small", [0, 40])
def test_overlapping_halves_are_examined_as_one_by_one(spec, small, monkeypatch):
    monkeypatch.setattr(cluster_cache, "_SMALL", small)
    network = load_network(spec)
    left, right = halves(range(network.num_devices), [15])[0]
    rounds = list(zip(halves(left, [3, 5, 6, 9, 12]), halves(right, [2, 4, 5, 8, 10]), strict=True))
    cache = ClusterCache(network)
    cache.find_cuts(rounds)
    for half in {half for pairs in rounds for pair in pairs for half in pair}:
        W = mixing(network, half)
        assert np.array_equal(cache.mixing(half).toarray(), W.toarray())
        lambda_2, fiedler = slowest_mode(W)
        assert cache.mode(half)[0] == lambda_2
        assert cache.mode(half)[1].tolist() == fiedler.tolist()
        order = np.argsort(np.round(fiedler, 9), kind="stable")
        assert cache.fiedler_cut(half) == prefix_conductance(W, order).min()
        found = conductance(W)
        assert cache.weakest_device(half) == (found.upper > 0) * (1 - W.diagonal()).min()
        assert cache.quick_cut(half) == cache.conductance(half).upper == found.upper


@pytest.mark.parametrize("spec", SPECS)
def test_looking_ahead_changes_no_split(spec):
    network = load_network(spec)
    ahead = Splits(ClusterCache(network, budget=Budget(prefixes=3)))
    waiting = [tuple(range(network.num_devices))]
    skipped = 0
    while waiting:
        cluster = waiting.pop()
        alone = Splits(ClusterCache(network, budget=Budget(prefixes=3)))
        assert ahead(cluster) == alone(cluster)
        skipped += alone.skipped_prefixes
        assert ahead.skipped_prefixes == skipped
        waiting += [half for half in ahead(cluster).halves if len(half) > 1]
    assert skipped > 0
