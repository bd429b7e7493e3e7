"""Each device's own optimizer: plain, momentum or proximal SGD (`eq:eff_sgd_ovr`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ssdfl.errors import InputError

PAPER_RHO = (0.8, 0.85)
PAPER_MU = (5e-5, 1e-4)


@dataclass(frozen=True)
class LocalOptimizer:
    """SGD with momentum ``rho`` or with a proximal pull ``mu`` to where the regime started, not both."""

    rho: float = 0.0
    mu: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("rho", self.rho), ("mu", self.mu)):
            if not 0 <= value < 1:
                raise InputError(f"optimizers: {name}", value, "a number in [0, 1)", "Choose such a value.")
        if self.rho and self.mu:
            raise InputError("optimizers", f"rho={self.rho}, mu={self.mu}", "one of the two", "Drop one.")

    @property
    def kind(self) -> str:
        """``sgd``, ``momentum`` or ``proximal``."""
        return "momentum" if self.rho else "proximal" if self.mu else "sgd"

    def __str__(self) -> str:
        return f"{self.kind}:{self.rho or self.mu:g}" if self.rho or self.mu else "sgd"


def parse_optimizer(text: str) -> LocalOptimizer:
    """An optimizer from ``sgd``, ``momentum:0.9`` or ``proximal:0.001``.

    Examples:
        >>> parse_optimizer("momentum:0.9")
        LocalOptimizer(rho=0.9, mu=0.0)
    """
    kind, _, value = text.partition(":")
    try:
        if kind == "sgd" and not value:
            return LocalOptimizer()
        if kind == "momentum":
            return LocalOptimizer(rho=float(value))
        if kind == "proximal":
            return LocalOptimizer(mu=float(value))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
    raise InputError(
        "optimizers.devices", text, "sgd, momentum:RHO or proximal:MU", "Write it like momentum:0.8."
    )


def draw_optimizers(
    kind: str,
    num_devices: int,
    rng: np.random.Generator,
    rhos: tuple[float, ...] = PAPER_RHO,
    mus: tuple[float, ...] = PAPER_MU,
) -> tuple[LocalOptimizer, ...]:
    """One optimizer per device: all of a kind, or ``mixed``, each device's kind drawn at random.

    ρ and μ are drawn uniformly from ``rhos`` and ``mus``, by default the paper's values.

    Examples:
        >>> {o.kind for o in draw_optimizers("mixed", 30, np.random.default_rng(0))} == set(KINDS[1:])
        True
    """
    kinds = rng.choice(KINDS[1:], size=num_devices) if kind == "mixed" else [kind] * num_devices
    drawn = [(float(rng.choice(rhos)), float(rng.choice(mus))) for _ in range(num_devices)]
    return tuple(
        LocalOptimizer(rho=rho if k == "momentum" else 0.0, mu=mu if k == "proximal" else 0.0)
        for k, (rho, mu) in zip(kinds, drawn, strict=True)
    )


KINDS = ("mixed", "sgd", "momentum", "proximal")
