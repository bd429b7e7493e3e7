"""How different the devices of a cluster are: their data and their optimizers (Sec. het. optimizers).

A device is known by a small descriptor. In a real network label histograms and optimizers travel, samples
cross only the link between two neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist, jensenshannon

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.errors import InputError

AMPLIFICATION_MAX = 0.2


@dataclass(frozen=True, eq=False)
class Device:
    """A device's descriptor.

    Attributes:
        labels: (C,) how many samples of each label it holds.
        rho: momentum, 0 if it uses none.
        mu: proximal factor, 0 if it uses none.
        samples: (b, features) a few raw samples, or None if unknown.
    """

    labels: FloatArray
    rho: float = 0.0
    mu: float = 0.0
    samples: FloatArray | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.labels).all() and (self.labels >= 0).all() and self.labels.sum() > 0):
            expected = "counts of at least 0, not all of them 0"
            raise InputError("label counts", self.labels.tolist(), expected, "Mend them.")
        for name, value in (("rho", self.rho), ("mu", self.mu)):
            if not 0 <= value < 1:
                raise InputError(name, value, "a number in [0, 1)", "Mend it.")
        if self.rho and self.mu:
            raise InputError("optimizer", f"rho={self.rho:g}, mu={self.mu:g}", "one of the two", "Drop one.")

    @property
    def kind(self) -> str:
        """``sgd``, ``momentum`` or ``proximal``."""
        return "momentum" if self.rho else "proximal" if self.mu else "sgd"


def label_divergence(a: Device, b: Device) -> float:
    """Jensen–Shannon divergence of label frequencies in base 2: 0 if equal, 1 if disjoint.

    Examples:
        >>> label_divergence(Device(np.array([3.0, 0.0])), Device(np.array([0.0, 5.0])))
        1.0
    """
    return float(jensenshannon(a.labels, b.labels, base=2) ** 2)


def energy_distance(x: FloatArray, y: FloatArray) -> float:
    """The squared empirical energy distance of two batches (b, features), as in `eq:data_het_alpha_s`.

    Examples:
        >>> energy_distance(np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]]))
        1.0
    """
    return float(2 * cdist(x, y).mean() - cdist(x, x).mean() - cdist(y, y).mean())


def data_distance(a: Device, b: Device) -> float:
    """The summand of `eq:data_het_alpha_s`: label divergence, and energy distance per feature where known."""
    distance = label_divergence(a, b)
    if a.samples is not None and b.samples is not None:
        distance += energy_distance(a.samples, b.samples) / a.samples.shape[1]
    return distance


def optimizer_distance(a: Device, b: Device) -> float:
    """The summand of `eq:optim_het_alpha_s1` with ζ = 1: another kind of optimizer, and |Δμ| + |Δρ|.

    Examples:
        >>> one_label = np.ones(1)
        >>> optimizer_distance(Device(one_label), Device(one_label, rho=0.5))
        1.5
    """
    return (a.kind != b.kind) + abs(a.mu - b.mu) + abs(a.rho - b.rho)


def amplification(members: Sequence[Device], links: IntArray, most: float = AMPLIFICATION_MAX) -> float:
    """``α_s = α_s^o + α_s^d`` of a cluster (`eq:optim_het_alpha_s1` … `eq:data_het_alpha_s2`).

    Args:
        members: the cluster's devices.
        links: (L, 2) positions of linked members; the data term averages over them, 0 if there are none.
        most: α^{o,max} = α^{d,max}; the minima are 0, as in the paper's experiments.

    Examples:
        >>> one_label = np.ones(1)
        >>> pair = [Device(one_label), Device(one_label, rho=0.5)]
        >>> round(amplification(pair, np.array([[0, 1]])), 6)
        0.05
    """
    optimizer = np.mean([optimizer_distance(a, b) for a in members for b in members]) / 3
    data = np.mean([data_distance(members[i], members[j]) for i, j in links]) if len(links) else 0.0
    return float(most * (optimizer + data))
