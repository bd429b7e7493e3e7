"""What is made of facts that are missing or absurd."""

import numpy as np
import pytest

from ssdfl.clusters import Device
from ssdfl.learning import DeviceConstants
from ssdfl.mesh.knowledge import FARTHEST, average_device, believable


def constants(bound, loss=2.0, smoothness=0.0):
    return DeviceConstants(bound, loss, smoothness)


@pytest.mark.parametrize(
    "absurd", [constants(1e9), constants(1.0, loss=1e11), constants(1.0, 2.0, 1e12)]
)
def test_one_absurd_claim_decides_for_nobody(absurd):
    """Attack 21."""
    honest = {0: constants(1.0, 2.0, 3.0), 1: constants(4.0, 2.5, 5.0), 2: constants(2.0)}
    assert believable({**honest, 3: absurd}) == honest


def test_what_honest_devices_measure_is_kept():
    honest = {k: constants(bound, bound, bound) for k, bound in enumerate((0.1, 1.0, 5.0, 20.0))}
    assert believable(honest) == honest
    edge = {0: constants(1.0), 1: constants(1.0), 2: constants(FARTHEST)}
    assert believable(edge) == edge


def test_of_two_the_smaller_is_believed():
    assert list(believable({4: constants(1e8), 9: constants(1.0)})) == [9]
    assert list(believable({4: constants(1e8)})) == [4]


def test_one_who_claims_too_little_silences_nobody():
    claimed = {0: constants(1e-9), 1: constants(1.0), 2: constants(2.0)}
    assert believable(claimed) == claimed


def test_an_unknown_device_is_the_average_of_the_others():
    known = [
        Device(np.array([2.0, 0.0]), rho=0.9, sketch=np.array([1.0, 0.0]), sketch_scale=1.0),
        Device(np.array([0.0, 4.0]), mu=0.1, sketch=np.array([0.0, 3.0]), sketch_scale=3.0),
    ]
    found = average_device(known)
    assert found.labels.tolist() == [1.0, 2.0]
    assert found.sketch.tolist() == [0.5, 1.5]
    assert (found.sketch_scale, found.kind) == (2.0, "sgd")
    assert average_device([Device(np.ones(3))]).sketch is None
