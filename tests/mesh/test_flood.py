"""What a device believes of the facts that its neighbours tell."""

import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from ssdfl.clusters import Device
from ssdfl.errors import InputError
from ssdfl.graph import load_network
from ssdfl.learning import DeviceConstants
from ssdfl.mesh.flood import Flood, lacking
from ssdfl.mesh.mesh_pb2 import Descriptor, Facts, Gossip, LinkFact, Request, Response, Samples
from ssdfl.mesh.node import StoppedError
from ssdfl.mesh.wire import pack_samples

NAMES = ("a", "b", "c")
SAMPLES = np.arange(8.0).reshape(4, 2)


class Neighbour:
    """A transport on which b tells certain facts and shows certain samples."""

    def __init__(self, facts, samples):
        self.facts, self.samples = facts, samples

    def ask(self, name, request, timeout_s, wanted=None):
        assert name == "b"
        if request.HasField("gossip"):
            return Response(facts=self.facts)
        return Response(sample_batch=self.samples)


def flood(*facts, samples=None, **options):
    """Device a of the path a – b – c, whose neighbour b tells these facts."""
    told = Facts(
        descriptors=[fact for fact in facts if isinstance(fact, Descriptor)],
        links=[fact for fact in facts if isinstance(fact, LinkFact)],
    )
    node = SimpleNamespace(
        name="a",
        network=load_network("path:n=3"),
        names=NAMES,
        index=0,
        answers={},
        bad_messages=Counter(),
        neighbours=SimpleNamespace(alive=("b",)),
        transport=Neighbour(told, samples or pack_samples(SAMPLES)),
        stopped=False,
    )
    return Flood(node, Device(np.array([1.0, 3.0]), samples=SAMPLES), **options)


def descriptor(name, **changes):
    return Descriptor(**{"device": name, "labels": [2.0, 2.0], "rho": 0.1, **changes})


GOOD = (descriptor("b"), descriptor("c"), LinkFact(a="b", b="c", distance=0.5))


def test_facts_are_gathered():
    one = flood(*GOOD, measured=DeviceConstants(1.0, 2.0, 3.0))
    known = one.gather(10)
    assert [device.rho for device in known.devices] == [0, 0.1, 0.1]
    assert known.devices[2].labels.tolist() == [2, 2]
    assert known.data_distance[1] == 0.5
    assert known.data_distance[0] > 0
    assert known.measured == {0: DeviceConstants(1.0, 2.0, 3.0)}
    assert not one.node.bad_messages


@pytest.mark.parametrize(
    "bad",
    [
        LinkFact(a="b", b="c", distance=-0.1),
        LinkFact(a="b", b="c", distance=math.nan),
        LinkFact(a="b", b="c", distance=math.inf),
        LinkFact(a="a", b="c", distance=0.1),
        LinkFact(a="c", b="b", distance=0.1),
        descriptor("eve"),
        descriptor("c", labels=[1.0]),
        descriptor("c", labels=[-1.0, 2.0]),
        descriptor("c", labels=[math.nan, 2.0]),
        descriptor("c", rho=math.nan),
        descriptor("c", gradient_bound=-1.0),
        descriptor("c", initial_loss=math.nan),
        descriptor("c", smoothness=math.inf),
    ],
    ids=lambda fact: " ".join(str(fact).split()),
)
def test_an_impossible_fact_is_refused_and_counted(bad, caplog):
    one = flood(bad)
    one._learn("b")
    assert set(one.descriptors) == {"a"}
    assert not one.links
    assert one.node.bad_messages == {"b": 1}
    assert "dropped" in caplog.text


@pytest.mark.parametrize(
    "later",
    [LinkFact(a="b", b="c", distance=0.6), descriptor("c", rho=0.2), descriptor("a")],
    ids=["link", "device", "this device"],
)
def test_a_later_fact_does_not_replace_the_first(later):
    one = flood(*GOOD)
    one._learn("b")
    before = one.facts()
    assert not one.node.bad_messages
    one.node.transport.facts = flood(later).node.transport.facts
    one._learn("b")
    assert one.facts() == before
    assert one.node.bad_messages == {"b": 1}


def test_the_same_fact_again_is_no_lie():
    one = flood(*GOOD)
    one._learn("b")
    one._learn("b")
    assert not one.node.bad_messages


def test_bad_samples_are_counted_and_the_link_stays_unknown():
    one = flood(*GOOD, samples=Samples(rows=1, columns=2, data=np.full(2, np.nan).tobytes()))
    one._learn("b")
    one._compare_data()
    assert ("a", "b") not in one.links
    assert one.node.bad_messages == {"b": 1}


def test_what_is_missing_at_the_deadline_is_named():
    one = flood(descriptor("b"))
    one._learn("b")
    one._compare_data()
    with pytest.raises(InputError, match="missing = 2: expected all within 0 s. Start c, b – c") as caught:
        one.gather(0)
    assert caught.value.got == 2


def test_a_device_that_is_stopped_gathers_no_longer():
    one = flood()
    one.node.stopped = True
    with pytest.raises(StoppedError):
        one.gather(10)


def test_a_neighbour_is_told_only_what_it_lacks():
    facts = Facts(descriptors=GOOD[:2], links=GOOD[2:])
    told = lacking(facts, Request(gossip=Gossip(known=["b", "b|c"]))).facts
    assert [fact.device for fact in told.descriptors] == ["c"]
    assert not told.links
    assert lacking(facts, Request(gossip=Gossip())).facts == facts
