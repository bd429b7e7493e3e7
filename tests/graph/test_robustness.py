"""Robustness against its definition, closed forms, and what liars can do."""

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdfl.graph import load_network
from ssdfl.graph.robustness import EXACT_TO, robustness, survived_liars


def neighbours_of(network):
    return [list(map(int, network.neighbours(k))) for k in range(network.num_devices)]


def sets_of(devices):
    return chain.from_iterable(combinations(devices, size) for size in range(1, len(devices) + 1))


def by_definition(neighbours):
    """The largest r such that of any two disjoint sets one is r-reachable, by trying all."""

    def reach(found):
        return max(len(set(neighbours[device]) - set(found)) for device in found)

    devices = range(len(neighbours))
    pairs = (
        (one, other)
        for one in sets_of(devices)
        for other in sets_of([device for device in devices if device not in one])
    )
    return min(max(reach(one), reach(other)) for one, other in pairs)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.integers(0, 2**15 - 1))
def test_it_is_the_definition(n, bits):
    neighbours = [[] for _ in range(n)]
    for k, (a, b) in enumerate(combinations(range(n), 2)):
        if bits >> k & 1:
            neighbours[a].append(b)
            neighbours[b].append(a)
    assert robustness(neighbours) == by_definition(neighbours)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9, EXACT_TO, EXACT_TO + 1, 30])
def test_a_complete_network_is_half_as_robust_as_it_has_devices(n):
    assert robustness([[j for j in range(n) if j != i] for i in range(n)]) == (n + 1) // 2


@pytest.mark.parametrize(
    ("spec", "expected"),
    [("ring:n=10", 1), ("star:n=9", 1), ("barbell:size=5", 1), ("path:n=2", 1)],
)
def test_known_networks(spec, expected):
    assert robustness(neighbours_of(load_network(spec))) == expected


def test_large_networks_get_a_bound_that_holds():
    rng = np.random.default_rng(0)
    for _ in range(5):
        n = 14
        linked = np.triu(rng.random((n, n)) < 0.85, 1)
        neighbours = [np.flatnonzero((linked | linked.T)[k]).tolist() for k in range(n)]
        bound = max(0, min(map(len, neighbours)) - n // 2 + 1)
        assert bound <= robustness(neighbours)


def test_clusters_are_judged_by_their_own_links():
    network = load_network("complete:n=14")
    assert survived_liars(network, [range(5), range(5, 14)]) == (1, 2)
    assert survived_liars(network, [range(4), range(4, 13), [13]]) == (0, 2, 0)
    assert survived_liars(load_network("barbell:size=5"), [range(5), range(5, 10)]) == (1, 1)
    assert survived_liars(load_network("ring:n=12"), [range(12)]) == (0,)
    assert survived_liars(load_network("complete:n=30"), [range(30)]) == (7,)


@pytest.mark.parametrize("n", [5, 9])
def test_as_many_liars_as_it_survives_do_not_keep_honest_devices_apart(n):
    """Trimmed consensus on a complete network, with liars that say something else to everyone."""
    network = load_network(f"complete:n={n}")
    (liars,) = survived_liars(network, [range(n)])
    rng = np.random.default_rng(1)
    values = rng.random(n - liars)
    low, high = values.min(), values.max()
    for _ in range(60):
        heard = [np.sort([*values, *rng.normal(0, 100, liars)]) for _ in values]
        values = np.array([row[liars : n - liars].mean() for row in heard])
    assert np.ptp(values) < 1e-6
    assert low <= values[0] <= high
