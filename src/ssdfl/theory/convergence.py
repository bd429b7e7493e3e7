"""Theorem 1: how small the effective gradient of a cluster becomes within a regime."""

from __future__ import annotations

import math

from ssdfl.theory.constants import Constants


def effective_smoothness(constants: Constants, lambda_min: float) -> float:
    """``γ_s^eff = γ̂_s + 1 + (1 − λ_min(Ã_s)) / η`` (Proposition 1).

    Examples:
        >>> effective_smoothness(Constants(learning_rate=0.5, smoothness=2.0), lambda_min=0.0)
        5.0
    """
    return constants.smoothness + 1 + (1 - lambda_min) / constants.learning_rate


def gamma(constants: Constants, lambda_min: float, size: int) -> float:
    """``Γ_s = γ_s^eff + τ_a B √N_s`` of Theorem 1.

    Examples:
        >>> gamma(Constants(learning_rate=0.5, smoothness=2.0, tau_a=3), lambda_min=0.0, size=4)
        11.0
    """
    drift = constants.tau_a * constants.gradient_bound * math.sqrt(size)
    return effective_smoothness(constants, lambda_min) + drift


def stationarity_bound(constants: Constants, lambda_min: float, size: int, amplification: float) -> float:
    """Theorem 1's bound on a cluster's summed squared effective gradients (`eq:intra_conv_statement`).

    Literal, with ``L̃_s = N_s L(θ⁰)`` at the start of the first regime, where all devices agree.

    Args:
        lambda_min: the smallest eigenvalue of Ã_s.
        size: N_s.
        amplification: α_s of Assumption 4; the theorem uses α̂_s = α_s + 1.

    Returns:
        The bound, or infinity where the theorem's condition η < 2 / (α̂_s Γ_s) fails and it says nothing.
    """
    η = constants.learning_rate
    Γ = gamma(constants, lambda_min, size)
    denominator = η - (amplification + 1) * η**2 * Γ / 2
    if denominator <= 0:
        return math.inf
    floor = constants.variance_floor * constants.tau_a * η**2 * Γ / 2
    return (size * constants.initial_loss + floor) / denominator
