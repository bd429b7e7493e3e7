"""When a device notices that neighbours left it behind, and what it asks for ahead of time."""

import dataclasses
import threading

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array, eye_array

from helpers import tiny_job
from ssdfl.graph import make_network
from ssdfl.mesh.device_engine import DeviceEngine
from ssdfl.mesh.mesh_pb2 import Pull, Request, Response, Status
from ssdfl.mesh.node import Node
from ssdfl.mesh.transport import UnreachableError
from ssdfl.methods import Message, Moment

CYCLE = 3


@pytest.fixture
def node():
    """One of two linked devices; nobody calls its transport."""
    found = Node(job_that_mixes_at().network, 0, ("a", "b"), transport=None)
    yield found
    found._pulls.shutdown()


def job_that_mixes_at(*steps):
    """A job of two devices that mix at these steps only; at all steps if there are none."""
    job = tiny_job("sdfl", "path:n=2", clusters=1, cycles=10, steps_per_cycle=CYCLE)
    alone = csr_array(eye_array(2))

    def schedule(t):
        step = job.schedule(t)
        return step if t in steps or not steps else dataclasses.replace(step, W=alone)

    return dataclasses.replace(job, schedule=schedule)


@pytest.mark.parametrize(
    ("theirs", "left_behind"), [(4, False), (4 + CYCLE, False), (5 + CYCLE, True), (29, True)]
)
def test_only_a_neighbour_more_than_a_cycle_ahead_has_gone_on(node, theirs, left_behind):
    assert node.left_behind(job_that_mixes_at(), "b", 4, theirs) == left_behind


@pytest.mark.parametrize(
    ("mixes_at", "left_behind"), [(0, True), (3, True), (4, False), (5, False)]
)
def test_a_neighbour_that_has_not_come_to_an_exchange_had_no_need_to_wait(
    node, mixes_at, left_behind
):
    """At step 4 the neighbour has passed steps 0 to 3."""
    assert node.left_behind(job_that_mixes_at(mixes_at), "b", 0, CYCLE + 1) == left_behind


@pytest.mark.parametrize(("plan", "left_behind"), [("ours", True), ("another", False), ("", False)])
def test_only_a_neighbour_with_the_same_plan_can_have_gone_on(node, plan, left_behind):
    node.plan_digest = "ours"
    node.neighbours.heard("b", Status(step=20, plan_digest=plan))
    assert node.is_left_behind(job_that_mixes_at(), 0) == left_behind


def test_without_evidence_nobody_is_believed_to_be_ahead(node):
    node.neighbours.heard("b", Status(step=20))
    assert node.furthest_ahead(job_that_mixes_at(), 0) == 0


def test_a_plan_from_after_a_change_of_membership_is_the_same(node):
    node.plan_digest = "ours"
    node.fit("after")
    node.neighbours.heard("b", Status(step=20, plan_digest="after"))
    assert node.is_left_behind(job_that_mixes_at(), 0)


@pytest.fixture
def adaptive():
    """The same node; it continues at once without a silent neighbour."""
    found = Node(job_that_mixes_at().network, 0, ("a", "b"), transport=None, adaptive=True)
    yield found
    found._pulls.shutdown()


def test_a_neighbour_that_was_left_out_is_waited_for_again_once_it_is_past_that_step(adaptive):
    adaptive.neighbours.heard("b", Status(step=4))
    assert adaptive._there("b")
    adaptive.neighbours._missed("b", "silent")
    unasked = adaptive._asked("b", 4)
    assert adaptive._pull_or_go("b", at(4, 1), Message(torch.zeros(1, 3)), unasked) is None
    for step, there in ((4, False), (5, True)):
        adaptive.neighbours.heard("b", Status(step=step))
        assert adaptive._there("b") == there


def test_a_strict_device_waits_for_whoever_is_there(node):
    node._pull_or_go("b", at(4, 1), Message(torch.zeros(1, 3)), node._asked("b", 4))
    node.neighbours.heard("b", Status(step=4))
    assert node._there("b")


def test_a_device_that_was_away_stays_out_until_it_takes_part(adaptive):
    adaptive.stay_out(4, last_step=30)
    adaptive.begin(4, 30, received=0)
    status = adaptive.status()
    assert (status.step, status.first_step) == (4, 30)
    adaptive.take_part(9)
    status = adaptive.status()
    assert (status.step, status.first_step) == (9, 9)
    adaptive.stop()


def test_a_strict_device_takes_part_where_it_stopped(node):
    node.stay_out(4, last_step=30)
    assert node.status().first_step == 4


def test_a_device_that_was_away_need_not_be_a_cycle_behind(adaptive):
    adaptive.neighbours.heard("b", Status(step=5))
    assert not adaptive.is_left_behind(job_that_mixes_at(), 4)
    adaptive.absence.begin()
    assert adaptive.is_left_behind(job_that_mixes_at(), 4)


class Wire:
    """A transport to one other node, in this process; the first asks can be lost."""

    def __init__(self, lost=0):
        self.asked, self.lost, self.other = [], lost, None
        self.first = threading.Event()

    def ask(self, name, request, timeout_s, wanted=None):
        self.asked.append(request.pull.step)
        self.first.set()
        if len(self.asked) <= self.lost:
            raise UnreachableError("lost")
        answer = self.other.handle("a", request)
        return Response.FromString(answer) if isinstance(answer, bytes) else answer

    def stop(self):
        pass


@pytest.fixture
def pair(request):
    """Device a, which asks over a wire, and device b, which answers."""
    network = job_that_mixes_at().network
    wire = Wire(lost=getattr(request, "param", 0))
    a, b = Node(network, 0, ("a", "b"), wire), Node(network, 1, ("a", "b"), transport=None)
    wire.other = b
    a.neighbours.heard("b", Status(step=0))
    yield a, b, wire
    for one in (a, b):
        one.stop()
        one._pulls.shutdown()


def at(step, device):
    return Moment(step, np.array([device]), seed=0, rate=1.0)


@pytest.mark.parametrize("pair", [0, 1], indirect=True)
def test_what_is_asked_for_ahead_comes_without_asking_again_unless_it_is_lost(pair):
    a, b, wire = pair
    theirs = torch.arange(3.0)[None]
    a.ask_ahead(4, [1])
    a.ask_ahead(4, [1])
    assert wire.first.wait(5)
    b.publish(at(4, 1), Message(theirs))
    pulls = a.ask(at(4, 0), [1], Message(torch.zeros(1, 3)))
    assert pulls[1].result(5).tolist() == theirs[0].tolist()
    assert wire.asked == [4] * (1 + wire.lost)


def test_a_step_that_was_skipped_is_asked_for_no_longer(pair):
    a, b, _ = pair
    a.ask_ahead(1, [1])
    b.publish(at(2, 1), Message(torch.zeros(1, 3)))
    assert a.ask(at(2, 0), [1], Message(torch.zeros(1, 3)))[1].result(5) is not None
    assert not a._ahead


def test_what_was_asked_for_ahead_is_not_asked_for_again_after_a_change_of_membership(pair):
    """Device b has another number after it, and the same message."""
    a, b, wire = pair
    a.ask_ahead(4, [1])
    assert wire.first.wait(5)
    a.adopt(make_network(3, [(0, 1), (0, 2)], names=["a", "c", "b"]), "after")
    b.publish(at(4, 2), Message(torch.ones(1, 3)))
    pulls = a.ask(at(4, 0), [2], Message(torch.zeros(1, 3)))
    assert pulls[2].result(5).tolist() == [1.0, 1.0, 1.0]
    assert wire.asked == [4]


@pytest.mark.parametrize(("next_step", "offered"), [(4, "parameters"), (5, "absent")])
def test_a_change_of_membership_takes_back_no_message_unless_steps_were_skipped(
    node, next_step, offered
):
    node.begin(3, 30, received=0)
    node.reach(3)
    node.publish(at(3, 0), Message(torch.zeros(1, 3)))
    node.begin(next_step, 30, received=0)
    answer = node.handle("b", Request(pull=Pull(step=3)))
    found = Response.FromString(answer) if isinstance(answer, bytes) else answer
    assert found.WhichOneof("kind") == offered
    assert node.status().first_step == (3 if offered == "parameters" else next_step)


@pytest.mark.parametrize(
    ("mixes_at", "step", "expected"),
    [
        ((5,), 2, [(5, {1})]),
        ((5,), 1, []),
        ((3, 4), 2, [(3, {1})]),
        ((), 29, []),
        ((), 28, [(29, {1})]),
    ],
)
def test_the_next_message_of_a_neighbour_is_asked_for_at_most_a_cycle_ahead(
    node, mixes_at, step, expected
):
    asked = []
    node.ask_ahead = lambda step, devices: asked.append((step, set(devices)))
    DeviceEngine(job_that_mixes_at(*mixes_at), node)._ask_ahead(step)
    assert [entry for entry in asked if entry[1]] == expected
