"""The formation's formulas by hand, and their limits."""

import math

import pytest

from ssdfl.errors import InputError
from ssdfl.theory import ClusterTerms, Constants, conductance_threshold, published


def test_ten_classes_are_guessed_at_first():
    assert Constants().initial_loss == pytest.approx(-math.log(1 / 10))


def test_threshold_by_hand():
    constants = Constants(learning_rate=0.05, gradient_bound=5, tolerance=10, tau_a=3)
    # 2·0.05 + 4·0.05·5·√⌊20/4⌋/10
    assert conductance_threshold(constants, 20, 4) == pytest.approx(
        math.sqrt(0.1 + 0.1 * math.sqrt(5))
    )
    assert conductance_threshold(constants, 20, 4, with_tau_a=True) == pytest.approx(
        math.sqrt(0.1 + 0.3 * math.sqrt(5))
    )


def test_the_threshold_of_four_local_steps_is_that_of_four_times_the_learning_rate():
    four_steps = Constants(learning_rate=0.01, local_steps=4, gradient_bound=5, tau_a=3)
    long_step = Constants(learning_rate=0.04, local_steps=1, gradient_bound=5, tau_a=3)
    for with_tau_a in (False, True):
        expected = conductance_threshold(long_step, 20, 4, with_tau_a)
        assert conductance_threshold(four_steps, 20, 4, with_tau_a, step="eta_E") == expected
        assert conductance_threshold(four_steps, 20, 4, with_tau_a) < expected
        assert conductance_threshold(long_step, 20, 4, with_tau_a, step="eta_E") == expected


def test_threshold_falls_with_more_clusters_and_more_tolerance():
    constants = Constants()
    values = [conductance_threshold(constants, 30, S) for S in range(1, 31)]
    assert values == sorted(values, reverse=True)
    assert conductance_threshold(Constants(tolerance=100), 30, 1) < values[0]


def test_theorem_1_by_hand():
    constants = Constants(
        learning_rate=0.01,
        smoothness=1,
        gradient_bound=1,
        tau_a=3,
        initial_loss=2,
        variance_floor=0.1,
    )
    Γ = 1 + 1 + (1 - 0.5) / 0.01 + 3 * 1 * 2
    four = ClusterTerms(4, lambda_min=0.5, amplification=0.2)
    assert published.gamma(constants, four) == pytest.approx(Γ)
    expected = (4 * 2 + 0.1 * 3 * 1e-4 / 2 * Γ) / (0.01 - 1.2 * 1e-4 / 2 * Γ)
    assert published.intra_convergence(constants, four, initial=4 * 2) == pytest.approx(expected)


def test_theorem_1_says_nothing_where_its_condition_fails():
    four = ClusterTerms(4, lambda_min=0.0, amplification=3.0)
    assert published.intra_convergence(Constants(learning_rate=0.5), four, initial=1.0) == math.inf


@pytest.mark.parametrize(
    "change",
    [
        {"learning_rate": 0.0},
        {"learning_rate": -1.0},
        {"gradient_bound": math.nan},
        {"tolerance": math.inf},
        {"tau_a": 0},
        {"initial_loss": -1.0},
        {"variance_floor": math.nan},
    ],
)
def test_impossible_constants(change):
    with pytest.raises(InputError, match=f"{next(iter(change))} = "):
        Constants(**change)
