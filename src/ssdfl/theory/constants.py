"""The constants in the paper's statements."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ssdfl.errors import InputError, check_range

LARGEST = 1e50


@dataclass(frozen=True)
class Constants:
    """The constants of training in the bounds.

    Attributes:
        learning_rate: η.
        tau_a: τ_a, training steps of a cycle.
        tau_r: τ_r, mixing-only steps of a cycle.
        local_steps: E, mini-batch steps of one training step; the paper's statements have E = 1.
        gradient_bound: B of Assumption 2.
        smoothness: γ̂, the largest γ_i of Assumption 1.
        initial_loss: L_i(θ⁰); ln 10 is the loss of guessing among ten classes.
        tolerance: Δ_tol, the tolerated consensus gap (10 in the paper).
        variance_floor: α of Assumption 4 (0.1 in the paper).
    """

    learning_rate: float = 0.01
    tau_a: int = 3
    tau_r: int = 1
    local_steps: int = 1
    gradient_bound: float = 1.0
    smoothness: float = 1.0
    initial_loss: float = math.log(10)
    tolerance: float = 10.0
    variance_floor: float = 0.1

    def __post_init__(self) -> None:
        for name in ("tau_a", "tau_r", "local_steps"):
            check_range(name, getattr(self, name), 1, 10_000)
        for name in ("learning_rate", "gradient_bound", "smoothness", "tolerance"):
            if not 0 < getattr(self, name) <= LARGEST:
                remedy = "Measure it, or leave it out."
                raise InputError(
                    name, getattr(self, name), f"a number above 0, to {LARGEST:g}", remedy
                )
        for name in ("initial_loss", "variance_floor"):
            check_range(name, getattr(self, name), 0, LARGEST)

    @property
    def step_length(self) -> float:
        """η E: how far a unit gradient moves a device in one training step."""
        return self.learning_rate * self.local_steps


@dataclass(frozen=True)
class ClusterTerms:
    """The terms of a cluster, or of the whole network, and its mixing matrix in the bounds.

    Attributes:
        size: N_s.
        lambda_2: second largest eigenvalue of Ã_s.
        lambda_min: smallest eigenvalue of Ã_s.
        amplification: α_s of Assumption 4 (`ass:grad_var`); statements use α̂_s = α_s + 1
            (`eq:bound_2nd_moment`).
        rho: the largest momentum of its devices, 1 if unknown.
        mu: the largest proximal factor of its devices, 1 if unknown.
    """

    size: int
    lambda_2: float = 0.0
    lambda_min: float = 1.0
    amplification: float = 0.0
    rho: float = 1.0
    mu: float = 1.0
