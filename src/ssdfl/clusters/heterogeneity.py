"""The heterogeneity of a cluster's devices, in data and optimizers (Sec. het. optimizers).

A small descriptor represents a device: its label counts or, without classes, a sketch of its
gradient. In a real network, descriptors and optimizers are sent to all; samples are only sent
between two neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.errors import InputError, check_range
from ssdfl.graph import Network
from ssdfl.lazy import LazyModule
from ssdfl.rng import generator
from ssdfl.theory.constants import LARGEST

if TYPE_CHECKING:
    import scipy.spatial.distance as distance
    import scipy.special as special
else:
    distance = LazyModule("scipy.spatial.distance")
    special = LazyModule("scipy.special")

MOST_SAMPLES = 1e15
_ASSUMED_COLUMNS = 8
_KINDS = {
    (False, False): "sgd",
    (True, False): "momentum",
    (False, True): "proximal",
    (True, True): "effective",
}


@dataclass(frozen=True)
class AmplificationSettings:
    """The settings that turn differences between devices into α_s; the defaults are the paper's.

    Attributes:
        kind_weight: ζ_1, the weight of a difference of optimizer kinds.
        mu_weight: ζ_2, the weight of a difference of proximal factors.
        rho_weight: ζ_3, the weight of a difference of momenta.
        optimizer_min: α^{o,min}.
        optimizer_max: α^{o,max}.
        data_min: α^{d,min}.
        data_max: α^{d,max}.
    """

    kind_weight: float = 1.0
    mu_weight: float = 1.0
    rho_weight: float = 1.0
    optimizer_min: float = 0.0
    optimizer_max: float = 0.2
    data_min: float = 0.0
    data_max: float = 0.2

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            check_range(name, value, 0, LARGEST)
        check_range("optimizer_max", self.optimizer_max, self.optimizer_min, LARGEST)
        check_range("data_max", self.data_max, self.data_min, LARGEST)
        if self.total_weight == 0:
            remedy = "To leave optimizers out, set optimizer_max to 0 instead."
            raise InputError("the weights ζ", "all 0", "at least one above 0", remedy)

    @property
    def total_weight(self) -> float:
        """ζ_1 + ζ_2 + ζ_3."""
        return self.kind_weight + self.mu_weight + self.rho_weight

    def scaled(self, optimizer_distance: float, data_distance: float) -> float:
        """``α_s`` from β_s^o and β_s^d (`eq:optim_het_alpha_s2`, `eq:data_het_alpha_s2`)."""
        optimizer_span = self.optimizer_max - self.optimizer_min
        data_span = self.data_max - self.data_min
        by_optimizers = optimizer_distance / self.total_weight * optimizer_span + self.optimizer_min
        by_data = data_distance * data_span + self.data_min
        return by_optimizers + by_data


PAPER_AMPLIFICATION = AmplificationSettings()


@dataclass(frozen=True, eq=False)
class Device:
    """A device's descriptor.

    Attributes:
        labels: (C,) its number of samples of each label.
        rho: momentum, 0 if it uses none.
        mu: proximal factor, 0 if it uses none.
        samples: (b, features) a few raw samples, or None if unknown.
        sketch: (k,) a random projection of its mean gradient at θ⁰, the same projection on all
            devices. It replaces labels if there are no classes.
        sketch_scale: the root mean square norm of its samples' gradients.
    """

    labels: FloatArray
    rho: float = 0.0
    mu: float = 0.0
    samples: FloatArray | None = None
    sketch: FloatArray | None = None
    sketch_scale: float = 1.0

    def __post_init__(self) -> None:
        usable = ((self.labels >= 0) & (self.labels <= MOST_SAMPLES)).all()
        if not usable or self.labels.sum() == 0:
            expected = f"counts from 0 to {MOST_SAMPLES:g}, not all of them 0"
            raise InputError("label counts", self.labels.tolist(), expected, "Correct them.")
        if self.sketch is not None and not np.isfinite([*self.sketch, self.sketch_scale]).all():
            raise InputError(
                "sketch", "NaN or infinite", "finite numbers", "Lower the learning rate."
            )
        _check_factor("rho", self.rho)
        _check_factor("mu", self.mu)

    @property
    def kind(self) -> str:
        """``sgd``, ``momentum``, ``proximal``, or ``effective`` with both (`eq:eff_sgd_ovr`)."""
        return _KINDS[self.rho > 0, self.mu > 0]


def _check_factor(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise InputError(name, value, "a number in [0, 1)", "Correct it.")


def unknown_devices(network: Network) -> tuple[Device, ...]:
    """Descriptors of unknown devices: all alike."""
    return (Device(np.ones(1)),) * network.num_devices


def label_frequencies(devices: Sequence[Device]) -> FloatArray:
    """(N, C) the share of each label in each device's data."""
    counts = np.stack([device.labels for device in devices])
    frequencies: FloatArray = counts / counts.sum(axis=1, keepdims=True)
    return frequencies


def sketches(devices: Sequence[Device]) -> FloatArray | None:
    """(N, k) devices' sketches in units of a sample's gradient norm; None if some have none.

    In these units sketches are comparable to label frequencies: both are means over samples of
    vectors of about unit length.
    """
    known = [device.sketch for device in devices if device.sketch is not None]
    if len(known) < len(devices):
        return None
    scale = np.sqrt(np.mean([device.sketch_scale**2 for device in devices]))
    scaled: FloatArray = np.stack(known) / (scale or 1.0)
    return scaled


def drift_directions(devices: Sequence[Device]) -> FloatArray:
    """(N, C) differences of label frequencies or sketches from their mean: the drift directions.

    The cross-entropy gradient of the last layer's bias is the difference between predicted and
    present label frequencies. So devices that start from the same model disagree about this first.
    A sketch measures the same for the whole gradient and any loss.

    Examples:
        >>> drift_directions([Device(np.array([4.0, 0.0])), Device(np.array([0.0, 2.0]))]).tolist()
        [[0.5, -0.5], [-0.5, 0.5]]
    """
    found = sketches(devices)
    described = label_frequencies(devices) if found is None else found
    differences: FloatArray = described - described.mean(axis=0)
    return np.where(np.abs(differences) < 1e-12, 0.0, differences)


def assumed_directions(num_devices: int) -> FloatArray:
    """(N, k) random drift directions of typical length, for unknown devices.

    Each has the squared length of a device with three of ten labels, ``1/3 − 1/10``: the paper's
    mild skew. A few random columns have the same mean as many.
    """
    drawn = generator(0, "assumed drift").standard_normal((num_devices, _ASSUMED_COLUMNS))
    scaled = drawn * np.sqrt((1 / 3 - 1 / 10) / _ASSUMED_COLUMNS)
    centred: FloatArray = scaled - scaled.mean(axis=0)
    return centred


def data_divergence(a: Device, b: Device) -> float:
    """The divergence of two devices' data, from 0 (equal) to 1.

    For label frequencies, the Jensen–Shannon divergence in base 2; it is 1 if they are disjoint.
    For sketches, half their squared distance; it is 1 if all gradients of one device are orthogonal
    to the other's.

    Examples:
        >>> data_divergence(Device(np.array([3.0, 0.0])), Device(np.array([0.0, 5.0])))
        1.0
        >>> one, other = (Device(np.ones(1), sketch=row) for row in np.eye(2))
        >>> data_divergence(one, other)
        1.0
    """
    found = sketches([a, b])
    if found is not None:
        return float(min(np.square(found[0] - found[1]).sum() / 2, 1.0))
    p, q = label_frequencies([a, b])
    return float(_divergence(p, q))


def _divergence(p: FloatArray, q: FloatArray) -> FloatArray:
    m = (p + q) / 2
    nats = (special.rel_entr(p, m) + special.rel_entr(q, m)).sum(axis=-1) / 2
    bits: FloatArray = np.maximum(nats, 0) / np.log(2)
    return bits


def energy_distance(x: FloatArray, y: FloatArray) -> float:
    """The squared empirical energy distance of two (b, features) batches (`eq:data_het_alpha_s`).

    Examples:
        >>> energy_distance(np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]]))
        1.0
    """
    return _energy_distance(x, y, _spread(x), _spread(y))


def _spread(x: FloatArray) -> float:
    """The mean distance between samples."""
    return float(distance.cdist(x, x).mean())


def _energy_distance(x: FloatArray, y: FloatArray, x_spread: float, y_spread: float) -> float:
    return float(2 * distance.cdist(x, y).mean() - x_spread - y_spread)


def data_distances(devices: Sequence[Device], links: IntArray) -> FloatArray:
    """(L,) summands of `eq:data_het_alpha_s`: divergence, plus energy distance if known."""
    distances = _divergences(devices, links)
    spreads = [None if one.samples is None else _spread(one.samples) for one in devices]
    for link, (a, b) in enumerate(links.tolist()):
        x, y = devices[a].samples, devices[b].samples
        x_spread, y_spread = spreads[a], spreads[b]
        if x is not None and y is not None and x_spread is not None and y_spread is not None:
            distances[link] += _energy_distance(x, y, x_spread, y_spread) / x.shape[1]
    return distances


def _divergences(devices: Sequence[Device], links: IntArray) -> FloatArray:
    """(L,) `data_divergence` of the ends of links."""
    if sketches(devices) is not None:
        return np.array([data_divergence(devices[a], devices[b]) for a, b in links.tolist()])
    p = label_frequencies(devices)
    i, j = links.T
    return _divergence(p[i], p[j])


def optimizer_distance(
    a: Device, b: Device, settings: AmplificationSettings = PAPER_AMPLIFICATION
) -> float:
    """The summand of `eq:optim_het_alpha_s1`: ζ_1 if kinds of optimizer differ, ζ_2 |Δμ|, ζ_3 |Δρ|.

    Momentum with a proximal factor is a separate kind.

    Examples:
        >>> one_label = np.ones(1)
        >>> optimizer_distance(Device(one_label), Device(one_label, rho=0.5))
        1.5
    """
    different = settings.kind_weight * (a.kind != b.kind)
    return (
        different + settings.mu_weight * abs(a.mu - b.mu) + settings.rho_weight * abs(a.rho - b.rho)
    )


def amplification(
    members: Sequence[Device],
    mean_data_distance: float,
    settings: AmplificationSettings = PAPER_AMPLIFICATION,
) -> float:
    """``α_s = α_s^o + α_s^d`` of a cluster (`eq:optim_het_alpha_s1` … `eq:data_het_alpha_s2`).

    Args:
        members: the cluster's devices.
        mean_data_distance: the mean of `data_distances` over links inside it, 0 if there are none.
        settings: the weights ζ, and the least and most that optimizers and data contribute.

    Examples:
        >>> one_label = np.ones(1)
        >>> pair = [Device(one_label), Device(one_label, rho=0.5)]
        >>> round(amplification(pair, mean_data_distance=0.0), 6)
        0.05
    """
    return settings.scaled(_mean_optimizer_distance(members, settings), mean_data_distance)


def _mean_optimizer_distance(members: Sequence[Device], settings: AmplificationSettings) -> float:
    """β_s^o: the mean of `optimizer_distance` over all ordered pairs, in n log n."""
    n = len(members)
    kinds = Counter(member.kind for member in members)
    different = 1 - sum((count / n) ** 2 for count in kinds.values())
    mu_gap = _mean_gap([member.mu for member in members])
    rho_gap = _mean_gap([member.rho for member in members])
    return (
        settings.kind_weight * different
        + settings.mu_weight * mu_gap
        + settings.rho_weight * rho_gap
    )


def _mean_gap(values: Sequence[float]) -> float:
    """The mean of |x − y| over all ordered pairs."""
    n = len(values)
    if min(values) == max(values):
        return 0.0
    return 2 * float(np.sort(values) @ (2 * np.arange(n) - n + 1)) / n**2
