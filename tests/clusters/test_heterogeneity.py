import math

import numpy as np
import pytest

from ssdfl.clusters import (
    AmplificationSettings,
    Device,
    amplification,
    data_divergence,
    energy_distance,
    optimizer_distance,
)
from ssdfl.clusters.heterogeneity import data_distances, drift_directions
from ssdfl.errors import InputError


def device(*labels, **values):
    return Device(np.array(labels, dtype=float), **values)


def test_data_divergence_by_hand():
    p, q = np.array([0.5, 0.5, 0]), np.array([0.25, 0.25, 0.5])
    m = (p + q) / 2
    expected = sum(
        0.5 * a * math.log2(a / c) for x in (p, q) for a, c in zip(x, m, strict=True) if a > 0
    )
    assert data_divergence(device(2, 2, 0), device(1, 1, 2)) == pytest.approx(expected)
    assert data_divergence(device(1, 2), device(10, 20)) == pytest.approx(0, abs=1e-12)
    assert data_divergence(device(1, 0), device(0, 7)) == pytest.approx(1)


def test_energy_distance_by_the_papers_sums():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((5, 3)), rng.standard_normal((5, 3)) + 1

    def total(a, b):
        return sum(np.linalg.norm(u - v) for u in a for v in b)

    assert energy_distance(x, y) == pytest.approx(
        2 / 25 * total(x, y) - total(x, x) / 25 - total(y, y) / 25
    )
    assert energy_distance(x, x) == pytest.approx(0, abs=1e-12)
    a, b = (Device(np.ones(2), samples=samples) for samples in (x, y))
    assert data_distances([a, b], np.array([[0, 1]])) == pytest.approx(energy_distance(x, y) / 3)


def test_optimizers():
    assert optimizer_distance(device(1, rho=0.8), device(1, rho=0.85)) == pytest.approx(0.05)
    assert optimizer_distance(device(1, mu=0.1), device(1, rho=0.5)) == pytest.approx(1.6)


def test_amplification_of_a_cluster_by_hand():
    members = [device(1, 0), device(0, 1), device(1, 0, rho=0.5)]
    # Optimizers: 4 of 9 ordered pairs differ by 1.5; data: links 0–1 (disjoint) and 0–2 (the same).
    distances = data_distances(members, np.array([[0, 1], [0, 2]]))
    assert distances == pytest.approx([1, 0])
    expected = 0.2 * (4 * 1.5 / 9 / 3 + (1 + 0) / 2)
    assert amplification(members, distances.mean()) == pytest.approx(expected)
    assert amplification([device(1)], 0.0) == 0


def test_optimizers_of_many_devices_by_the_papers_double_sum():
    rng = np.random.default_rng(0)
    kinds = [{}, {"rho": 0.8}, {"rho": 0.85}, {"mu": 0.1}, {"mu": 0.3}]
    members = [device(1, **kinds[k]) for k in rng.integers(5, size=40)]
    pairs = [optimizer_distance(a, b) for a in members for b in members]
    assert amplification(members, 0.0) == pytest.approx(0.2 * np.mean(pairs) / 3)


def test_weights_minima_and_maxima_by_hand():
    settings = AmplificationSettings(
        kind_weight=2, mu_weight=3, rho_weight=5,
        optimizer_min=0.1, optimizer_max=0.5, data_min=0.2, data_max=0.6,
    )  # fmt: skip
    members = [device(1), device(1, rho=0.5), device(1, mu=0.1)]
    # Of 9 ordered pairs, 6 differ in kind, 4 by 0.5 in ρ and 4 by 0.1 in μ.
    beta = (6 * 2 + 4 * 0.1 * 3 + 4 * 0.5 * 5) / 9
    pairs = [optimizer_distance(a, b, settings) for a in members for b in members]
    assert np.mean(pairs) == pytest.approx(beta)
    expected = beta / (2 + 3 + 5) * (0.5 - 0.1) + 0.1 + 0.25 * (0.6 - 0.2) + 0.2
    assert amplification(members, 0.25, settings) == pytest.approx(expected)
    assert amplification([device(1)], 0.0, settings) == pytest.approx(0.1 + 0.2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rho_weight": -1}, "rho_weight = -1"),
        ({"data_max": math.nan}, "data_max = nan"),
        ({"optimizer_min": 0.3}, "optimizer_max = 0.2: expected a number in .0.3"),
        ({"data_min": 0.3}, "data_max = 0.2"),
        ({"kind_weight": 0, "mu_weight": 0, "rho_weight": 0}, "the weights ζ = all 0"),
    ],
)
def test_impossible_amplification_settings(change, message):
    with pytest.raises(InputError, match=message):
        AmplificationSettings(**change)


def test_drift_directions_add_up_to_nothing():
    differences = drift_directions([device(1, 0), device(1, 3), device(2, 2)])
    assert differences.sum(axis=0) == pytest.approx(0, abs=1e-12)
    assert differences[0] == pytest.approx(np.array([1, 0]) - np.array([1.75, 1.25]) / 3)
    assert not drift_directions([device(0.1, 0.2)] * 7).any()


@pytest.mark.parametrize("labels", [[0, 0], [-1, 2], [math.nan, 1]])
def test_impossible_label_counts(labels):
    with pytest.raises(InputError, match="label counts"):
        device(*labels)


def test_a_device_may_have_momentum_and_a_proximal_factor():
    both = device(1, rho=0.5, mu=0.1)
    assert both.kind == "effective"
    assert (device(1).kind, device(1, rho=0.5).kind, device(1, mu=0.1).kind) == (
        "sgd",
        "momentum",
        "proximal",
    )
    assert optimizer_distance(both, both) == 0
    assert optimizer_distance(both, device(1, rho=0.5)) == pytest.approx(1.1)
    assert optimizer_distance(both, device(1)) == pytest.approx(1.6)


@pytest.mark.parametrize("change", [{"rho": 1.0}, {"mu": -0.1}, {"rho": math.nan}])
def test_impossible_optimizers(change):
    with pytest.raises(InputError, match=f"{next(iter(change))} = "):
        device(1, **change)
