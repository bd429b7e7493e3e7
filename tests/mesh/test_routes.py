"""Who relays for whom, from the network and from who has an address."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdfl.errors import InputError
from ssdfl.graph import load_network, make_network
from ssdfl.mesh.routes import MOST_RELAYS, Routes, check_dialling, check_routes, routes_of

TRIANGLE = make_network(3, [(0, 1), (0, 2), (1, 2)], names=["ann", "bob", "hub"])


def routes(network, addresses):
    """Everyone's routes."""
    of = dict(zip(network.names, addresses, strict=True))
    found = {}
    for place, name in enumerate(network.names):
        near = [network.names[j] for j in network.neighbours(place)]
        found[name] = routes_of(network, name, of[name], {other: of[other] for other in near})
    return found


def test_two_hidden_neighbours_meet_at_the_third():
    found = routes(TRIANGLE, ["", "", "hub:1"])
    assert found == {
        "ann": Routes(awaited={"bob": ("hub",)}),
        "bob": Routes(dialled={"ann": ("hub",)}),
        "hub": Routes(relayed=frozenset({("bob", "ann")})),
    }


def test_nobody_relays_where_one_of_two_can_be_dialled():
    assert set(map(repr, routes(TRIANGLE, ["", "bob:1", "hub:1"]).values())) == {repr(Routes())}


def test_no_relay_between_devices_without_a_link():
    star = make_network(3, [(0, 2), (1, 2)], names=["ann", "bob", "hub"])
    assert routes(star, ["", "", "hub:1"])["hub"].relayed == frozenset()
    check_dialling(star, ["", "", "hub:1"])


@pytest.mark.parametrize("hub", ["", None])
def test_neighbours_that_cannot_reach_each_other_are_named(hub):
    """There is no third device, or it cannot be dialled either."""
    network = TRIANGLE if hub == "" else make_network(2, [(0, 1)], names=["ann", "bob"])
    with pytest.raises(InputError, match="none for ann and bob.*linked to both") as caught:
        check_dialling(network, [""] * network.num_devices)
    assert "Give one of them an address" in caught.value.remedy


def test_a_device_refuses_to_start_without_a_relay():
    with pytest.raises(InputError, match="none for bob and ann"):
        check_routes("bob", routes_of(TRIANGLE, "bob", "", {"ann": "", "hub": ""}))


@settings(deadline=None, max_examples=50)
@given(
    st.integers(3, 9).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.booleans(), min_size=n, max_size=n))
    ),
    st.integers(0, 5),
)
def test_all_three_agree(sizes, seed):
    """Whoever dials is awaited at the same relays, and these relay for just such pairs."""
    n, is_open = sizes
    network = load_network(f"er:n={n},p=0.7", default_seed=seed)
    addresses = [f"{k}:1" if one else "" for k, one in enumerate(is_open)]
    found = routes(network, addresses)
    for name, of_one in found.items():
        for other, through in of_one.dialled.items():
            assert found[other].awaited[name] == through
            assert len(through) <= MOST_RELAYS
            assert all((name, other) in found[relay].relayed for relay in through)
    dialled = {(name, other) for name, one in found.items() for other in one.dialled}
    awaited = {(other, name) for name, one in found.items() for other in one.awaited}
    assert dialled == awaited
    assert set().union(*(one.relayed for one in found.values())) <= dialled


def test_pairs_differ_in_the_relay_that_they_prefer():
    network = load_network("complete:n=16")
    found = routes(network, [""] * 8 + [f"{k}:1" for k in range(8)])
    first = [through[0] for one in found.values() for through in one.dialled.values()]
    assert len(first) == 28
    assert len(set(first)) >= 5


def test_routes_follow_changes_of_membership():
    old = Routes({"a": ("x", "y")}, {"b": ("x",)}, frozenset({("d", "c")}))
    new = Routes({"a": ("y", "z")}, {}, frozenset({("e", "d")}))
    both = old.joined(new)
    assert both.dialled == {"a": ("y", "z")}
    assert both.relayed == {("d", "c"), ("e", "d")}
    assert both.without(["y", "b", "c"]) == Routes({"a": ("z",)}, {}, frozenset({("e", "d")}))
