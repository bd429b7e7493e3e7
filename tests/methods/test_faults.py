import numpy as np
import pytest
from scipy.sparse import eye_array

from ssdfl.errors import InputError
from ssdfl.graph import check_mixing, load_network
from ssdfl.methods import METHODS, ScheduleInputs, drop_devices, drop_links


@pytest.fixture
def network():
    return load_network("complete:n=8")


@pytest.mark.parametrize("drop", [drop_links, drop_devices])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_left_is_a_mixing_matrix(network, drop, method):
    faulty = drop(
        METHODS[method].schedule(ScheduleInputs(network, ((0, 1, 2, 3), (4, 5, 6, 7)))), 0.4, seed=1
    )
    for t in (0, 3, 1, 50):
        check_mixing(faulty(t).W, network.adjacency)
        assert abs(faulty(t).W - faulty(t).W).nnz == 0


@pytest.mark.parametrize("drop", [drop_links, drop_devices])
def test_limits(network, drop):
    plain = METHODS["sdfl"].schedule(ScheduleInputs(network, ()))
    assert abs(drop(plain, 0.0, seed=0)(0).W - plain(0).W).max() < 1e-12
    assert abs(drop(plain, 1.0, seed=0)(0).W - eye_array(8)).max() < 1e-12


def test_lost_links_come_at_their_rate_and_training_goes_on(network):
    faulty = drop_links(METHODS["sdfl"].schedule(ScheduleInputs(network, ())), 0.25, seed=0)
    lost = [1 - (faulty(t).W.nnz - 8) / 56 for t in range(200)]
    assert np.mean(lost) == pytest.approx(0.25, abs=0.03)
    assert faulty(0).train.all()


def test_devices_that_are_away_neither_train_nor_mix(network):
    faulty = drop_devices(METHODS["sdfl"].schedule(ScheduleInputs(network, ())), 0.3, seed=0)
    seen = 0
    for t in (0, 1, 2, 4, 5):
        step = faulty(t)
        for device in np.flatnonzero(~step.train):
            row = step.W.toarray()[device]
            assert row[device] == 1
            assert np.count_nonzero(row) == 1
            seen += 1
    assert seen > 0


@pytest.mark.parametrize("drop", [drop_links, drop_devices])
def test_impossible_probability(network, drop):
    with pytest.raises(InputError, match="_loss = 2"):
        drop(METHODS["sdfl"].schedule(ScheduleInputs(network, ())), 2, seed=0)
