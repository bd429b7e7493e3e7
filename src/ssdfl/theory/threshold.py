"""The smallest allowed conductance of a cluster, from Lemma 1 by Cheeger's inequality."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter

from ssdfl.theory.constants import Constants

THRESHOLD_STEPS: dict[str, Callable[[Constants], float]] = {
    "eta": attrgetter("learning_rate"),
    "eta_E": attrgetter("step_length"),
}
"""The step size in Φ_min by name: η, as printed, or η E, for E local steps."""


def conductance_threshold(
    constants: Constants,
    num_devices: int,
    num_clusters: int,
    with_tau_a: bool = False,
    step: str = "eta",
) -> float:
    """``Φ_min(S) = sqrt(2η + 4ηB √⌊N/S⌋ / Δ_tol)`` (`eq:final_cheeger_conduct`).

    The tolerated consensus gap of Lemma 1 (`eq:delta_tolerable_init`) requires a spectral gap, and
    Cheeger's inequality ``Φ² / 2 ≤ 1 − λ₂`` (`eq:cheeger_upper`) turns that into a conductance.

    Args:
        with_tau_a: keep Lemma 1's τ_a as a factor of the second term; the published form drops it.
        step: the step size in place of η, a name of `THRESHOLD_STEPS`.

    Examples:
        >>> constants = Constants(learning_rate=0.02, gradient_bound=1.0, tolerance=10.0)
        >>> round(conductance_threshold(constants, num_devices=16, num_clusters=4) ** 2, 6)
        0.056
    """
    η, B = THRESHOLD_STEPS[step](constants), constants.gradient_bound
    drift = 4 * η * B * math.sqrt(num_devices // num_clusters) / constants.tolerance
    return math.sqrt(2 * η + drift * (constants.tau_a if with_tau_a else 1))
