import numpy as np
import pytest

from ssdfl.graph import (
    Cycle,
    best_upgrade,
    critical_links,
    faster_links,
    links_within,
    load_network,
    make_network,
)  # fmt: skip
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
    every = [cycle.time_s(faster_links(network, (k,)), 1000) for k in range(network.num_links)]
    found = best_upgrade(network, 1000, cycle)
    assert found.cycle_s == now_s
    if now_s - min(every) > 1e-3 * now_s:
        assert found.upgraded_s == min(every)
        assert len(found.links) == 1
    helping = {k for k, time_s in enumerate(every) if time_s < now_s - 1e-9}
    assert helping <= set(critical_links(network, 1000, cycle))


def test_a_slow_link_by_hand():
    # Three devices in a line that compute nothing; 1 s over one link and 10 s over the other.
    network = make_network(3, [(0, 1), (1, 2)], latency_s=[1, 10], bandwidth_Bps=1e12, compute_s=0)
    cycle = Cycle(network.adjacency, network.adjacency, tau_a=1, tau_r=1, compute_s=network.compute_s)
    found = best_upgrade(network, 1, cycle)
    assert found.links == (1,)
    assert (found.cycle_s, found.upgraded_s) == pytest.approx((20, 10))


def test_ties_are_upgraded_together_and_computing_cannot_be_upgraded():
    network = make_network(4, [(0, 1), (2, 3), (1, 2)], latency_s=[9, 9, 1], compute_s=0)
    cycle = Cycle(network.adjacency, network.adjacency, tau_a=1, tau_r=1, compute_s=network.compute_s)
    found = best_upgrade(network, 1, cycle)
    slow = [k for k, latency_s in enumerate(network.latency_s) if latency_s == 9]
    assert sorted(found.links) == slow
    assert found.saved_s == pytest.approx(9, rel=1e-3)
    busy = Cycle(network.adjacency, network.adjacency, tau_a=1, tau_r=0, compute_s=np.full(4, 100.0))
    assert best_upgrade(network, 1, busy) is None
