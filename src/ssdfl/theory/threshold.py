"""The conductance that a cluster must have, from Lemma 1 by Cheeger's inequality."""

from __future__ import annotations

import math

from ssdfl.theory.constants import Constants


def conductance_threshold(
    constants: Constants, num_devices: int, num_clusters: int, with_tau_a: bool = False
) -> float:
    """``Φ_min(S) = sqrt(2η + 4ηB √⌊N/S⌋ / Δ_tol)`` (`eq:final_cheeger_conduct`).

    The published form drops the τ_a of Lemma 1; ``with_tau_a`` keeps it as a factor of the second term.

    Examples:
        >>> constants = Constants(learning_rate=0.02, gradient_bound=1.0, tolerance=10.0)
        >>> round(conductance_threshold(constants, num_devices=16, num_clusters=4) ** 2, 6)
        0.056
    """
    η, B = constants.learning_rate, constants.gradient_bound
    drift = 4 * η * B * math.sqrt(num_devices // num_clusters) / constants.tolerance
    return math.sqrt(2 * η + drift * (constants.tau_a if with_tau_a else 1))
