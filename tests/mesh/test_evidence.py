"""What a device believes of how far others have come."""

import pytest

from helpers import tiny_job
from ssdfl.mesh.certificates import Authority
from ssdfl.mesh.device_engine import device_steps
from ssdfl.mesh.evidence import Evidence
from ssdfl.mesh.mesh_pb2 import Absent, Ping, Request, Response, Status
from ssdfl.mesh.node import Node
from ssdfl.mesh.signing import Signer
from ssdfl.mesh.transport import Credentials


class Answers:
    """A transport on which neighbours answer pulls as a test says."""

    def __init__(self, answer):
        self.answer = answer

    def ask(self, neighbour, request, timeout_s, wanted=None):
        return self.answer(request)

    def stop(self):
        pass


NAMES = ("a", "b", "c")


@pytest.fixture
def signers():
    """What each of three devices needs to sign its steps, and to check the others' signatures."""
    authority = Authority()
    credentials = {
        name: Credentials(*authority.issue(name), authority.certificate) for name in NAMES
    }
    return {name: Evidence(name, NAMES, Signer(own)) for name, own in credentials.items()}


def listening(signers, answer=None, spec="path:n=3"):
    """Device a, whose neighbour b answers pulls so, with a job of 30 steps."""
    job = tiny_job("sdfl", spec, clusters=1, cycles=10)
    absent = answer or (lambda request: Response(absent=Absent()))
    node = Node(job.network, 0, NAMES, Answers(absent), evidence=signers["a"])
    node.plan_digest = "plan"
    return job, node


def claims(signers, steps, said=None):
    """What b says of its step, with what devices have signed."""
    witnesses = [signers[name].own(step, "plan") for name, step in steps.items()]
    return Status(step=said or steps["b"], plan_digest="plan", witnesses=witnesses)


def steps_taken(job, node):
    steps = [state.step for state, _ in device_steps(job, node, None)]
    node.close()
    return steps


def test_a_device_left_far_behind_continues_where_two_others_are(signers):
    job, node = listening(signers)
    node.neighbours.heard("b", claims(signers, {"b": 20, "c": 18}))
    assert steps_taken(job, node) == list(range(19, 31))  # the first is where it skips to
    assert node.outbox.answer(5, lambda: 31).WhichOneof("kind") == "absent"


@pytest.mark.parametrize("steps", [{"b": 20}, {"b": 30}, {"b": 29, "c": 2}])
def test_one_liar_makes_nobody_skip_steps(signers, steps):
    job, node = listening(signers)
    node.neighbours.heard("b", claims(signers, steps))
    assert steps_taken(job, node) == list(range(1, 31))
    assert not node.bad_messages


def test_a_claim_in_a_question_is_ignored(signers):
    _, node = listening(signers)
    node.neighbours.heard("b", Status(plan_digest="plan"))
    question = Request(ping=Ping())
    node.handle("b", question)
    assert node.neighbours["b"].step == 0
    assert not question.ping.ListFields()  # a question has no room for a claim
    node.close()


@pytest.mark.parametrize("forge", ["signature", "device", "step", "certificate", "stranger"])
def test_a_forged_signature_is_counted_and_worth_nothing(signers, forge):
    job, node = listening(signers)
    status = claims(signers, {"b": 20, "c": 18})
    witness = status.witnesses[1]
    if forge == "signature":
        witness.signature = status.witnesses[0].signature
    elif forge == "device":
        witness.CopyFrom(status.witnesses[0])
        witness.device = "c"
    elif forge == "step":
        witness.step = 25
    elif forge == "certificate":
        other = Authority()
        eve = Evidence("c", NAMES, Signer(Credentials(*other.issue("c"), other.certificate)))
        witness.CopyFrom(eve.own(18, "plan"))
    else:
        witness.device = "eve"
    node.neighbours.heard("b", status)
    assert node.bad_messages == {"b": 1}
    assert steps_taken(job, node) == list(range(1, 31))


def test_a_signature_of_another_plan_is_worth_nothing(signers):
    _, node = listening(signers)
    old = signers["c"].own(18, "another plan")
    signed = signers["b"].own(20, "plan")
    node.neighbours.heard("b", Status(step=20, plan_digest="plan", witnesses=[signed, old]))
    assert signers["a"].reached() == 0
    node.close()


def test_what_a_neighbour_has_signed_is_passed_on(signers):
    _, node = listening(signers)
    node.neighbours.heard("b", claims(signers, {"b": 7}))
    assert [(one.device, one.step) for one in node.status().witnesses] == [("a", 0), ("b", 7)]
    signers["c"].take(node.status().witnesses[1], "plan")
    signers["c"].take(node.status().witnesses[0], "plan")
    assert signers["c"].reached() == 0  # the second furthest
    signers["c"].take(signers["a"].own(5, "plan"), "plan")
    assert signers["c"].reached() == 5
    node.close()


def test_a_device_that_comes_back_when_all_is_done_trains_the_last_cycle(signers):
    job, node = listening(signers)
    node.neighbours.heard("b", claims(signers, {"b": 30, "c": 30}))
    assert steps_taken(job, node) == [28, 29, 30]
    assert node.status().done
