"""The paper's statements in forms that hold, named as in `ssdfl.theory.published`.

`docs/theory.md` has the differences and derivations. In short: the effective loss changes from step
to step through its momentum term, which is counted here from the start of the regime. Mixing
contracts by the largest *absolute* eigenvalue. Proximal factors may differ between devices. No norm
needs to be above 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ssdfl.theory.constants import ClusterTerms, Constants

_SHARE = 0.5


def effective_smoothness(constants: Constants, cluster: ClusterTerms) -> float:
    """``γ̂_s + μ̂_s + (1 − λ_min(Ã_s)) / η``: the smoothness of one step's effective loss.

    Examples:
        >>> four = ClusterTerms(size=4, lambda_min=0.0, mu=0.0)
        >>> effective_smoothness(Constants(learning_rate=0.5, smoothness=2.0), four)
        4.0
    """
    return constants.smoothness + cluster.mu + (1 - cluster.lambda_min) / constants.learning_rate


def momentum_norm(constants: Constants, cluster: ClusterTerms, step: int) -> float:
    """``‖M_q‖ ≤ B √N_s Σ_{j=1}^{q} ρ̂^j``, the momentum of earlier steps at step q."""
    ρ = cluster.rho
    decays = float(step) if ρ == 1 else ρ * (1 - ρ**step) / (1 - ρ)
    return constants.gradient_bound * math.sqrt(cluster.size) * decays


def momentum_gap(constants: Constants, cluster: ClusterTerms) -> float:
    """The largest ``‖M_q¹ − M_q²‖`` between two steps of a regime."""
    τ_a = constants.tau_a
    pairs = [(later, earlier) for later in range(τ_a) for earlier in range(later)]
    return max(
        (
            momentum_norm(constants, cluster, later - earlier)
            + momentum_norm(constants, cluster, earlier)
            for later, earlier in pairs
        ),
        default=0.0,
    )


def gradient_gap(constants: Constants, cluster: ClusterTerms, distance: float) -> float:
    """Proposition 1: ``‖∇L̃_s(θ¹) − ∇L̃_s(θ²)‖ ≤ γ ‖θ¹ − θ²‖ + ‖M¹ − M²‖``.

    `thm:smoothness_reg_loss`.
    """
    return effective_smoothness(constants, cluster) * distance + momentum_gap(constants, cluster)


def loss_gap(
    constants: Constants, cluster: ClusterTerms, slope: float, distance: float, travelled: float
) -> float:
    """Corollary 1: ``L̃_s(θ¹) − L̃_s(θ²) ≤ slope + ½ γ ‖θ¹ − θ²‖² + ‖θ¹ − θ⁰‖ ‖M¹ − M²‖``.

    This replaces `coro:re_smooth`.

    Args:
        slope: ``∇L̃_s(θ²)ᵀ(θ¹ − θ²)``.
        distance: ``‖θ¹ − θ²‖``.
        travelled: ``‖θ¹ − θ⁰‖`` since the start of the regime.
    """
    curvature = effective_smoothness(constants, cluster) / 2
    return slope + curvature * distance**2 + travelled * momentum_gap(constants, cluster)


def intra_convergence(constants: Constants, cluster: ClusterTerms, initial: float) -> float:
    """Theorem 1 (`thm:intra_conv`): a bound on a regime's ``Σ_q E‖∇L̃_s‖²`` for losses ≥ 0.

    ``(L̃_s + ½ α τ_a η² γ + (η / 2ε) Σ_q ‖M_q‖²) / (η (1 − ε / 2) − ½ α̂_s η² γ)``. ε is the share
    of descent that momentum costs, and 0 without momentum.

    Args:
        initial: ``L̃_s`` at the start of the regime.
    """
    η, γ = constants.learning_rate, effective_smoothness(constants, cluster)
    ε = _momentum_share(constants, cluster)
    denominator = _descent(constants, cluster, ε)
    if denominator <= 0:
        return math.inf
    squares = sum(momentum_norm(constants, cluster, q) ** 2 for q in range(constants.tau_a))
    momentum = η / (2 * ε) * squares if ε else 0.0
    noise = constants.variance_floor * constants.tau_a * η**2 * γ / 2
    return (initial + noise + momentum) / denominator


def intra_convergence_limit(constants: Constants, cluster: ClusterTerms) -> float:
    """The average of Theorem 1's bound over a regime for τ_a → ∞.

    ``(½ α η² γ + (η / 2ε) ‖M_∞‖²) / (η (1 − ε / 2) − ½ α̂_s η² γ)``: 0 for full gradients without
    momentum.
    """
    η, γ = constants.learning_rate, effective_smoothness(constants, cluster)
    ε = _SHARE if cluster.rho > 0 else 0.0
    denominator = _descent(constants, cluster, ε)
    if denominator <= 0 or cluster.rho >= 1:
        return math.inf
    most = constants.gradient_bound * math.sqrt(cluster.size) * cluster.rho / (1 - cluster.rho)
    momentum = η / (2 * ε) * most**2 if ε else 0.0
    return (constants.variance_floor * η**2 * γ / 2 + momentum) / denominator


def _momentum_share(constants: Constants, cluster: ClusterTerms) -> float:
    """ε, the share of descent that momentum costs; 0 if a regime has none."""
    has_momentum = cluster.rho > 0 and constants.tau_a > 1
    return _SHARE if has_momentum else 0.0


def _descent(constants: Constants, cluster: ClusterTerms, ε: float) -> float:
    """``η (1 − ε / 2) − ½ α̂_s η² γ``: the smallest decrease per squared gradient."""
    η, γ = constants.learning_rate, effective_smoothness(constants, cluster)
    return η * (1 - ε / 2) - (cluster.amplification + 1) * η**2 * γ / 2


def intra_consensus(constants: Constants, cluster: ClusterTerms, initial_gap: float = 0.0) -> float:
    """Lemma 1 (`thm:intra_cons`): a bound on ``‖Δ_s‖`` at the end of a regime.

    It holds for every η.

    There are two recursions: for the gap, ``Δ ← λ̄ Δ + η (√N_s B + ‖M_q‖ + μ̂ D)``, and for the
    distance from the start, ``D ← (1 + η μ̂) D + (1 − λ_min) Δ⁰ + η (√N_s B + ‖M_q‖)``. The second
    is needed because unequal proximal factors turn a common displacement into disagreement.
    """
    if cluster.size == 1:
        return 0.0
    η = constants.learning_rate
    gap, travelled = initial_gap, 0.0
    for q in range(constants.tau_a):
        push = constants.gradient_bound * math.sqrt(cluster.size) + momentum_norm(
            constants, cluster, q
        )
        gap, travelled = (
            contraction(cluster) * gap + η * (push + cluster.mu * travelled),
            (1 + η * cluster.mu) * travelled + (1 - cluster.lambda_min) * initial_gap + η * push,
        )
    return gap


def contraction(cluster: ClusterTerms) -> float:
    """``λ̄ = max(|λ₂|, |λ_min|)``: the largest share that a mixing leaves; 0 for one device."""
    return max(abs(cluster.lambda_2), abs(cluster.lambda_min)) if cluster.size > 1 else 0.0


def inter_consensus(constants: Constants, network: ClusterTerms, initial_gap: float) -> float:
    """Lemma 2 (`thm:inter_cons`): ``‖Δ̂^{τ_r}‖ ≤ λ̄(A)^{τ_r} ‖Δ̂⁰‖``."""
    return float(contraction(network) ** constants.tau_r) * initial_gap


def integrated_convergence(
    constants: Constants,
    network: ClusterTerms,
    clusters: Sequence[ClusterTerms],
    initials: Sequence[float],
    gap: float,
) -> float:
    """Theorem 2 (`thm:combined_conv`): a bound on a cycle's ``Σ_q E‖∇L̃‖²``.

    The regime's part is the sum of Theorem 1 over clusters. While mixing, the effective loss stays
    as at the end of training. Its gradient there differs from the last one by at most one step, and
    mixing moves the parameters by at most ``max |1 − λ^j| ‖Δ̂‖`` in j steps.

    Args:
        network: the terms of the whole network with A.
        initials: ``L̃_s`` of each cluster at the start of the cycle.
        gap: ``‖Δ̂‖`` at the end of training.
    """
    pairs = zip(clusters, initials, strict=True)
    regime = sum(intra_convergence(constants, cluster, initial) for cluster, initial in pairs)
    if not math.isfinite(regime):
        return math.inf
    γ = max(effective_smoothness(constants, cluster) for cluster in clusters)
    at_end = _end_of_training(constants, clusters, regime, γ)
    moved = [_displacement(network, j) * gap for j in range(constants.tau_r)]
    return regime + sum(2 * at_end + 2 * (γ * distance) ** 2 for distance in moved)


def _end_of_training(
    constants: Constants, clusters: Sequence[ClusterTerms], regime: float, γ: float
) -> float:
    """A bound on ``E‖∇L̃‖²`` after the last training step, from the sum over the regime."""
    η, α = constants.learning_rate, constants.variance_floor
    α_hat = 1 + max(cluster.amplification for cluster in clusters)
    momentum = sum(_last_momentum_step(constants, cluster) ** 2 for cluster in clusters)
    return 3 * ((1 + (γ * η) ** 2 * α_hat) * regime + (γ * η) ** 2 * α * len(clusters) + momentum)


def integrated_average(
    constants: Constants,
    network: ClusterTerms,
    clusters: Sequence[ClusterTerms],
    largest: Sequence[float],
    gap: float,
) -> float:
    """Theorem 2 averaged over K → ∞ cycles, with the clusters' largest L̃_s and the largest gap."""
    return integrated_convergence(constants, network, clusters, largest, gap)


def _last_momentum_step(constants: Constants, cluster: ClusterTerms) -> float:
    """``‖M_{τ_a} − M_{τ_a − 1}‖ ≤ B √N_s ρ̂ + (1 − ρ) ‖M_{τ_a − 1}‖``, with 1 − ρ ≤ 1."""
    newest = constants.gradient_bound * math.sqrt(cluster.size) * cluster.rho
    return newest + momentum_norm(constants, cluster, constants.tau_a - 1)


def _displacement(network: ClusterTerms, steps: int) -> float:
    """``max |1 − λ^j|`` over all eigenvalues of A except the first."""
    if steps == 0 or network.size == 1:
        return 0.0
    inside = [network.lambda_min, network.lambda_2]
    if network.lambda_min < 0 < network.lambda_2:
        inside.append(0.0)
    return max(abs(1 - eigenvalue**steps) for eigenvalue in inside)


def largest_learning_rate(constants: Constants, clusters: Sequence[ClusterTerms]) -> float:
    """The supremum of the η that Theorem 1 allows in every cluster, 0 if there is none.

    ``η < (2 (1 − ε/2) − α̂_s (1 − λ_min)) / (α̂_s (γ̂_s + μ̂_s))``; infinite if nothing bounds it.
    """
    return max(0.0, min(_largest_for(constants, cluster) for cluster in clusters))


def _largest_for(constants: Constants, cluster: ClusterTerms) -> float:
    ε = _momentum_share(constants, cluster)
    α_hat = 1 + cluster.amplification
    return (2 * (1 - ε / 2) - α_hat * (1 - cluster.lambda_min)) / (
        α_hat * (constants.smoothness + cluster.mu)
    )
