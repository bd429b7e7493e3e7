from dataclasses import replace

import numpy as np
import pytest

from ssdfl.graph import (
    Cycle,
    Part,
    best_upgrade,
    critical_parts,
    faster,
    links_within,
    load_network,
    make_network,
)  # fmt: skip
from ssdfl.graph.critical import all_parts
from ssdfl.rng import generator


def uneven(seed, early=True):
    """A random network whose links all differ, and two clusters."""
    drawn = load_network(f"er:n=12,p=0.3,seed={seed}")
    rng = generator(seed, "costs")
    latency_s = rng.uniform(0.01, 0.2, drawn.num_links)
    network = make_network(12, drawn.links, latency_s=latency_s, compute_s=rng.uniform(0, 0.05, 12))
    inside = links_within(network.adjacency, np.arange(12) // 6)
    cycle = Cycle(network.adjacency, inside, 3, 1, compute_s=network.compute_s, sends_early=early)
    return network, cycle


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_no_single_link_saves_more_than_the_one_named(seed, early):
    network, cycle = uneven(seed, early)
    now_s = cycle.time_s(network, 1000)
    every = [
        cycle.time_s(faster(network, [Part("link", k)]), 1000) for k in range(network.num_links)
    ]
    found = best_upgrade(network, 1000, cycle)
    assert found.cycle_s == now_s
    if now_s - min(every) > 1e-3 * now_s:
        assert found.upgraded_s == min(every)
        assert len(found.parts) == 1
    helping = {Part("link", k) for k, time_s in enumerate(every) if time_s < now_s - 1e-9}
    assert helping <= set(critical_parts(network, 1000, cycle))


def test_a_slow_link_by_hand():
    # Three devices in a line that compute nothing; 1 s over one link and 10 s over the other.
    network = make_network(3, [(0, 1), (1, 2)], latency_s=[1, 10], bandwidth_Bps=1e12, compute_s=0)
    cycle = Cycle(
        network.adjacency, network.adjacency, tau_a=1, tau_r=1, compute_s=network.compute_s
    )
    found = best_upgrade(network, 1, cycle)
    assert found.parts == (Part("link", 1),)
    assert (found.cycle_s, found.upgraded_s) == pytest.approx((20, 10))


def test_ties_are_upgraded_together_and_computing_cannot_be_upgraded():
    network = make_network(4, [(0, 1), (2, 3), (1, 2)], latency_s=[9, 9, 1], compute_s=0)
    cycle = Cycle(
        network.adjacency, network.adjacency, tau_a=1, tau_r=1, compute_s=network.compute_s
    )
    found = best_upgrade(network, 1, cycle)
    slow = [Part("link", k) for k, latency_s in enumerate(network.latency_s) if latency_s == 9]
    assert sorted(found.parts) == slow
    assert found.saved_s == pytest.approx(9, rel=1e-3)
    busy = Cycle(
        network.adjacency, network.adjacency, tau_a=1, tau_r=0, compute_s=np.full(4, 100.0)
    )
    assert best_upgrade(network, 1, busy) is None


def test_an_uplink_that_messages_share_is_named_by_hand():
    # A star whose centre sends 4 messages of 100 B at 50 B/s: 8 s and 1 s of latency; leaves 1 s.
    uplink_Bps = [50, *[np.inf] * 4]
    links = [(0, leaf) for leaf in range(1, 5)]
    network = make_network(
        5, links, latency_s=1, bandwidth_Bps=1e12, compute_s=0, uplink_Bps=uplink_Bps
    )
    cycle = Cycle(
        network.adjacency, network.adjacency, tau_a=1, tau_r=1, compute_s=network.compute_s
    )
    found = best_upgrade(network, 100, cycle)
    assert found.parts == (Part("uplink", 0),)
    # Over three cycles messages from the centre leave at 0, 1 + 9, … or, faster, at 0, 1 + 5, …
    assert found.cycle_s == pytest.approx((3 * (9 + 1)) / 3)
    assert found.upgraded_s == pytest.approx((3 * (5 + 1)) / 3)
    everything = critical_parts(network, 100, cycle)
    assert everything[0] == Part("uplink", 0)
    assert all(part.kind == "link" for part in everything[1:])


def test_upgrades_with_shared_ends_are_the_best_of_all_parts():
    helps = []
    for seed in range(5):
        network, cycle = uneven(seed)
        rng = generator(seed, "ports")
        network = replace(
            network, uplink_Bps=rng.uniform(5e3, 5e4, 12), downlink_Bps=rng.uniform(5e3, 5e4, 12)
        )
        found = best_upgrade(network, 1000, cycle)
        every = [cycle.time_s(faster(network, [part]), 1000) for part in all_parts(network)]
        helps.append(found.cycle_s - min(every) > 1e-3 * found.cycle_s)
        if helps[-1]:
            assert found.upgraded_s == pytest.approx(min(every))
    assert any(helps)
