"""What devices have told is kept while others join and leave."""

import numpy as np
import pytest

from ssdfl.clusters import Device, data_divergence
from ssdfl.graph import make_network
from ssdfl.learning import parse_optimizer
from ssdfl.mesh.change import Newcomer
from ssdfl.mesh.descriptions import Descriptions
from ssdfl.mesh.mesh_pb2 import Descriptor, Fact, Facts, LinkFact, SignedFact


def signed(*facts):
    return Facts(facts=[SignedFact(fact=fact.SerializeToString()) for fact in facts])


TOLD = (
    Fact(descriptor=Descriptor(device="a", labels=[4, 0])),
    Fact(descriptor=Descriptor(device="b", labels=[0, 2], rho=0.5)),
    Fact(link=LinkFact(a="b", b="a", distance=1.25)),
)
FACTS = signed(*TOLD)
SGD = {"new": parse_optimizer("sgd")}


def joined(**facts):
    told = Descriptions.at_start(FACTS, ["a", "b"]).with_newcomers(
        {"new": Newcomer("sgd", facts)}, SGD
    )
    return told.of_network(make_network(3, [(0, 1), (1, 2)], names=["a", "b", "new"]))


def test_of_a_newcomer_that_told_nothing_the_average_is_assumed():
    devices, distances = joined()
    assert devices[2].labels.tolist() == [2.0, 1.0]
    assert devices[2].rho == 0.0
    # What samples added on the link that is known, 0.25, is added on the others.
    expected = data_divergence(devices[1], Device(np.array([2.0, 1.0]))) + 0.25
    assert distances.tolist() == [1.25, pytest.approx(expected)]


def test_what_a_change_says_of_a_newcomer_counts():
    devices, distances = joined(labels=[0.0, 7.0], rho=0.9)
    assert devices[2].labels.tolist() == [0.0, 7.0]
    assert devices[2].rho == 0.0  # its optimizer is the change's
    assert distances[1] == pytest.approx(0.25)


@pytest.mark.parametrize(
    "facts", [{"labels": [1.0]}, {"labels": [-1.0, 1.0]}, {"nonsense": 1}, {"labels": "x"}]
)
def test_facts_unlike_the_others_say_nothing(facts):
    devices, _ = joined(**facts)
    assert devices[2].labels.tolist() == [2.0, 1.0]


def test_who_left_takes_nothing_along():
    told = Descriptions.at_start(FACTS, ["a", "b"]).with_newcomers({"new": Newcomer("sgd")}, SGD)
    devices, distances = told.of_network(make_network(2, [(0, 1)], names=["new", "a"]))
    assert [device.labels.tolist() for device in devices] == [[2.0, 1.0], [4.0, 0.0]]
    assert distances.shape == (1,)


def test_who_contradicts_itself_is_like_the_others_in_whatever_order_facts_come():
    other = Fact(descriptor=Descriptor(device="b", labels=[9, 9]))
    for order in ([*TOLD, other], [other, *TOLD[::-1]]):
        found = Descriptions.at_start(signed(*order), ["a", "b"])
        assert found.devices["b"].labels.tolist() == [4.0, 0.0]
        assert not found.distances
