"""Known answers, brute force, Cheeger's inequality, and intervals that hold the truth."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import TOPOLOGY_SPECS, least_conductance
from ssdfl.graph import (
    Conductance,
    ConductanceSearch,
    conductance,
    cut_conductance,
    from_networkx,
    lazy,
    load_network,
    metropolis,
    scaled,
    slowest_mode,
    sparsest_cut,
    spectrum,
    sweep_cut,
)
from ssdfl.graph.frontier import frontier_order, frontier_widths
from ssdfl.graph.sparsest_cut import search_cuts

NO_TABLE = 0


def W_of(spec):
    return metropolis(load_network(spec).adjacency)


def brute_force(W):
    """The least cut conductance over all sets of at most half of the devices."""
    W = W.toarray()
    n = len(W)
    least = math.inf
    for size in range(1, n // 2 + 1):
        for members in itertools.combinations(range(n), size):
            inside = np.isin(np.arange(n), members)
            least = min(least, W[inside][:, ~inside].sum() / size)
    return least


def assert_certified(found, W):
    """The cut is a set whose conductance is the upper end."""
    inside = np.isin(np.arange(W.shape[0]), found.cut)
    assert cut_conductance(W, inside) == pytest.approx(found.upper, abs=1e-12)
    assert 0 <= found.lower <= found.upper


@pytest.mark.parametrize("n", [2, 3, 4, 7, 20, 50])
def test_complete(n):
    found = conductance(W_of(f"complete:n={n}"))
    assert found.exact
    assert found.upper == pytest.approx(math.ceil(n / 2) / n)


@pytest.mark.parametrize("n", [3, 4, 9, 50, 120])
def test_path(n):
    found = conductance(W_of(f"path:n={n}"))
    assert found.exact
    assert found.upper == pytest.approx(1 / 3 / (n // 2))


@pytest.mark.parametrize("n", [4, 5, 12, 50])
def test_ring(n):
    found = conductance(W_of(f"ring:n={n}"))
    assert found.exact
    assert found.upper == pytest.approx(2 / 3 / (n // 2))


@pytest.mark.parametrize("n", [3, 6, 50])
def test_star(n):
    found = conductance(W_of(f"star:n={n}"))
    assert found.exact
    assert found.upper == pytest.approx(1 / n)


@pytest.mark.parametrize("size", [3, 5, 12])
def test_barbell(size):
    found = conductance(W_of(f"barbell:size={size}"))
    assert found.exact
    assert found.upper == pytest.approx(1 / (1 + size) / size)
    assert set(found.cut) in (set(range(size)), set(range(size, 2 * size)))


def test_two_devices_one_device_and_none_between():
    assert conductance(W_of("path:n=2")).upper == 0.5
    alone = conductance(W_of("complete:n=1"))
    assert (alone.lower, alone.upper, alone.cut) == (0, 0, ())
    apart = conductance(
        metropolis(from_networkx(nx.disjoint_union(nx.path_graph(3), nx.path_graph(2))).adjacency)
    )
    assert (apart.upper, apart.exact, apart.cut) == (0, True, (3, 4))


@pytest.mark.parametrize("rule", [metropolis, lazy])
@pytest.mark.parametrize("p", [0.15, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("n", range(2, 11))
def test_brute_force_and_cheeger_on_random_networks(n, p, rule):
    for seed in range(4):
        W = rule(load_network(f"er:n={n},p={p},seed={seed}").adjacency)
        found, truth = conductance(W), brute_force(W)
        assert found.exact
        assert found.upper == pytest.approx(truth, abs=1e-12)
        assert 1 <= len(found.cut) <= n / 2
        assert_certified(found, W)
        gap = 1 - spectrum(W).lambda_2
        assert truth**2 / 2 <= gap + 1e-12
        assert gap <= 2 * truth + 1e-12
        interval = conductance(W, state_limit=NO_TABLE)
        assert interval.lower <= truth + 1e-12 <= interval.upper + 2e-12
        assert_certified(interval, W)


@pytest.mark.parametrize("spec", TOPOLOGY_SPECS)
def test_every_topology(spec):
    W = W_of(spec)
    assert conductance(W).upper == pytest.approx(brute_force(W), abs=1e-12)


@given(st.integers(11, 40), st.floats(0.05, 0.15), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_the_interval_holds_the_exact_value_on_larger_networks(n, p, seed):
    W = W_of(f"er:n={n},p={p},seed={seed}")
    exact, interval = conductance(W), conductance(W, state_limit=NO_TABLE)
    assert_certified(exact, W)
    assert interval.lower <= exact.upper + 1e-12
    if exact.exact:
        assert exact.upper <= interval.upper + 1e-12


@pytest.mark.parametrize(
    "spec",
    [
        "er:n=30,p=0.1",
        "ba:n=50,m=1",
        "rgeo:n=30,radius=0.2",
        "ws:n=50,k=3,p=0.2",
        "complete:n=50",
        "er:n=10,p=0.5",
    ],
)
def test_the_papers_networks_are_exact(spec):
    assert conductance(W_of(spec)).exact


def test_large_dense_networks_say_that_they_are_not():
    found = conductance(W_of("er:n=60,p=0.5"))
    assert not found.exact
    assert_certified(found, W_of("er:n=60,p=0.5"))


def test_large_networks_are_bounded():
    found = conductance(W_of("er:n=1500,p=0.004"))
    assert 0 < found.lower < found.upper < 1


def test_equal_ends_are_exact_whatever_rounding_did():
    found = conductance(metropolis(from_networkx(nx.hypercube_graph(6)).adjacency))
    assert found.exact
    assert found.upper == pytest.approx(1 / 7)
    assert Conductance(0.1, 0.1 * (1 + 1e-15), (0,)).exact
    assert not Conductance(0.1, 0.1 * (1 + 1e-7), (0,)).exact


def irregular(n, seed):
    """A sparse random network whose links have unequal weights."""
    rng = np.random.default_rng(seed)
    network = load_network(f"er:n={n},p={rng.uniform(0.15, 0.4)},seed={seed}")
    return scaled(
        metropolis(network.adjacency), network.link_matrix(rng.uniform(0.2, 1.0, network.num_links))
    )


@pytest.mark.parametrize("n", [13, 14, 15, 16])
def test_the_search_finds_the_best_cut_of_irregular_networks(n):
    improved = 0
    for seed in range(12):
        W = irregular(n, seed)
        found = conductance(W)
        assert found.exact
        assert found.upper == pytest.approx(least_conductance(W), abs=1e-12)
        assert_certified(found, W)
        by_sweep = cut_conductance(W, sweep_cut(W, slowest_mode(W)[1]))
        improved += found.upper < by_sweep - 1e-9
    assert improved >= 2, (
        "the sweep along the Fiedler vector is best already: the search is not tested"
    )


@pytest.mark.parametrize("seed", range(6))
def test_the_search_alone_finds_the_best_cut_from_a_bad_one(seed):
    W = irregular(14, seed)
    fiedler = slowest_mode(W)[1]
    least = least_conductance(W)
    for upper in (1.0, least + 1e-6):
        best = search_cuts(W, fiedler, upper, state_limit=1 << 14)
        assert cut_conductance(W, best) == pytest.approx(least, abs=1e-12)
    assert not search_cuts(W, fiedler, upper=least, state_limit=1 << 14).any()
    assert search_cuts(W, fiedler, upper=1.0, state_limit=1) is None


@pytest.mark.parametrize(
    "spec", ["er:n=24,p=0.2,seed=1", "rgeo:n=40,radius=0.25,seed=2", "sites:sites=5,size=8,seed=0"]
)
@pytest.mark.parametrize("upper", [0.1, 0.3])
def test_states_are_kept_alike_one_by_one_and_in_arrays(spec, upper, monkeypatch):
    W = W_of(spec)
    order = np.argsort(slowest_mode(W)[1]).tolist()
    searches = [sparsest_cut._Search(W, order, upper) for _ in range(2)]
    for _ in order:
        for search, few in zip(searches, (0, 10**9), strict=True):
            monkeypatch.setattr(sparsest_cut, "_FEW", few)
            search.pass_next_device()
        many, one_by_one = searches
        if many.num_states > 500:
            return
        assert many.states == one_by_one.states
    found = [search.best_set() for search in searches]
    assert found[0][0].tolist() == found[1][0].tolist()
    assert found[0][1] == found[1][1]


@pytest.mark.parametrize(
    ("spec", "thorough", "is_greedy"),
    [
        ("star:n=60", True, True),
        ("star:n=60", False, False),
        ("rgeo:n=60,radius=0.25,seed=1", True, False),  # the greedy order is wider
        ("er:n=20,p=0.25,seed=1", True, False),  # few states in any order
    ],
)
def test_devices_are_passed_along_the_slowest_mode_unless_a_greedy_order_is_worth_it(
    spec, thorough, is_greedy
):
    W = W_of(spec)
    fiedler = slowest_mode(W)[1]
    order = frontier_order(W, fiedler, thorough)
    along = np.argsort(np.round(fiedler, 9), kind="stable").tolist()
    assert sorted(order) == list(range(W.shape[0]))
    assert (order != along) is is_greedy
    if is_greedy:
        assert frontier_widths(W, order).max() == 1 < frontier_widths(W, along).max()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("limits", [(2, 8, 64), (4, 1 << 14), (1, 1 << 15)])
def test_a_search_continued_with_more_states_finds_what_a_new_one_finds(seed, limits):
    W = W_of(f"er:n=30,p=0.15,seed={seed}")
    search = ConductanceSearch(W)
    found = [search.within(limit) for limit in limits]
    assert found == [conductance(W, limit) for limit in limits]
    assert not found[0].exact
