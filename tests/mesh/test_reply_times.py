import pytest

from ssdfl.mesh.reply_times import DEVIATIONS, KNOWN_AFTER, LEAST_S, ReplyTimes


def usual(*seconds, most_s=10.0):
    found = ReplyTimes(most_s)
    for one in seconds:
        found.heard(one)
    return found


def test_until_something_is_known_the_longest_deadline_holds():
    assert usual(*[0.001] * (KNOWN_AFTER - 1)).deadline_s == 10.0
    assert usual(*[0.001] * KNOWN_AFTER).deadline_s == LEAST_S


def test_a_neighbour_that_always_takes_as_long_has_little_more():
    assert usual(*[1.0] * 50).deadline_s == pytest.approx(1.0, abs=0.01)


def test_deviations_count_as_tcp_counts_them():
    """By hand, RFC 6298: 1 gives (1, 0.5); 2 gives (1.125, 0.625)."""
    found = usual(1.0, 2.0)
    assert (found.mean_s, found.deviation_s) == (1.125, 0.625)
    found.count = KNOWN_AFTER
    assert found.deadline_s == 1.125 + DEVIATIONS * 0.625


def test_each_miss_doubles_the_deadline_up_to_the_longest_until_one_is_heard():
    found = usual(*[0.001] * 9, most_s=1.5)
    deadlines = []
    for _ in range(4):
        deadlines.append(found.deadline_s)
        found.missed()
    assert deadlines == [LEAST_S, 2 * LEAST_S, 1.5, 1.5]
    found.heard(0.001)
    assert found.deadline_s == LEAST_S
