"""When a device sees that its neighbours have gone on without it."""

import dataclasses

import pytest
from scipy.sparse import csr_array, eye_array

from helpers import tiny_job
from ssdfl.mesh.mesh_pb2 import Status
from ssdfl.mesh.node import Node

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


@pytest.mark.parametrize(("mixes_at", "left_behind"), [(0, True), (3, True), (4, False), (5, False)])
def test_a_neighbour_that_has_not_come_to_an_exchange_had_no_need_to_wait(node, mixes_at, left_behind):
    """At step 4 the neighbour has passed steps 0 to 3."""
    assert node.left_behind(job_that_mixes_at(mixes_at), "b", 0, CYCLE + 1) == left_behind


def test_without_evidence_nobody_is_believed_to_be_ahead(node):
    node.neighbours.heard("b", Status(step=20))
    assert node.furthest_ahead(job_that_mixes_at(), 0) == 0
