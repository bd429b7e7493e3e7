"""What devices know after the flood, whatever one of them tells the others."""

import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from ssdfl.clusters import Device
from ssdfl.errors import NotYetError
from ssdfl.graph import load_network
from ssdfl.learning import DeviceConstants
from ssdfl.mesh import flood as flood_module
from ssdfl.mesh.certificates import Authority
from ssdfl.mesh.facts import LARGEST, FactBook, checked_device
from ssdfl.mesh.flood import Flood, describe
from ssdfl.mesh.mesh_pb2 import Descriptor, Fact, Facts, LinkFact, Response, Samples, SignedFact
from ssdfl.mesh.node import StoppedError
from ssdfl.mesh.signing import Signer
from ssdfl.mesh.transport import Credentials, UnreachableError
from ssdfl.mesh.wire import BadMessageError, pack_samples

NAMES = ("a", "b", "c", "d", "e")
AUTHORITY = Authority()
SIGNERS = {
    name: Signer(Credentials(*AUTHORITY.issue(name), AUTHORITY.certificate)) for name in NAMES
}


class Clock:
    """Time that passes only when a device sleeps."""

    def __init__(self):
        self.s = 0.0

    def now(self):
        return self.s

    def sleep(self, seconds):
        self.s += seconds


class Wire:
    """A transport between floods in this process; some answers can be spoilt or lost."""

    def __init__(self, floods, lies, name):
        self.floods, self.lies, self.name = floods, lies, name

    def ask(self, neighbour, request, timeout_s, wanted=None):
        answers = self.floods[neighbour].node.answers
        answer = answers[request.WhichOneof("kind")](request)
        return self.lies[neighbour](self.name, answer) if neighbour in self.lies else answer


def silence(asker, answer):
    raise UnreachableError("silent")


def mesh(spec="complete:n=4", lies=None, own=None):
    """Devices that have yet to gather, by name."""
    network = load_network(spec)
    names, found = NAMES[: network.num_devices], {}
    for index, name in enumerate(names):
        linked = tuple(names[j] for j in network.neighbours(index))
        node = SimpleNamespace(
            network=network,
            names=names,
            index=index,
            name=name,
            answers={},
            bad_messages=Counter(),
            neighbours=SimpleNamespace(alive=linked, names=linked),
            transport=Wire(found, lies or {}, name),
            stopped=False,
            runtime=Clock(),
        )
        device = Device(np.array([1.0, 2.0 + index]), rho=0.1 * index, samples=np.eye(2) + index)
        constants = DeviceConstants(1.0 + index, 2.0, 3.0) if index < 2 else None
        found[name] = Flood(node, (own or {}).get(name, device), SIGNERS[name], constants)
    return found


def rounds(floods, number=6):
    for _ in range(number):
        for one in floods.values():
            one._ask_neighbours()


def signed(name, **changes):
    """A fact of a device, signed by it."""
    fact = Fact(
        descriptor=Descriptor(**{"device": name, "labels": [2.0, 2.0], "rho": 0.1, **changes})
    )
    return book(name).sign(fact)


def book(name):
    return FactBook(NAMES, [], Device(np.ones(2)), SIGNERS[name])


def test_all_devices_know_the_same_facts_signed_by_those_whom_they_are_about():
    floods = mesh("path:n=3")
    rounds(floods)
    known = [one.gather(10) for one in floods.values()]
    for one in known:
        assert [device.rho for device in one.devices] == [0, 0.1, 0.2]
        assert one.data_distance.tolist() == known[0].data_distance.tolist()
        assert one.measured == {
            0: DeviceConstants(1.0, 2.0, 3.0),
            1: DeviceConstants(2.0, 2.0, 3.0),
        }
        assert not one.absent
    assert (known[0].data_distance > 0).all()
    assert len({one.book.digest for one in floods.values()}) == 1
    assert {len(fact.signatures) for fact in floods["a"].facts().facts} == {1, 2}
    assert not any(one.node.bad_messages for one in floods.values())


BAD = {
    "no device": signed("a", device="eve"),
    "labels": signed("c", labels=[1.0]),
    "negative": signed("c", labels=[-1.0, 2.0]),
    "NaN": signed("c", labels=[math.nan, 2.0]),
    "rho": signed("c", rho=math.nan),
    "bound": signed("c", gradient_bound=-1.0),
    "absurd bound": signed("c", gradient_bound=1e300),
    "loss": signed("c", initial_loss=math.nan),
    "smoothness": signed("c", smoothness=math.inf),
    "signed by another": signed("b", device="c"),
    "unsigned": SignedFact(fact=signed("c").fact),
    "changed": SignedFact(fact=signed("c", rho=0.2).fact, signatures=signed("c").signatures),
    "another authority": SignedFact(
        fact=signed("c").fact,
        signatures=[
            Signer(Credentials(*Authority().issue("c"), b"")).sign(
                b"ssdfl fact\0" + signed("c").fact
            )
        ],
    ),
    "undecodable": SignedFact(fact=b"\xff\xff"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_an_impossible_or_forged_fact_is_refused_and_counted_against_who_told_it(bad, caplog):
    floods = mesh("path:n=3", lies={"b": lambda asker, answer: Response(facts=Facts(facts=[bad]))})
    floods["a"]._learn("b")
    assert floods["a"].book.missing() == ["b", "c", "a – b", "b – c"]
    assert floods["a"].node.bad_messages == {"b": 1}
    assert caplog.messages[0].startswith("b sent ")


def test_sketches_may_be_as_large_as_the_limit():
    like = Device(np.ones(2), sketch=np.zeros(2))
    said = {"device": "a", "labels": [1.0, 1.0]}
    most = Descriptor(**said, sketch=[LARGEST, -LARGEST], sketch_scale=LARGEST)
    assert checked_device(most, like, NAMES).sketch_scale == LARGEST
    for sketch, scale in (
        ([2 * LARGEST, 0.0], 1.0),
        ([1.0], 1.0),
        ([1.0, 1.0], 2 * LARGEST),
        ([1.0, 1.0], -2 * LARGEST),
        ([1.0, 1.0], math.nan),
    ):
        with pytest.raises(BadMessageError, match="sketch"):
            checked_device(Descriptor(**said, sketch=sketch, sketch_scale=scale), like, NAMES)


@pytest.mark.parametrize("distance", [-0.1, math.nan, math.inf, 1e13])
def test_an_impossible_distance_is_refused_whoever_signs_it(distance):
    content = Fact(link=LinkFact(a="b", b="c", distance=distance)).SerializeToString()
    statement = b"ssdfl fact\0" + content
    fact = SignedFact(fact=content, signatures=[SIGNERS[name].sign(statement) for name in "bc"])
    floods = mesh("path:n=3", lies={"b": lambda asker, answer: Response(facts=Facts(facts=[fact]))})
    floods["a"]._learn("b")
    assert floods["a"].node.bad_messages == {"b": 1}
    assert "b – c" in floods["a"].book.missing()


def test_a_bad_fact_ends_what_is_read_of_an_answer():
    many = [BAD["signed by another"]] * 1000
    floods = mesh("path:n=3", lies={"b": lambda asker, answer: Response(facts=Facts(facts=many))})
    floods["a"]._learn("b")
    assert floods["a"].node.bad_messages == {"b": 1}


def test_a_false_distance_is_not_countersigned():
    floods = mesh("path:n=3")
    floods["a"]._computed["b"] = 0.125  # a lies about the link to b
    rounds(floods)
    assert all("a – b" in one.book.missing() for one in floods.values())
    assert floods["b"].node.bad_messages["a"] > 0
    assert not floods["c"].node.bad_messages


def test_a_link_fact_with_one_signature_is_none():
    lie = book("b").sign(Fact(link=LinkFact(a="b", b="c", distance=0.5)))
    floods = mesh("path:n=3", lies={"b": lambda asker, answer: Response(facts=Facts(facts=[lie]))})
    floods["a"]._learn("b")
    assert "b – c" in floods["a"].book.missing()
    twice = SignedFact(fact=lie.fact, signatures=[*lie.signatures, *lie.signatures])
    floods["a"].node.transport.lies["b"] = lambda asker, answer: Response(
        facts=Facts(facts=[twice])
    )
    floods["a"]._learn("b")
    assert "b – c" in floods["a"].book.missing()
    assert floods["a"].node.bad_messages == {"b": 1}


def test_forged_facts_of_honest_devices_change_nothing():
    """Attacks 18, 19 and 20: a neighbour invents the facts of others, before they come."""
    invented = [signed("d", device=name, gradient_bound=1e9, measured=True) for name in "abc"]

    def lie(asker, answer):
        return Response(facts=Facts(facts=invented)) if answer.HasField("facts") else answer

    floods, honest = mesh(lies={"d": lie}), mesh()
    for devices in (floods, honest):
        rounds(devices)
    for name in "abc":
        told = floods[name].facts().facts
        expected = {one.fact for one in honest[name].facts().facts}
        assert {one.fact for one in told} <= expected
        assert floods[name].node.bad_messages == {"d": 6}


def contradicting(asker, answer):
    """Device d tells a another fact about itself than the others."""
    if asker != "a" or not answer.HasField("facts"):
        return answer
    own = Fact(descriptor=describe("d", Device(np.array([9.0, 9.0])), None))
    known = {one.fact: one for one in answer.facts.facts}
    other = book("d").sign(own)
    kept = [one for fact, one in known.items() if Fact.FromString(fact).descriptor.device != "d"]
    return Response(facts=Facts(facts=[*kept, other], digest=answer.facts.digest))


def test_who_signs_two_facts_is_proven_a_liar_and_the_plan_is_formed_without_both(caplog):
    floods = mesh(lies={"d": contradicting})
    rounds(floods)
    known = {name: floods[name].gather(10) for name in "abc"}
    assert len({floods[name].book.digest for name in "abc"}) == 1
    for name in "abc":
        assert floods[name].book.contradicted == ["d"]
        assert known[name].absent == ("d",)
        assert known[name].data_distance.tolist() == known["a"].data_distance.tolist()
    assert {m.split()[0] for m in caplog.messages if "two different facts" in m} == {"d"}


@pytest.mark.parametrize("silent", ["a", "d"])
def test_a_majority_forms_a_plan_without_a_silent_device_and_says_so(silent, caplog):
    floods = mesh(lies={silent: silence})
    honest = [name for name in floods if name != silent]
    rounds({name: floods[name] for name in honest})
    known = [floods[name].gather(5) for name in honest]
    assert {one.absent for one in known} == {(silent,)}
    assert len({floods[name].book.digest for name in honest}) == 1
    assert len({tuple(one.data_distance) for one in known}) == 1
    index = NAMES.index(silent)
    others = [device.labels for k, device in enumerate(known[0].devices) if k != index]
    assert known[0].devices[index].labels == pytest.approx(np.mean(others, axis=0))
    assert f"Start {silent}" in caplog.text
    assert "Forming a plan without them" in caplog.text


def test_half_of_the_devices_form_no_plan():
    floods = mesh(lies={"c": silence, "d": silence})
    rounds({name: floods[name] for name in "ab"})
    with pytest.raises(
        NotYetError, match=r"missing = .*: expected all within 5 s. Start c, d"
    ) as caught:
        floods["a"].gather(5)
    assert caught.value.exit_code == 75


def test_a_device_that_comes_late_takes_the_facts_of_the_plan_that_is_there():
    floods = mesh(lies={"d": silence})
    honest = {name: floods[name] for name in "abc"}
    rounds(honest)
    for one in honest.values():
        one.gather(5)
    floods["a"].node.transport.lies.clear()
    known = floods["d"].gather(5)
    assert known.absent == ("d",)
    assert floods["d"].book.digest == floods["a"].book.digest


def test_one_neighbour_alone_cannot_have_facts_left_out():
    def few(asker, answer):
        facts = FactBook(NAMES[:4], [], Device(np.ones(2)), SIGNERS["d"])
        facts.take(signed("d"))
        return Response(facts=facts.facts(final=True)) if answer.HasField("facts") else answer

    floods = mesh(lies={"d": few})
    rounds({name: floods[name] for name in "abc"})
    assert not any(floods[name].final for name in "abc")
    assert {len(floods[name].book.missing()) for name in "abc"} == {
        3
    }  # d's links, which it does not sign


def test_a_neighbour_with_other_facts_is_waited_for_only_a_while(monkeypatch):
    monkeypatch.setattr(flood_module, "SETTLE_ROUNDS", 3)

    def odd(asker, answer):
        answer.facts.digest = "odd"
        return answer

    floods = mesh(
        lies={"d": lambda asker, answer: odd(asker, answer) if answer.HasField("facts") else answer}
    )
    rounds(floods)
    before = floods["a"].node.runtime.now()
    floods["a"].gather(10)
    assert floods["a"].node.runtime.now() - before < 1


def test_bad_samples_are_counted_and_the_link_stays_unknown():
    bad = Samples(rows=1, columns=2, data=np.full(2, np.nan).tobytes())
    floods = mesh("path:n=3", lies={"b": lambda _, answer: spoilt(answer, bad)})
    rounds({"a": floods["a"]}, 2)
    assert "a – b" in floods["a"].book.missing()
    assert floods["a"].node.bad_messages == {"b": 2}


def spoilt(answer, samples):
    return Response(sample_batch=samples) if answer.HasField("sample_batch") else answer


def test_more_samples_than_a_device_describes_itself_by_are_refused():
    """16,384 of them would take 2 GB to compare."""
    many = pack_samples(np.ones((16384, 2)))
    floods = mesh("path:n=3", lies={"b": lambda _, answer: spoilt(answer, many)})
    rounds({"a": floods["a"]}, 1)
    assert floods["a"].node.bad_messages == {"b": 1}


def test_a_device_that_is_stopped_gathers_no_longer():
    one = mesh()["a"]
    one.node.stopped = True
    with pytest.raises(StoppedError):
        one.gather(10)


@pytest.mark.parametrize(("factor", "same"), [(1 + 1e-6, True), (1.5, False)])
def test_a_device_that_starts_again_signs_no_second_version_for_the_last_digits(factor, same):
    one = mesh()["a"]
    before, own = one.facts(), one.own
    again = Flood(one.node, own, SIGNERS["a"], DeviceConstants(factor, 2.0, 3.0), before)
    assert (again.own_fact() == before.facts[0]) == same


def test_a_link_that_is_signed_is_not_signed_again():
    floods = mesh("path:n=3")
    rounds(floods)
    proposal = floods["a"].book.sign(Fact(link=LinkFact(a="a", b="b", distance=0.75)))
    floods["b"]._keep("a", proposal)
    assert not floods["b"].book.contradicted
    assert floods["b"].book.distance(("a", "b")) == floods["a"].book.distance(("a", "b")) != 0.75
