"""Networks that devices join and leave."""

import numpy as np
import pytest

from ssdfl.errors import InputError
from ssdfl.graph import joined, load_network, make_network, without


def test_newcomers_come_last_and_bring_their_costs():
    line = make_network(2, [(0, 1)], latency_s=0.01, compute_s=[1.0, 2.0], names=["a", "b"])
    more = make_network(
        3,
        [(0, 1), (1, 2)],
        latency_s=[0.5, 0.25],
        compute_s=[9.0, 3.0, 9.0],
        names=["b", "new", "a"],
    )
    found = joined(line, more)
    assert found.names == ("a", "b", "new")
    assert found.links.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert found.latency_s.tolist() == [0.01, 0.25, 0.5]
    assert found.compute_s.tolist() == [1.0, 2.0, 3.0]  # old devices keep theirs


def test_a_link_that_is_there_gets_new_costs():
    line = make_network(2, [(0, 1)], latency_s=0.01, names=["a", "b"])
    found = joined(line, make_network(2, [(0, 1)], latency_s=0.7, names=["b", "a"]))
    assert found.num_links == 1
    assert found.latency_s.tolist() == [0.7]


def test_newcomers_need_a_way_to_the_others():
    line = make_network(2, [(0, 1)], names=["a", "b"])
    with pytest.raises(InputError, match="connected"):
        joined(line, make_network(2, [(0, 1)], names=["c", "d"]))


def test_who_joins_and_leaves_again_changes_nothing():
    network = load_network("sites:sites=3,size=3,seed=1")
    names = [f"new {k}" for k in range(2)]
    more = make_network(
        4, [(0, 1), (1, 2), (1, 3)], names=[network.names[0], *names, network.names[4]]
    )
    found = without(joined(network, more), names)
    assert found.names == network.names
    for field in ("links", "latency_s", "bandwidth_Bps", "compute_s", "uplink_Bps", "downlink_Bps"):
        np.testing.assert_array_equal(getattr(found, field), getattr(network, field))


@pytest.mark.parametrize(
    ("gone", "said"), [(["x"], "device to remove"), (["b"], "parts"), (list("abc"), "left")]
)
def test_what_cannot_leave_is_named(gone, said):
    line = make_network(3, [(0, 1), (1, 2)], names=list("abc"))
    with pytest.raises(InputError, match=said):
        without(line, gone)
