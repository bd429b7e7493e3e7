"""The simulation of learning: limits, symmetry, and the order of clusters."""

import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array

from ssdfl.graph import averaging, links_within, load_network, metropolis
from ssdfl.theory import Pilot
from ssdfl.theory.pilot import NOISE, SIGNAL, _pulls


def pilot_on(spec, frequencies, tau_a=3, tau_r=1):
    A = metropolis(load_network(spec).adjacency)
    return A, Pilot(A.toarray(), frequencies, tau_a, tau_r)


def one_label_each(n, classes=5):
    return np.eye(classes)[np.arange(n) % classes]


def test_pulls_are_the_gradient_of_cross_entropy():
    """Against the softmax of all logits, written out class by class."""
    rng = np.random.default_rng(0)
    signal, bias = rng.standard_normal((2, 1, 4))
    p = rng.dirichlet(np.ones(4))[None]
    expected_signal, expected_bias = np.zeros(4), np.zeros(4)
    for k in range(4):
        logits = bias[0] + signal[0, k] * np.eye(4)[k]
        q = np.exp(logits) / np.exp(logits).sum()
        expected_signal[k] = p[0, k] * (1 - q[k])
        expected_bias += p[0, k] * (np.eye(4)[k] - q)
    for found, expected in zip(
        _pulls(signal, bias, p), (expected_signal, expected_bias), strict=True
    ):
        np.testing.assert_allclose(found[0], expected)


def test_balanced_devices_learn_alike_with_any_clusters():
    """Biases stay 0, signals grow by the same amount on all devices, and mixing changes nothing."""
    A, pilot = pilot_on("ring:n=6", np.full((6, 5), 0.2))
    signal = 0.0
    for _ in range(3):
        signal += SIGNAL * 0.2 * (1 - np.exp(signal) / (np.exp(signal) + 4))
    expected = np.exp(signal / NOISE) / (np.exp(signal / NOISE) + 4)
    assert next(pilot.accuracies(A.toarray(), 1)) == pytest.approx(expected)
    assert pilot.cycles(A) == pytest.approx(pilot.cycles(eye_array(6, format="csr")))


def test_devices_that_average_in_every_step_are_one_device_with_all_data():
    n = 5
    together = averaging(n)
    apart = Pilot(together.toarray(), one_label_each(n), 1, 1)
    ends = list(apart.accuracies(together.toarray(), 40))
    assert ends == sorted(ends)
    assert ends[-1] > 0.9


def test_more_clusters_take_more_cycles():
    network = load_network("sites:sites=4,size=5,seed=0")
    _, pilot = pilot_on("sites:sites=4,size=5,seed=0", one_label_each(20))
    found = [
        pilot.cycles(metropolis(links_within(network.adjacency, np.arange(20) // size)))
        for size in (20, 10, 5, 1)
    ]
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_a_target_beyond_reach_is_extrapolated():
    """Alone, a device with one label of two never learns the other one."""
    A = csr_array(averaging(2))
    pilot = Pilot(A.toarray(), np.eye(2), 5, 1)
    alone = Pilot(np.eye(2), np.eye(2), 5, 1)
    assert max(alone.accuracies(np.eye(2), 90)) == pytest.approx(0.5)
    stuck = Pilot(A.toarray(), np.eye(2), 5, 0)
    assert pilot.target > 0.8
    assert stuck.cycles(eye_array(2, format="csr")) == pytest.approx(
        90 * (stuck.target - 0.5) / 1e-3
    )


def test_the_order_of_devices_does_not_matter():
    network = load_network("er:n=12,p=0.3,seed=2")
    A = metropolis(network.adjacency).toarray()
    frequencies = np.random.default_rng(1).dirichlet(np.full(5, 0.2), 12)
    order = np.random.default_rng(2).permutation(12)
    mixed = csr_array(A)
    swapped = csr_array(A[order][:, order])
    one = Pilot(A, frequencies, 3, 1).cycles(mixed)
    other = Pilot(A[order][:, order], frequencies[order], 3, 1).cycles(swapped)
    assert one == pytest.approx(other)


def test_a_single_class_needs_no_cycles():
    """Chance is right at once, so that accuracy never rises."""
    A = csr_array(averaging(3))
    assert Pilot(A.toarray(), np.ones((3, 1)), 2, 1).cycles(A) == 0


def test_a_correction_is_that_of_extra():
    """Against its usual form with one matrix, ``x⁺⁺ = (I + W) x⁺ − W̄ x + p⁺ − p``, p the pull."""
    n = 6
    A, _ = pilot_on("ring:n=6", one_label_each(n))
    W, half = A.toarray(), (np.eye(n) + A.toarray()) / 2
    pilot = Pilot(W, one_label_each(n), 4, 0, corrects=True)
    x = np.zeros((2, n, 5))
    after = W @ x + pilot._moves(x)
    for _ in range(3):
        later = after + W @ after - half @ x + pilot._moves(after) - pilot._moves(x)
        x, after = after, later
    logits = after[1][:, None, :] + after[0][:, :, None] * np.eye(5)
    expected = np.exp(logits / NOISE)
    right = np.diagonal(expected, axis1=1, axis2=2) / expected.sum(axis=2)
    assert next(pilot.accuracies(W, 1)) == pytest.approx(right.mean())


def test_corrected_devices_learn_alone_what_others_drift_away_from():
    network = load_network("ring:n=10")
    A = metropolis(network.adjacency)
    alone = eye_array(10, format="csr")
    plain, corrected = (
        Pilot(A.toarray(), one_label_each(10, 10), 5, 1, corrects) for corrects in (False, True)
    )
    slower = [pilot.cycles(alone) / pilot.cycles(A) for pilot in (plain, corrected)]
    assert slower[1] < 0.7 * slower[0]
