"""Theorem 1's bound against the number of clusters: the paper's figure of normalised gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.clusters.formation import FormationSettings, form
from ssdfl.clusters.heterogeneity import Device
from ssdfl.graph import Network, Weights
from ssdfl.rng import generator
from ssdfl.theory import Constants

CLASSES = 10
CASES = {
    "mild, hybrid": (3, True),
    "extreme, hybrid": (1, True),
    "mild, SGD": (3, False),
    "extreme, SGD": (1, False),
}


def bounds_by_clusters(
    network: Network, constants: Constants, lengths: Sequence[int], weights: Weights
) -> dict[str, dict[int, FloatArray]]:
    """Theorem 1's bound per step of a regime, averaged over clusters, for S = 1 … N of Algorithm 1.

    The paper's figures `fig:grad_hybrid` (`fig:grad_mild_hybrid`, `fig:grad_extreme_hybrid`) and
    `fig:grad_sgd` (`fig:grad_mild_sgd`, `fig:grad_extreme_sgd`).

    Returns:
        Case (label skew, optimizers) → τ_a → (N,) the bound; infinite if the theorem's condition
        fails.
    """
    result: dict[str, dict[int, FloatArray]] = {}
    for name, (labels, hybrid) in CASES.items():
        devices = random_devices(network.num_devices, labels, hybrid)
        result[name] = {}
        for length in lengths:
            settings = FormationSettings(
                replace(constants, tau_a=length),
                "paper",
                "stationarity",
                "literal",
                weights=weights,
            )
            found = form(network, devices, settings).candidates
            result[name][length] = np.array([candidate.score for candidate in found]) / length
    return result


def random_devices(num_devices: int, labels: int, hybrid: bool) -> list[Device]:
    """Devices with ``labels`` of the ten labels each, and mixed optimizers or plain SGD."""
    rng = generator(0, "devices")
    devices = (_random_device(labels, rng) for _ in range(num_devices))
    return [
        device if hybrid else replace(device, rho=0.0, mu=0.0, samples=None) for device in devices
    ]


def _random_device(labels: int, rng: np.random.Generator) -> Device:
    counts = np.bincount(rng.choice(CLASSES, labels, replace=False), minlength=CLASSES).astype(
        float
    )
    kind = int(rng.integers(3))
    momentum, proximal = float(rng.choice((0.8, 0.85))), float(rng.choice((5e-5, 1e-4)))
    rho, mu = ((0.0, 0.0), (momentum, 0.0), (0.0, proximal))[kind]
    return Device(counts, rho, mu)
