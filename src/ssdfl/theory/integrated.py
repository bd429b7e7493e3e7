"""Theorem 2 as a score, with Lemma 1's finite recursion for the consensus gap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ssdfl.theory.constants import ClusterTerms, Constants
from ssdfl.theory.published import integrated_convergence


def consensus_gap(constants: Constants, clusters: Sequence[ClusterTerms]) -> float:
    """A bound on ‖Δ̂‖ after a training regime that starts in agreement.

    Inside a cluster, it uses Lemma 1's recursion for a finite number of steps,
    ``2ηB √N_s Σ_{p < τ_a} (λ₂(Ã_s) + η)^p``. Between clusters, means move apart by at most 2ηB per
    step.

    Examples:
        >>> two = [ClusterTerms(size=1, lambda_2=0.0, lambda_min=1.0, amplification=0.0)] * 2
        >>> constants = Constants(learning_rate=0.1, tau_a=3)
        >>> round(consensus_gap(constants, two) ** 2, 6)  # 2 · ½ · (2 · 0.1 · 3)²
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
    constants: Constants, network: ClusterTerms, clusters: Sequence[ClusterTerms]
) -> float:
    """Theorem 2's bound on a cycle's squared gradients with `consensus_gap`, from agreeing devices.

    The theorem weighs the gap by τ_r − 1, so at τ_r = 1 it would ignore the clusters' gap. Here its
    weight is τ_r, which is larger. The gap's factor γ^eff contains ``(1 − λ_N(Ã)) / η``, which is 0
    for single devices and large for clusters that mix. So single devices have the lowest bound;
    Φ_min excludes them.
    """
    bound = integrated_convergence(
        constants, network, clusters, network.size * constants.initial_loss, 0.0
    )
    if not math.isfinite(bound):
        return bound
    gap = consensus_gap(constants, clusters)
    longer = replace(constants, tau_r=constants.tau_r + 1)
    with_gap, without = (
        integrated_convergence(longer, network, clusters, 0.0, size) for size in (gap, 0.0)
    )
    return bound + with_gap - without
