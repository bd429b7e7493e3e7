"""Theorems and lemmas by hand, with noise, momentum, unequal clusters and several mixing steps."""

import math

import pytest

from ssdfl.theory import ClusterTerms, Constants, published, rigorous

CONSTANTS = Constants(
    learning_rate=0.05, tau_a=3, tau_r=3, gradient_bound=2, smoothness=1, variance_floor=0.3
)
FOUR = ClusterTerms(size=4, lambda_2=0.6, lambda_min=0.8, amplification=0.2, rho=0.5, mu=0.1)
ALONE = ClusterTerms(size=1, lambda_2=0.0, lambda_min=1.0, amplification=0.05, rho=0.0, mu=0.0)
WHOLE = ClusterTerms(size=5, lambda_2=0.6, lambda_min=-0.2)

# FOUR's momentum is at most 2·√4·0.5 = 2 in its second step, 2·√4·(0.5 + 0.25) = 3 in its third.
γ_FOUR = 1 + 0.1 + 0.2 / 0.05
γ_ALONE = 1.0


def test_rigorous_theorem_1():
    noise = 0.3 * 3 * 0.05**2 * γ_FOUR / 2
    momentum = 0.05 / (2 * 0.5) * (2**2 + 3**2)
    descent = 0.05 * (1 - 0.5 / 2) - 1.2 * 0.05**2 * γ_FOUR / 2
    expected = (5 + noise + momentum) / descent
    assert rigorous.intra_convergence(CONSTANTS, FOUR, initial=5) == pytest.approx(expected)


def test_rigorous_theorem_1_without_momentum():
    expected = (2 + 0.3 * 3 * 0.05**2 / 2) / (0.05 - 1.05 * 0.05**2 / 2)
    assert rigorous.intra_convergence(CONSTANTS, ALONE, initial=2) == pytest.approx(expected)


def test_rigorous_theorem_1_averaged_over_a_long_regime():
    noise = 0.3 * 0.05**2 * γ_FOUR / 2
    momentum = 0.05 / (2 * 0.5) * (2 * 2 * 0.5 / (1 - 0.5)) ** 2
    descent = 0.05 * (1 - 0.5 / 2) - 1.2 * 0.05**2 * γ_FOUR / 2
    expected = (noise + momentum) / descent
    assert rigorous.intra_convergence_limit(CONSTANTS, FOUR) == pytest.approx(expected)


def test_published_theorem_1_averaged_over_a_long_regime():
    Γ = 1 + 1 + 0.2 / 0.05 + 3 * 2 * 2
    expected = 0.3 * 0.05**2 * Γ / 2 / (0.05 - 1.2 * 0.05**2 * Γ / 2)
    assert published.intra_convergence_limit(CONSTANTS, FOUR) == pytest.approx(expected)


def test_published_lemma_1():
    drift = 2 * 0.05 * 3 * 2 * 2 / (1 - 0.65)  # λ₂ + η = 0.65
    expected = 0.65**2 * 7 + drift
    assert published.intra_consensus(CONSTANTS, FOUR, initial_gap=7) == pytest.approx(expected)


def test_the_largest_learning_rate_is_lemma_1s_where_a_cluster_mixes_slowly():
    constants = Constants(tau_a=1, smoothness=1)
    slow = ClusterTerms(size=4, lambda_2=0.9, lambda_min=0.5)  # Theorem 1 allows 0.375
    assert published.largest_learning_rate(constants, [slow]) == pytest.approx(1 - 0.9)


def test_the_recursion_of_rigorous_lemma_1():
    cluster = ClusterTerms(size=4, lambda_2=0.6, lambda_min=-0.7, rho=0.5, mu=0.1)
    gap, travelled = 2.0, 0.0
    gap, travelled = (
        0.7 * gap + 0.05 * (4 + 0.1 * travelled),
        1.005 * travelled + 1.7 * 2 + 0.05 * 4,
    )
    assert (gap, travelled) == pytest.approx((1.6, 3.6))
    gap, travelled = (
        0.7 * gap + 0.05 * (6 + 0.1 * travelled),
        1.005 * travelled + 1.7 * 2 + 0.05 * 6,
    )
    assert (gap, travelled) == pytest.approx((1.438, 7.318))
    gap = 0.7 * gap + 0.05 * (7 + 0.1 * travelled)
    assert rigorous.intra_consensus(CONSTANTS, cluster, initial_gap=2.0) == pytest.approx(gap)
    assert gap == pytest.approx(1.39319)


def test_rigorous_theorem_2():
    regime = rigorous.intra_convergence(CONSTANTS, FOUR, 5) + rigorous.intra_convergence(
        CONSTANTS, ALONE, 2
    )
    step = (γ_FOUR * 0.05) ** 2  # the larger smoothness, and the larger amplification below
    last_momentum_step = (2 * 2 * 0.5 + 3) ** 2
    at_end = 3 * ((1 + step * 1.2) * regime + step * 0.3 * 2 + last_momentum_step)
    moved = (0.0, 1.2, 1.0)  # max |1 − λ^j| over λ in [−0.2, 0.6], for j = 0, 1, 2
    expected = regime + sum(2 * at_end + 2 * (γ_FOUR * distance * 0.7) ** 2 for distance in moved)
    found = rigorous.integrated_convergence(CONSTANTS, WHOLE, (FOUR, ALONE), (5, 2), gap=0.7)
    assert found == pytest.approx(expected)


def test_published_theorem_2_with_three_mixing_steps():
    constants = Constants(
        learning_rate=0.02, tau_a=2, tau_r=3, gradient_bound=2, smoothness=1, variance_floor=0.1
    )
    three = ClusterTerms(size=3, lambda_2=0.5, lambda_min=0.9, amplification=0.2)
    one = ClusterTerms(size=1, amplification=0.05)
    network = ClusterTerms(size=4, lambda_2=0.6, lambda_min=0.7)
    smooth = 1 + 1 + 0.1 / 0.02  # λ_N(Ã) = 0.9 of the three, not λ_N(A) = 0.7
    Γ = smooth + 2 * 2 * 2
    Γ_sum = (1 + 1 + 0.1 / 0.02 + 2 * 2 * math.sqrt(3)) + (1 + 1 + 2 * 2)
    descent = 0.02 - 1.2 * 0.02**2 * Γ / 2
    first = (5 * 7 + 0.1 * (2 + 2 * 3 - 2) * 0.02**2 / 2 * Γ_sum) / descent
    mixing = 4 * 2 * (smooth * 0.3 / 0.4 * 1.5) ** 2  # 1 − λ_N(A) = 0.3, 1 − λ₂(A) = 0.4
    momentum = 4 * (2**2 * 2**2 * 4 * 3 * (2 + 3 - 1) ** 2)
    found = published.integrated_convergence(constants, network, (three, one), initial=7, gap=1.5)
    assert found == pytest.approx(first + mixing + momentum)


def test_published_theorems_say_nothing_where_their_denominator_is_0():
    constants = Constants(learning_rate=0.5, tau_a=1, tau_r=2, gradient_bound=1, smoothness=1)
    four = ClusterTerms(size=4, lambda_2=0.5, lambda_min=1.0)  # Γ = 1 + 1 + √4 = 4 = 2 / η
    assert published.gamma(constants, four) == 4
    assert published.intra_convergence(constants, four, initial=1) == math.inf
    assert published.intra_convergence_limit(constants, four) == math.inf
    assert published.integrated_convergence(constants, four, (four,), initial=1, gap=1) == math.inf


def theorem_2(learning_rate, network, *clusters):
    constants = Constants(
        learning_rate=learning_rate,
        tau_a=1,
        tau_r=3,
        gradient_bound=1,
        smoothness=1,
        variance_floor=0.0,
    )
    return published.integrated_convergence(constants, network, clusters, initial=1, gap=1)


def test_published_theorem_2_asks_that_every_cluster_mixes_fast_enough():
    network = ClusterTerms(size=4, lambda_2=0.5, lambda_min=0.9)
    slow = ClusterTerms(size=2, lambda_2=0.95, lambda_min=0.95)
    quick = ClusterTerms(size=2, lambda_2=0.9, lambda_min=0.9)
    assert math.isfinite(theorem_2(0.04, network, quick, slow))
    assert theorem_2(0.06, network, quick, slow) == math.inf
    assert math.isfinite(theorem_2(0.06, network, quick, quick))
    just_enough = ClusterTerms(size=2, lambda_2=0.9375, lambda_min=0.95)
    assert math.isfinite(theorem_2(0.0625, network, quick, just_enough))


def test_published_theorem_2_asks_for_its_denominator_where_the_printed_condition_on_eta_holds():
    """η ≤ 2 / (α̂_s Γ_s) in each cluster does not make η − ½ α̂ η² Γ positive: Γ has √N, not √N_s."""
    network = ClusterTerms(size=16, lambda_2=0.5, lambda_min=0.9)
    alone = ClusterTerms(size=1)  # Γ_s = 1 + 1 + 1 = 3, but Γ = 1 + 1 + √16 = 6
    assert 0.5 <= 2 / 3
    assert theorem_2(0.5, network, *[alone] * 16) == math.inf
    assert math.isfinite(theorem_2(0.3, network, *[alone] * 16))


def test_published_theorem_2_says_nothing_of_a_network_that_does_not_mix():
    alone = ClusterTerms(size=1)
    assert theorem_2(0.1, ClusterTerms(size=2, lambda_2=1.0), alone, alone) == math.inf
