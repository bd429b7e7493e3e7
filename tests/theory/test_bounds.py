"""No rigorous bound is ever violated; small examples violate the published ones."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulated import measured_and_bounds, simulate, terms_of
from ssdfl.graph import load_network, make_network, metropolis
from ssdfl.theory import ClusterTerms, Constants, published, rigorous


def violated(measured, bound):
    return measured > bound + 1e-9 * (1 + abs(bound))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None)
def test_rigorous_bounds_hold_on_random_problems(seed):
    for statement, measured, bound in measured_and_bounds(simulate(seed), rigorous, centred=True):
        assert not violated(measured, bound), f"{statement}: {measured} > {bound}"


def test_rigorous_bounds_say_something():
    finite = [
        statement
        for seed in range(60)
        for statement, _, bound in measured_and_bounds(simulate(seed), rigorous, centred=True)
        if math.isfinite(bound)
    ]
    statements = {"Proposition 1", "Corollary 1", "Theorem 1", "Lemma 1", "Lemma 2", "Theorem 2"}
    assert set(finite) == statements
    assert all(finite.count(statement) >= 15 for statement in statements)


@cache
def published_violations(seed):
    """Which published bounds a random problem violates, of those that say something about it."""
    compared = measured_and_bounds(simulate(seed), published, centred=False)
    return [
        (name, violated(measured, bound))
        for name, measured, bound in compared
        if math.isfinite(bound)
    ]


def violations(statement, count=150):
    seen = (one for seed in range(count) for one in published_violations(seed))
    found = [fails for name, fails in seen if name == statement]
    return sum(found), len(found)


@pytest.mark.xdist_group("published bounds")  # their problems are shared
@pytest.mark.parametrize("statement", ["Proposition 1", "Lemma 1", "Theorem 2"])
def test_published_bounds_that_were_never_seen_to_fail(statement):
    failed, tried = violations(statement)
    assert failed == 0
    assert tried > 30


@pytest.mark.xdist_group("published bounds")
def test_corollary_1_fails_on_random_problems():
    failed, tried = violations("Corollary 1", count=60)
    assert 0 < failed < tried / 2


def test_corollary_1_fails_for_small_steps_of_one_device():
    """τ_a B ‖x‖ is printed as τ_a B ‖x‖², which is smaller below 1: momentum does the rest.

    One device, L = ½ θ², θ⁰ = 1, ρ = 0.9, η = 0.01. As printed, L̃ may rise 0.0098 less than it
    does.
    """
    η, ρ = 0.01, 0.9
    θ_0, θ_1 = 1.0, 1.0 - η * 1.0
    rise = (θ_1**2 / 2 + θ_1 * ρ * θ_0) - θ_0**2 / 2
    one = ClusterTerms(1, rho=ρ, mu=0.0)
    constants = Constants(learning_rate=η, tau_a=2, gradient_bound=1.0, smoothness=1.0)
    slope, distance = -η, η
    assert rise > published.loss_gap(constants, one, slope, distance)
    centred = (θ_1**2 / 2 + (θ_1 - θ_0) * ρ * θ_0) - θ_0**2 / 2
    assert centred <= rigorous.loss_gap(constants, one, slope, distance, travelled=distance)


def test_theorem_1_fails_for_one_device_with_momentum():
    """L̃ is taken as at least 0, but momentum may make it negative; ‖x‖² > ‖x‖ is used for small x.

    One device, L = ½ θ², θ⁰ = 0.01, ρ = 0.9, η = 0.1, τ_a = 6.
    """
    η, ρ, θ, history, squares = 0.1, 0.9, 0.01, 0.0, 0.0
    for _ in range(6):
        effective = θ + history
        squares += effective**2
        θ, history = θ - η * effective, ρ * (history + θ)
    constants = Constants(
        learning_rate=η, tau_a=6, gradient_bound=0.01, smoothness=1.0, variance_floor=0.0
    )
    one = ClusterTerms(1, rho=ρ, mu=0.0)
    assert squares > 2 * published.intra_convergence(constants, one, initial=0.01**2 / 2)
    assert squares <= rigorous.intra_convergence(constants, one, initial=0.01**2 / 2)


@pytest.mark.parametrize("n", [3, 8, 15])
def test_lemma_2_on_a_ring_and_a_complete_network(n):
    """Closed forms: ring eigenvalues (1 + 2 cos(2πk/n)) / 3, complete 0."""
    ring = terms_of(metropolis(load_network(f"ring:n={n}").adjacency), np.zeros(1), np.zeros(1))
    eigenvalues = [(1 + 2 * math.cos(2 * math.pi * k / n)) / 3 for k in range(1, n)]
    factor = max(abs(value) for value in eigenvalues)
    for τ_r in (1, 2, 5):
        constants = Constants(tau_r=τ_r)
        assert rigorous.inter_consensus(constants, ring, 2.0) == pytest.approx(2 * factor**τ_r)
        second = max(eigenvalues) ** (τ_r - 1)
        assert published.inter_consensus(constants, ring, 2.0) == pytest.approx(2 * second)
    complete = terms_of(
        metropolis(load_network(f"complete:n={n}").adjacency), np.zeros(1), np.zeros(1)
    )
    assert rigorous.inter_consensus(Constants(tau_r=1), complete, 2.0) == pytest.approx(0, abs=1e-9)


def test_lemma_2_fails_where_the_smallest_eigenvalue_is_the_largest_in_size():
    """Three devices linked to three others: λ₂ = ¼, λ_min = −½; 3 mixings leave 1/8, not 1/16."""
    network = make_network(6, [(i, j) for i in range(3) for j in range(3, 6)])
    A = metropolis(network.adjacency)
    X = np.array([1.0, 1, 1, -1, -1, -1])[:, None]
    mixed = A @ (A @ (A @ X))
    terms = terms_of(A, np.zeros(1), np.zeros(1))
    measured = float(np.linalg.norm(mixed))
    assert measured > published.inter_consensus(Constants(tau_r=3), terms, float(np.linalg.norm(X)))
    assert (
        measured
        <= rigorous.inter_consensus(Constants(tau_r=3), terms, float(np.linalg.norm(X))) + 1e-12
    )


def test_the_largest_learning_rate_is_where_theorem_1_stops():
    cluster = ClusterTerms(5, lambda_2=0.3, lambda_min=0.2, amplification=0.1, rho=0.5, mu=0.2)
    for theory in (published, rigorous):
        most = theory.largest_learning_rate(Constants(tau_a=3, smoothness=2.0), [cluster])
        for share, finite in ((0.999, True), (1.001, False)):
            constants = Constants(tau_a=3, smoothness=2.0, learning_rate=most * share)
            assert (
                math.isfinite(theory.intra_convergence(constants, cluster, initial=1.0)) == finite
            )


def test_no_learning_rate_helps_where_mixing_is_too_far_from_positive():
    cluster = ClusterTerms(4, lambda_2=0.1, lambda_min=-0.9, amplification=0.2)
    assert published.largest_learning_rate(Constants(), [cluster]) == 0
    assert (
        published.intra_convergence(Constants(learning_rate=1e-6), cluster, initial=1.0) == math.inf
    )


def test_theorem_1_for_long_regimes():
    """The average falls to 0 without noise and momentum; the published condition fails later."""
    plain = ClusterTerms(4, lambda_2=0.5, lambda_min=0.5, rho=0.0, mu=0.0)
    averages, printed = [], []
    for τ_a in (10, 100, 1000, 10_000):
        constants = Constants(learning_rate=0.01, tau_a=τ_a, variance_floor=0.0)
        averages.append(rigorous.intra_convergence(constants, plain, initial=1.0) / τ_a)
        printed.append(published.intra_convergence(constants, plain, initial=1.0))
    assert averages == sorted(averages, reverse=True)
    assert averages[-1] < 0.02
    assert rigorous.intra_convergence_limit(Constants(variance_floor=0.0), plain) == 0
    assert printed[-1] == math.inf
    assert published.intra_convergence_limit(Constants(variance_floor=0.0, tau_a=3), plain) == 0


def test_the_average_over_cycles_bounds_many_cycles():
    cycles = [simulate(21, cycles=count) for count in range(1, 12)]
    last = cycles[-1]
    totals, losses, gaps = [], [], []
    for cycle in cycles:
        squares = [cycle.gradient(q) for q in range(cycle.constants.tau_a)]
        squares += [cycle.gradient(cycle.constants.tau_a, X) for X in cycle.mixed[:-1]]
        totals.append(sum(float((g**2).sum()) for g in squares))
        losses.append([cycle.loss(0, cluster) for cluster in cycle.clusters])
        gaps.append(float(np.linalg.norm(cycle.mixed[0] - cycle.mixed[0].mean(axis=0))))
    largest = np.max(losses, axis=0).tolist()
    bound = rigorous.integrated_average(
        last.constants, last.network, last.terms, largest, max(gaps)
    )
    assert math.isfinite(bound)
    assert np.mean(totals) <= bound
    printed = published.integrated_average(
        last.constants, last.network, last.terms, sum(largest), max(gaps)
    )
    assert np.mean(totals) <= printed
