"""Theorem 1: how small the effective gradient of a cluster becomes within a regime."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class ClusterTerms:
    """What Theorem 2 asks of one cluster: N_s, λ₂(Ã_s), λ_N(Ã_s) and α_s."""

    size: int
    lambda_2: float
    lambda_min: float
    amplification: float


def consensus_gap(constants: Constants, clusters: Sequence[ClusterTerms]) -> float:
    """A bound on ‖Δ̂‖ after a training regime that starts in agreement.

    Inside a cluster, Lemma 1's recursion for its finite number of steps,
    ``2ηB √N_s Σ_{p < τ_a} (λ₂(Ã_s) + η)^p``; between clusters, means that move apart by at most 2ηB in each.

    Examples:
        >>> two = [ClusterTerms(size=1, lambda_2=0.0, lambda_min=1.0, amplification=0.0)] * 2
        >>> round(consensus_gap(Constants(learning_rate=0.1, tau_a=3), two) ** 2, 6)  # 2 · ½ · (2 · 0.1 · 3)²
        0.36
    """
    η, B, τ_a = constants.learning_rate, constants.gradient_bound, constants.tau_a
    num_devices = sum(cluster.size for cluster in clusters)
    inside = between = 0.0
    for cluster in clusters:
        if cluster.size > 1:
            steps = sum((cluster.lambda_2 + η) ** p for p in range(τ_a))
            inside += cluster.size * (2 * η * B * steps) ** 2
        between += cluster.size * (1 - cluster.size / num_devices) * (2 * η * B * τ_a) ** 2
    return math.sqrt(inside + between)


def integrated_bound(
    constants: Constants, lambda_2: float, lambda_min: float, clusters: Sequence[ClusterTerms]
) -> float:
    """Theorem 2's bound on a cycle's squared gradients (`eq:comb_conv_ovr_statement`) with `consensus_gap`.

    The theorem weighs the gap by τ_r − 1, so at τ_r = 1 it would not see the clusters at all; here it
    weighs τ_r, which is larger and so still a bound.

    Args:
        lambda_2: λ₂(A) of the whole network.
        lambda_min: λ_N(A).

    Returns:
        The bound, or infinity where η ≥ 2 / (α̂ Γ).
    """
    η, B, τ_a, τ_r = (
        constants.learning_rate,
        constants.gradient_bound,
        constants.tau_a,
        constants.tau_r,
    )
    num_devices = sum(cluster.size for cluster in clusters)
    α_hat = 1 + max(cluster.amplification for cluster in clusters)
    denominator = η - α_hat * η**2 * gamma(constants, lambda_min, num_devices) / 2
    if denominator <= 0 or lambda_2 >= 1:
        return math.inf
    C_1 = (τ_a + 2 * τ_r - 2) * η**2 / 2
    C_2 = τ_a**2 * B**2 * num_devices * τ_r * (τ_a + τ_r - 1) ** 2
    Γ_sum = sum(gamma(constants, cluster.lambda_min, cluster.size) for cluster in clusters)
    first = (2 * τ_r - 1) * num_devices * constants.initial_loss + constants.variance_floor * C_1 * Γ_sum
    mixing = effective_smoothness(constants, lambda_min) * (1 - lambda_min) / (1 - lambda_2)
    gap = consensus_gap(constants, clusters)
    return first / denominator + 4 * τ_r * (mixing * gap) ** 2 + 4 * C_2
