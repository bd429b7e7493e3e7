"""The paper's statements as printed, one function each.

If a proof has a gap, the statement may fail. `ssdfl.theory.rigorous` has the same functions in
forms that hold, and `docs/theory.md` explains the differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ssdfl.theory.constants import ClusterTerms, Constants


def effective_smoothness(constants: Constants, cluster: ClusterTerms) -> float:
    """``γ_s^eff = γ̂_s + 1 + (1 − λ_min(Ã_s)) / η`` (Proposition 1, `thm:smoothness_reg_loss`).

    Examples:
        >>> four = ClusterTerms(size=4, lambda_min=0.0)
        >>> effective_smoothness(Constants(learning_rate=0.5, smoothness=2.0), four)
        5.0
    """
    return constants.smoothness + 1 + (1 - cluster.lambda_min) / constants.learning_rate


def gamma(constants: Constants, cluster: ClusterTerms) -> float:
    """``Γ_s = γ_s^eff + τ_a B √N_s`` of Theorem 1.

    Examples:
        >>> constants = Constants(learning_rate=0.5, smoothness=2.0, tau_a=3)
        >>> gamma(constants, ClusterTerms(4, lambda_min=0.0))
        11.0
    """
    return effective_smoothness(constants, cluster) + _momentum(constants, cluster)


def _momentum(constants: Constants, cluster: ClusterTerms) -> float:
    """``τ_a B √N_s``: the largest distance between two steps' momenta."""
    return constants.tau_a * constants.gradient_bound * math.sqrt(cluster.size)


def gradient_gap(constants: Constants, cluster: ClusterTerms, distance: float) -> float:
    """Proposition 1: ``‖∇L̃_s(θ¹) − ∇L̃_s(θ²)‖ ≤ γ_s^eff ‖θ¹ − θ²‖ + τ_a B √N_s``.

    `thm:smoothness_reg_loss`, `eq:thm_regl_smooth_final`; with the terms of Ã for the whole network
    it is `eq:thm_regl_smooth_global_final`. Proof: `eq:prf_thm_smooth_1`, `eq:prf_thm_smooth_2`.
    """
    return effective_smoothness(constants, cluster) * distance + _momentum(constants, cluster)


def loss_gap(constants: Constants, cluster: ClusterTerms, slope: float, distance: float) -> float:
    """Corollary 1: ``L̃_s(θ¹) − L̃_s(θ²) ≤ ∇L̃_s(θ²)ᵀx + (½ γ_s^eff + τ_a B √N_s) ‖x‖²``.

    x is ``θ¹ − θ²``. `coro:re_smooth`, `eq:coro_re_smooth_statement`. Proof:
    `eq:prf_coro_resmooth_1` … `eq:prf_coro_resmooth_5`.

    Args:
        slope: ``∇L̃_s(θ²)ᵀ(θ¹ − θ²)``.
        distance: ``‖θ¹ − θ²‖``.
    """
    curvature = effective_smoothness(constants, cluster) / 2 + _momentum(constants, cluster)
    return slope + curvature * distance**2


def intra_convergence(constants: Constants, cluster: ClusterTerms, initial: float) -> float:
    """Theorem 1 (`eq:intra_conv_statement`): a bound on ``Σ_q ‖∇L̃_s‖²`` over a regime.

    `thm:intra_conv`. Proof: `eq:prf_intraconv_1` … `eq:prf_intraconv_4`.

    Args:
        initial: ``L̃_s`` at the start of the regime.

    Returns:
        The bound, or infinity if η ≥ 2 / (α̂_s Γ_s), where the theorem does not apply.
    """
    η, Γ = constants.learning_rate, gamma(constants, cluster)
    denominator = _descent(constants, cluster)
    if denominator <= 0:
        return math.inf
    return (initial + constants.variance_floor * constants.tau_a * η**2 * Γ / 2) / denominator


def intra_convergence_limit(constants: Constants, cluster: ClusterTerms) -> float:
    """Theorem 1's average over a regime for τ_a → ∞, with Γ_s constant as in the paper.

    ``½ α η² Γ_s / (η − ½ α̂_s η² Γ_s)``, which is 0 for full gradients (`eq:intraconv_imply1`).
    But Γ_s grows with τ_a, so for any η the theorem's condition fails from some τ_a on.
    """
    η, Γ = constants.learning_rate, gamma(constants, cluster)
    denominator = _descent(constants, cluster)
    return math.inf if denominator <= 0 else constants.variance_floor * η**2 * Γ / 2 / denominator


def intra_consensus(constants: Constants, cluster: ClusterTerms, initial_gap: float = 0.0) -> float:
    """Lemma 1 (`eq:intra_cons_feq`): a bound on ``‖Δ_s‖`` at the end of a regime.

    `thm:intra_cons`. Proof: `eq:prf_intracons_3` … `eq:prf_intracons_9`.

    Returns:
        The bound, or infinity if η ≥ 1 − λ₂(Ã_s).
    """
    η, rate = constants.learning_rate, cluster.lambda_2 + constants.learning_rate
    if rate >= 1:
        return math.inf
    drift = 2 * η * _momentum(constants, cluster) / (1 - rate)
    return rate ** (constants.tau_a - 1) * initial_gap + drift


def inter_consensus(constants: Constants, network: ClusterTerms, initial_gap: float) -> float:
    """Lemma 2: ``‖Δ̂^{τ_r}‖ ≤ λ₂(A)^{τ_r − 1} ‖Δ̂⁰‖``.

    `thm:inter_cons`, `eq:inter_cons_statement`.
    """
    return float(network.lambda_2 ** (constants.tau_r - 1)) * initial_gap


def integrated_convergence(
    constants: Constants,
    network: ClusterTerms,
    clusters: Sequence[ClusterTerms],
    initial: float,
    gap: float,
) -> float:
    """Theorem 2 (`eq:comb_conv_ovr_statement`): a bound on a cycle's ``Σ_q ‖∇L̃‖²``.

    `thm:combined_conv`. Proof: `eq:combconv1` … `eq:combconv14`.

    γ^eff and Γ contain λ_N(Ã), the smallest eigenvalue of all clusters. The factor of the gap
    contains λ₂ and λ_N of A.

    Args:
        network: the terms of the whole network with A.
        initial: ``L̃`` at the start of the cycle.
        gap: ``‖Δ̂^{k,0}‖``.

    Returns:
        The bound, or infinity if η is above a cluster's ``1 − λ₂(Ã_s)`` or ``2 / (α̂_s Γ_s)``, if
        the bound's denominator is not positive, or if A does not mix.
    """
    η, B, τ_a, τ_r = (
        constants.learning_rate,
        constants.gradient_bound,
        constants.tau_a,
        constants.tau_r,
    )
    training = _training_terms(network, clusters)
    denominator = _descent(constants, training)
    clusters_mix = all(η <= 1 - cluster.lambda_2 for cluster in clusters)
    # A positive denominator implies η < 2 / (α̂_s Γ_s) in every cluster, since α̂ ≥ α̂_s and Γ ≥
    # Γ_s.
    if not clusters_mix or denominator <= 0 or network.lambda_2 >= 1:
        return math.inf
    C_1 = (τ_a + 2 * τ_r - 2) * η**2 / 2
    C_2 = τ_a**2 * B**2 * network.size * τ_r * (τ_a + τ_r - 1) ** 2
    Γ_sum = sum(gamma(constants, cluster) for cluster in clusters)
    first = ((2 * τ_r - 1) * initial + constants.variance_floor * C_1 * Γ_sum) / denominator
    mixing = (1 - network.lambda_min) / (1 - network.lambda_2)
    steepness = effective_smoothness(constants, training) * mixing
    return first + 4 * (τ_r - 1) * (steepness * gap) ** 2 + 4 * C_2


def _training_terms(network: ClusterTerms, clusters: Sequence[ClusterTerms]) -> ClusterTerms:
    """The terms of Ã for the whole network: its eigenvalues are those of the blocks Ã_s."""
    return replace(
        network,
        lambda_min=min(cluster.lambda_min for cluster in clusters),
        amplification=max(cluster.amplification for cluster in clusters),
    )


def _descent(constants: Constants, cluster: ClusterTerms) -> float:
    """``η − ½ α̂_s η² Γ_s``, the denominator of both theorems: positive if η < 2 / (α̂_s Γ_s)."""
    η, Γ = constants.learning_rate, gamma(constants, cluster)
    return η - (cluster.amplification + 1) * η**2 * Γ / 2


def integrated_average(
    constants: Constants,
    network: ClusterTerms,
    clusters: Sequence[ClusterTerms],
    largest: float,
    gap: float,
) -> float:
    """Theorem 2's average over K → ∞ cycles (`eq:avgd_combconv`), with the largest L̃.

    Args:
        largest: ``L̃^max``.
        gap: the largest ``‖Δ̂^{k,0}‖``.
    """
    return integrated_convergence(constants, network, clusters, largest, gap)


def largest_learning_rate(constants: Constants, clusters: Sequence[ClusterTerms]) -> float:
    """The supremum of the η that Theorem 1 and Lemma 1 allow in every cluster, 0 if there is none.

    Γ_s depends on η. Solved for η, ``η < 2 / (α̂_s Γ_s)`` (`eq:prf_intraconv_5`) becomes
    ``η < (2 − α̂_s (1 − λ_min)) / (α̂_s (γ̂_s + 1 + τ_a B √N_s))``.

    Examples:
        >>> four = ClusterTerms(size=4, lambda_2=0.5, lambda_min=0.5)
        >>> largest_learning_rate(Constants(tau_a=1, smoothness=1.0), [four])
        0.375
    """
    return max(0.0, min(_largest_for(constants, cluster) for cluster in clusters))


def _largest_for(constants: Constants, cluster: ClusterTerms) -> float:
    α_hat = 1 + cluster.amplification
    steepness = constants.smoothness + 1 + _momentum(constants, cluster)
    theorem_1 = (2 - α_hat * (1 - cluster.lambda_min)) / (α_hat * steepness)
    return min(theorem_1, 1 - cluster.lambda_2)
