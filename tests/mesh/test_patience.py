import pytest

from ssdfl.mesh.patience import FIRST_S, SHARE, Patience


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_each_wait_in_vain_halves_the_next_until_one_is_heard():
    patience = Patience(60.0, Clock())
    shares = []
    for _ in range(3):
        shares.append(patience.left("b"))
        patience.in_vain("b")
    assert shares == [1.0, 0.5, 0.25]
    assert patience.has_waited_in_vain("b")
    assert patience.left("c") == 1.0
    patience.heard("b")
    assert patience.left("b") == 1.0
    assert not patience.has_waited_in_vain("b")


@pytest.mark.parametrize("full_s", [0.5, 20.0, 60.0])
def test_one_that_never_delivers_costs_a_bounded_share_of_the_time(full_s):
    clock, waited_s = Clock(), 0.0
    patience = Patience(full_s, clock)
    for _ in range(20_000):
        clock.now += 0.5  # a step
        wait_s = full_s * patience.left("b")
        clock.now += wait_s
        waited_s += wait_s
        patience.in_vain("b")
    assert waited_s < 2 * full_s + 1.2 * SHARE * (clock.now - 100)


def test_one_that_needs_some_seconds_is_heard_again():
    clock = Clock()
    patience = Patience(60.0, clock)
    for _ in range(30):
        patience.in_vain("b")
    needs_s, began = 3.0, clock.now
    while 60.0 * patience.left("b") < needs_s:
        clock.now += 0.5 + 60.0 * patience.left("b")
        patience.in_vain("b")
    assert clock.now - began < 2 * (1 + 2 + 4) * FIRST_S / SHARE
