"""The predicted disagreement against the plain recursion, closed forms and limits."""

import sys

import numpy as np
import pytest

from helpers import TOPOLOGY_SPECS
from ssdfl.clusters import labels_of, spectral_bisection
from ssdfl.graph import averaging, links_within, load_network, metropolis
from ssdfl.theory import (
    ClusterTerms,
    Constants,
    Disagreement,
    consensus_gap,
    disagreement,
    integrated_bound,
    slowdown,
)
from ssdfl.theory.disagreement import _by_doubling, _by_iteration, _repeated


def mixings(spec, clusters):
    network = load_network(spec)
    labels = labels_of(spectral_bisection(network, clusters), network.num_devices)
    return metropolis(network.adjacency), metropolis(links_within(network.adjacency, labels))


def centred(n, seed=0):
    G = np.random.default_rng(seed).standard_normal((n, 4))
    return G - G.mean(axis=0)


@pytest.mark.parametrize("spec", TOPOLOGY_SPECS)
def test_the_plain_recursion_gives_the_same(spec):
    A, A_intra = mixings(spec, 2)
    G = centred(A.shape[0])
    X = np.zeros_like(G)
    for cycle in range(32):
        for _ in range(2 if cycle else 0):
            X = A.toarray() @ X
        for _ in range(3):
            X = A_intra.toarray() @ X - 0.05 * X + G
    expected = (X**2).sum() / len(X)
    found = disagreement(A, A_intra, G, tau_a=3, tau_r=2, pull=0.05)
    assert found.trained == pytest.approx(expected)
    mixed = A.toarray() @ A.toarray() @ X
    assert found.mixed == pytest.approx((mixed**2).sum() / len(X), abs=1e-12)


@pytest.mark.parametrize(
    ("num_clusters", "is_power"), [(1, False), (12, True)], ids=["one", "small"]
)
def test_many_devices_are_iterated_and_few_doubled_to_the_same(num_clusters, is_power):
    A, A_intra = mixings("ws:n=60,k=4,p=0.2,seed=1", num_clusters)
    G = centred(60)
    dense = _by_doubling(A.toarray(), A_intra.toarray(), G, 4, 1, 0.03)
    assert _by_iteration(A, A_intra, G, 4, 1, 0.03) == pytest.approx(dense)
    assert (len(_repeated(A_intra, 4)) == 1) == is_power


def test_columns_on_threads_give_the_same(monkeypatch):
    A, A_intra = mixings("ws:n=60,k=4,p=0.2,seed=1", 5)
    G = centred(60)
    alone = _by_iteration(A, A_intra, G, 4, 1, 0.03)
    monkeypatch.setattr(sys.modules[_by_iteration.__module__], "_THREADS_FROM", 1)
    assert (_by_iteration(A, A_intra, G, 4, 1, 0.03) == alone).all()


def test_alone_devices_add_up_their_steps_and_averaging_undoes_them():
    n, G = 5, centred(5)
    alone = metropolis(links_within(load_network("complete:n=5").adjacency, np.arange(n)))
    together = averaging(n)
    spread = (G**2).sum() / n
    assert disagreement(together, alone, G, tau_a=3, tau_r=1, pull=0).trained == pytest.approx(
        9 * spread
    )
    assert disagreement(together, together, G, tau_a=3, tau_r=1, pull=0).trained == pytest.approx(
        spread
    )
    assert disagreement(together, alone, 0 * G, tau_a=3, tau_r=1) == Disagreement(0.0, 0.0)


def test_more_clusters_and_longer_regimes_drift_further():
    G = centred(20)
    by_size = [
        disagreement(*mixings("er:n=20,p=0.2,seed=1", S), G, 3, 1).trained for S in (1, 2, 5, 20)
    ]
    five = mixings("er:n=20,p=0.2,seed=1", 5)
    by_length = [disagreement(*five, G, tau_a, 1).trained for tau_a in (1, 3, 7)]
    assert by_size == sorted(by_size)
    assert by_length == sorted(by_length)


def test_what_mixing_undoes_counts_less_the_more_devices_average():
    undone, standing = Disagreement(4.0, 0.0), Disagreement(4.0, 4.0)
    assert slowdown(undone, 80) - 1 == pytest.approx((slowdown(undone, 20) - 1) / 2)
    assert slowdown(standing, 80) == slowdown(standing, 20) == slowdown(undone, 20)


def test_integrated_by_hand():
    constants = Constants(
        learning_rate=0.01, tau_a=2, tau_r=1, gradient_bound=1, smoothness=1, initial_loss=2
    )
    pair = ClusterTerms(size=2, lambda_2=0.0, lambda_min=0.5, amplification=0.1)
    gap = consensus_gap(constants, [pair, pair])
    inside = 2 * 2 * (2 * 0.01 * (1 + 0.01)) ** 2
    between = 2 * 2 * 0.5 * (2 * 0.01 * 2) ** 2
    assert gap**2 == pytest.approx(inside + between)
    smooth = 1 + 1 + 0.5 / 0.01  # λ_N(Ã) = 0.5, where λ_N(A) = 0.4
    Γ, Γ_s = smooth + 2 * 2, 1 + 1 + 0.5 / 0.01 + 2 * np.sqrt(2)
    first = (4 * 2 + 0.1 * (2 * 0.01**2 / 2) * 2 * Γ_s) / (0.01 - 1.1 * 0.01**2 * Γ / 2)
    second = 4 * (smooth * 0.6 / 0.2) ** 2 * gap**2
    network = ClusterTerms(size=4, lambda_2=0.8, lambda_min=0.4)
    bound = integrated_bound(constants, network, clusters=[pair, pair])
    assert bound == pytest.approx(first + second + 4 * 4 * 4 * 4)
    assert integrated_bound(Constants(learning_rate=0.9), network, [pair, pair]) == np.inf


def test_integrated_has_an_interior_choice_between_mixing_and_drift():
    one = [ClusterTerms(8, 0.9, 0.1, 0.0)]
    two = [ClusterTerms(4, 0.2, 0.1, 0.0)] * 2
    many = [ClusterTerms(1, 0.0, 1.0, 0.0)] * 8
    gaps = [consensus_gap(Constants(tau_a=5), clusters) for clusters in (one, two, many)]
    assert gaps[1] < gaps[0]
    assert gaps[1] < gaps[2]
