import pytest

from ssdfl.errors import InputError
from ssdfl.graph import load_network
from ssdfl.preparation import liars_of
from ssdfl.records.config import make_experiment

NETWORK = load_network("ring:n=9")


def faults(liars):
    return make_experiment({"faults": {"liars": liars}}).faults


def test_a_number_draws_so_many_by_the_seed():
    drawn = [liars_of(faults(3), NETWORK, seed) for seed in range(20)]
    assert all(len(set(one)) == 3 and list(one) == sorted(one) for one in drawn)
    assert liars_of(faults(3), NETWORK, 7) == drawn[7]
    assert {device for one in drawn for device in one} == set(range(9))
    # One more liar is one more, so that experiments with few and many compare.
    assert set(liars_of(faults(2), NETWORK, 1)) < set(liars_of(faults(3), NETWORK, 1))


def test_names_are_those_of_devices():
    assert liars_of(faults(["7", "2"]), NETWORK, 0) == (2, 7)
    with pytest.raises(
        InputError, match="faults.liars = bob: expected names of devices, such as 0, 1, 2"
    ):
        liars_of(faults(["bob"]), NETWORK, 0)


@pytest.mark.parametrize("liars", [9, 12, [str(k) for k in range(9)]])
def test_somebody_has_to_be_honest(liars):
    with pytest.raises(InputError, match=r"faults.liars = \d+: expected fewer than the 9 devices"):
        liars_of(faults(liars), NETWORK, 0)


@pytest.mark.parametrize("liars", [-1, 1.5, "two", ["a", "a"], [1], True])
def test_what_is_neither_a_number_nor_names_is_refused(liars):
    with pytest.raises(
        InputError, match="faults.liars = .*expected a number of at least 0, or a list"
    ):
        faults(liars)
