"""Robust rules on real nodes, one of which sends finite nonsense to all its neighbours."""

import threading

import numpy as np
import pytest
import torch

from helpers import tiny_job
from ssdfl.engine.reference import ReferenceEngine
from ssdfl.mesh.device_engine import device_steps
from ssdfl.mesh.mesh_pb2 import Response, Status
from ssdfl.mesh.node import Node
from ssdfl.mesh.transport import UnreachableError

SPEC, LIAR = "complete:n=6", 5
HONEST = range(5)


class Wire:
    """A transport between nodes of this process; what one of them sends is replaced."""

    def __init__(self, nodes, lie):
        self.nodes, self.lie = nodes, lie

    def ask(self, neighbour, request, timeout_s, wanted=None):
        answer = self.nodes[neighbour].handle("", request)
        if self.nodes[neighbour].stopped:
            raise UnreachableError(neighbour)
        answer = Response.FromString(answer) if isinstance(answer, bytes) else answer
        if neighbour == str(LIAR) and answer.HasField("parameters"):
            answer.parameters.data = self.lie(
                np.frombuffer(answer.parameters.data, "<f4")
            ).tobytes()
        return answer

    def stop(self):
        pass


def trained(method, lie):
    """The parameters of all devices after a mesh in this process has taken all steps.

    Each has a job of its own: a model that threads share is trained by one of them at a time.
    """
    job = job_of(method)
    names = tuple(map(str, range(job.network.num_devices)))
    jobs = {name: job_of(method) for name in names}
    nodes = {}
    for index, name in enumerate(names):
        nodes[name] = Node(job.network, index, names, Wire(nodes, lie), patience_s=60)
    for node in nodes.values():
        for name in node.neighbours.names:
            node.neighbours.heard(name, Status())
    last = {}

    def train(name):
        for state, _ in device_steps(jobs[name], nodes[name], None):
            last[name] = state.X

    threads = [threading.Thread(target=train, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    for node in nodes.values():
        node.close()
    assert not any(
        sum(node.bad_messages.values()) for node in nodes.values()
    )  # nothing was refused
    return torch.cat([last[name] for name in names])


def worst_score(X):
    """The least accuracy of an honest device."""
    tester = ReferenceEngine(job_of("sdfl"))
    return min(float(tester.evaluate(X[[k]])[1][0, 0]) for k in HONEST)


def job_of(method):
    return tiny_job(method, SPEC, clusters=1, cycles=8, optimizers="sgd", learning_rate=0.3)


LIES = {
    "huge": lambda row: np.full_like(row, 1e11),
    "flipped": lambda row: -10 * row,
    "noise": lambda row: np.random.default_rng(0).normal(0, 10, row.shape).astype("<f4"),
}


@pytest.fixture(scope="module")
def without_lies():
    return worst_score(trained("sdfl", lambda row: row))


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
@pytest.mark.parametrize("rule", ["clipped", "trimmed"])
def test_honest_devices_stay_within_five_points_of_a_mesh_without_lies(rule, lie, without_lies):
    """Attack 31, with one liar in every neighbourhood."""
    assert worst_score(trained(f"sdfl+{rule}", lie)) >= without_lies - 0.05


def test_without_a_robust_rule_one_liar_ruins_all(without_lies):
    assert worst_score(trained("sdfl", LIES["huge"])) < without_lies - 0.3
    assert without_lies > 0.9
