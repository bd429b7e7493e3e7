"""What a device believes of its neighbours' statuses."""

import threading
from collections import Counter

import pytest

from ssdfl.mesh.mesh_pb2 import Absent, Response, Status
from ssdfl.mesh.neighbours import (
    HURRY_S,
    MAX_MISSES,
    PING_DEADLINE_S,
    PING_EVERY_S,
    RETURN_S,
    Neighbours,
)
from ssdfl.mesh.reply_times import LEAST_S
from ssdfl.mesh.transport import UnreachableError


class Answers:
    """A transport on which a neighbour answers what the test says, or does not."""

    def __init__(self, answer=None):
        self.answer = answer

    def ask(self, name, request, timeout_s, wanted=None):
        if self.answer is None:
            raise UnreachableError(name)
        return self.answer


def neighbours(answer=None, **options):
    known = Neighbours(["b"], Answers(answer), **options)
    known.last_step = 30
    return known


@pytest.mark.parametrize(
    "impossible", [{"step": 31}, {"first_step": 31}, {"step": 2**63, "first_step": 2**63}]
)
def test_a_step_beyond_the_last_is_refused_and_counted(impossible):
    counted = Counter(b=1)
    known = neighbours(bad_messages=counted)
    known.heard("b", Status(step=4, first_step=2))
    known.heard("b", Status(**impossible, done=True, plan_digest="other"))
    one = known["b"]
    assert (one.step, one.first_step, one.done, one.plan_digest) == (4, 2, False, "")
    assert counted == {"b": 2}


def test_the_last_step_itself_is_possible():
    known = neighbours()
    known.heard("b", Status(step=30, first_step=30, done=True))
    assert known["b"].done
    assert not known.bad_messages


def test_an_impossible_answer_does_not_prove_that_a_neighbour_is_there():
    known = neighbours(Response(status=Status(step=31)))
    known._ping("b")
    assert known.alive == ()
    assert known.bad_messages == {"b": 1}


@pytest.mark.parametrize(
    "answer", [None, Response(absent=Absent())], ids=["silent", "something else"]
)
def test_a_neighbour_that_misses_pings_in_a_row_is_gone(answer):
    known = neighbours(answer)
    known.heard("b", Status())
    for _ in range(MAX_MISSES - 1):
        known._ping("b")
        assert known.alive == ("b",)
    known._ping("b")
    assert known.alive == ()
    known.heard("b", Status())
    known._ping("b")
    assert known.alive == ("b",)


def test_with_adaptive_deadlines_one_miss_is_enough_and_the_next_ping_has_more_time():
    known = neighbours(adaptive=True)
    known.heard("b", Status(step=1))
    known._ping("b")
    assert known.alive == ()
    assert known._usual["b"].misses == 1


@pytest.mark.parametrize("adaptive", [False, True])
def test_only_adaptive_deadlines_follow_what_is_usual(adaptive):
    known, asked = neighbours(Response(status=Status(step=1)), adaptive=adaptive), []
    answered = known._transport.ask

    def ask(name, request, timeout_s, wanted=None):
        asked.append(timeout_s)
        return answered(name, request, timeout_s)

    known._transport.ask = ask
    for _ in range(20):
        known._ping("b")
    assert asked[0] == PING_DEADLINE_S
    assert asked[-1] == (LEAST_S if adaptive else PING_DEADLINE_S)


class Pauses:
    """A clock that stands still, and events that note for how long they were waited for."""

    def __init__(self):
        self.now_s, self.waited_s = 100.0, []

    def now(self):
        return self.now_s

    def event(self):
        return self

    def condition(self):
        return threading.Condition()

    def wait(self, seconds):
        self.waited_s.append(seconds)
        return False

    def set(self):
        self.waited_s.append("woken")

    def clear(self):
        pass


def paused(known, clock):
    clock.waited_s.clear()
    known._pause("b")
    return clock.waited_s


def test_a_neighbour_that_calls_is_pinged_often_until_it_answers():
    clock = Pauses()
    known = neighbours(runtime=clock)
    usual = [HURRY_S, PING_EVERY_S - HURRY_S]
    assert paused(known, clock) == usual
    known.called("b")
    assert clock.waited_s[-1] == "woken"
    assert paused(known, clock) == [HURRY_S]
    clock.now_s += RETURN_S
    assert paused(known, clock) == usual
    known.called("b")
    known.heard("b", Status())
    assert paused(known, clock) == usual


def test_calls_of_those_that_answer_and_of_strangers_change_nothing():
    clock = Pauses()
    known = neighbours(runtime=clock)
    known.heard("b", Status())
    known.called("b")
    known.called("stranger")
    assert clock.waited_s == []
    assert list(known.names) == ["b"]


def test_only_neighbours_that_are_there_are_asked_soon():
    clock = Pauses()
    known = neighbours(runtime=clock)
    known.ask_soon(["b"])
    assert clock.waited_s == []
    known.heard("b", Status())
    known.ask_soon(["b"])
    assert clock.waited_s == ["woken"]
