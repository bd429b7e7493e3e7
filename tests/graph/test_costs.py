from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

from ssdfl.graph import Clock, averaging, load_network, make_network, metropolis
from ssdfl.rng import generator


def test_max_plus_by_hand():
    network = make_network(
        3, [(0, 1), (1, 2)], latency_s=[1.0, 10.0], bandwidth_Bps=100.0, compute_s=[4, 5, 6]
    )
    clock = Clock(network, message_bytes=200)  # 2 s of transfer: links take 3 s and 12 s
    ready, sent = clock.advance(
        np.array([0.0, 1.0, 0.0]), metropolis(network.adjacency), network.compute_s
    )
    # 0: own 4, from 1: 1 + 3; 1: own 1 + 5, from 0: 3, from 2: 12; 2: own 6, from 1: 1 + 12
    assert ready.tolist() == [4.0, 12.0, 13.0]
    assert sent == 4


def test_without_mixing_devices_run_on_their_own():
    network = load_network("ring:n=4")
    ready, sent = Clock(network, 100).advance(np.zeros(4), csr_array(np.eye(4)), np.arange(4.0))
    assert ready.tolist() == [0, 1, 2, 3]
    assert sent == 0


def test_clusters_run_ahead_of_each_other():
    network = load_network("sites:sites=2,size=3")
    slow = np.where(np.arange(6) < 3, 1.0, 0.1)
    within = metropolis(csr_array(np.kron(np.eye(2), 1 - np.eye(3))))
    ready = np.zeros(6)
    for _ in range(5):
        ready, _ = Clock(network, 100).advance(ready, within, slow)
    assert ready[:3] == pytest.approx(5.0)
    assert ready[3:].max() < 1.0


def test_relays_pay_for_every_hop():
    network = make_network(3, [(0, 1), (1, 2)], latency_s=1.0, bandwidth_Bps=1e12)
    ready, sent = Clock(network, 1).advance(np.zeros(3), averaging(3), np.zeros(3))
    assert ready == pytest.approx([2.0, 1.0, 2.0])
    assert sent == 4 * 1 + 2 * 2


def test_relays_avoid_a_slow_link():
    network = make_network(
        3, [(0, 1), (1, 2), (0, 2)], latency_s=[1.0, 10.0, 1.0], bandwidth_Bps=1e12
    )
    path = make_network(
        4, [(0, 1), (1, 2), (0, 2), (2, 3)], latency_s=[1.0, 10.0, 1.0, 1.0], bandwidth_Bps=1e12
    )
    ready, _ = Clock(path, 1).advance(np.zeros(4), averaging(4), np.zeros(4))
    assert ready == pytest.approx(
        [2.0, 10.0, 10.0, 3.0]
    )  # 3 reaches 1 by 2 and 0, not over the slow 1–2
    direct, sent = Clock(network, 1).advance(np.zeros(3), averaging(3), np.zeros(3))
    assert direct == pytest.approx(
        [1.0, 10.0, 10.0]
    )  # every weight has a link, so nothing is relayed
    assert sent == 6


@pytest.mark.parametrize("spec", ["ring:n=6", "star:n=5", "er:n=20,p=0.2"])
def test_transmissions_are_two_a_link(spec):
    network = load_network(spec)
    nobody = np.zeros(network.num_devices)
    _, sent = Clock(network, 1).advance(nobody, metropolis(network.adjacency), nobody)
    assert sent == 2 * network.num_links


def shared(spec, **limits):
    """A network of 1 s of latency and no other cost than its shared uplinks and downlinks."""
    return load_network(spec + ",latency_s=1,bandwidth_Bps=1e12,compute_s=0" + "".join(
        f",{name}={value}" for name, value in limits.items()
    ))  # fmt: skip


def step_s(network, W=None, message_bytes=100):
    W = metropolis(network.adjacency) if W is None else W
    n = network.num_devices
    return Clock(network, message_bytes).advance(np.zeros(n), W, np.zeros(n))


@pytest.mark.parametrize(
    ("spec", "limits", "expected"),
    [
        # 100 B at 50 B/s take 2 s alone; a ring's device sends two, a complete network's n − 1.
        ("ring:n=6", {"uplink_Bps": 50}, [5] * 6),
        ("ring:n=6", {"downlink_Bps": 50}, [5] * 6),
        ("ring:n=6", {"uplink_Bps": 50, "downlink_Bps": 25}, [9] * 6),
        ("complete:n=5", {"uplink_Bps": 50}, [9] * 5),
        ("complete:n=5", {"uplink_Bps": 100, "downlink_Bps": 50}, [9] * 5),
        # The centre of a star sends four messages at once and receives as many; leaves one each.
        ("star:n=5", {"uplink_Bps": 50}, [3, 9, 9, 9, 9]),
        ("star:n=5", {"downlink_Bps": 50}, [9, 3, 3, 3, 3]),
        ("star:n=5", {"uplink_Bps": 50, "downlink_Bps": 25}, [17, 9, 9, 9, 9]),
    ],
)
def test_messages_share_uplinks_and_downlinks_by_hand(spec, limits, expected):
    ready_s, _ = step_s(shared(spec, **limits))
    assert ready_s == pytest.approx(expected)


def test_a_slower_link_hides_its_ends():
    network = make_network(
        3, [(0, 1), (0, 2)], latency_s=0, bandwidth_Bps=[10, 100], uplink_Bps=[50, 50, 50]
    )
    # Device 0 sends two messages of 100 B at 50 B/s, 4 s; to device 1 the link's 10 s hide that.
    assert step_s(network)[0] == pytest.approx([10, 10, 4])


def test_only_messages_that_are_sent_share():
    network = shared("complete:n=6", uplink_Bps=50)
    pairs = metropolis(csr_array(np.kron(np.eye(3), 1 - np.eye(2))))
    assert step_s(network, pairs)[0] == pytest.approx([3] * 6)


def test_relays_load_the_devices_on_the_way():
    network = make_network(
        3,
        [(0, 1), (1, 2)],
        latency_s=1,
        bandwidth_Bps=1e12,
        uplink_Bps=50,
        downlink_Bps=[10, 20, 40],
    )
    # Ends send 2 and receive 2; the middle sends its own 2 and passes 2 on, and receives 4. Hops of
    # 100 B: end → middle max(2·100/50, 4·100/20) = 20; middle → 0 max(4·100/50, 2·100/10) = 20; → 2
    # max(8, 5) = 8.
    ready_s, sent = step_s(network, averaging(3))
    assert ready_s == pytest.approx([21 + 21, 21, 21 + 9])
    assert sent == 4 * 1 + 2 * 2


def by_paths(network, W, message_bytes):
    """When each device has all messages, by explicit paths of an independent library."""
    graph = network.to_networkx()
    for _, _, data in graph.edges(data=True):
        data["s"] = data["latency_s"] + message_bytes / data["bandwidth_Bps"]
    pairs = [(i, j) for i in graph for j in graph if i != j and W[j, i] != 0]
    paths = {
        (i, j): [i, j] if graph.has_edge(i, j) else nx.dijkstra_path(graph, i, j, weight="s")
        for i, j in pairs
    }
    hops = [hop for path in paths.values() for hop in pairwise(path)]
    sent, received = ([sum(hop[end] == k for hop in hops) for k in graph] for end in (0, 1))

    def hop_s(i, j):
        link = graph.edges[i, j]
        ends = sent[i] / network.uplink_Bps[i], received[j] / network.downlink_Bps[j]
        return link["latency_s"] + message_bytes * max(1 / link["bandwidth_Bps"], *ends)

    ready_s = np.zeros(network.num_devices)
    for (_, j), path in paths.items():
        ready_s[j] = max(ready_s[j], sum(hop_s(a, b) for a, b in pairwise(path)))
    return ready_s


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("everyone", [False, True])
def test_shared_time_is_that_of_explicit_paths(seed, everyone):
    drawn = load_network(f"er:n=11,p=0.2,seed={seed}")
    rng = generator(seed, "ports")
    network = replace(
        drawn,
        latency_s=rng.uniform(0.1, 1, drawn.num_links),
        bandwidth_Bps=rng.uniform(100, 1000, drawn.num_links),
        uplink_Bps=np.where(rng.random(11) < 0.3, np.inf, rng.uniform(100, 3000, 11)),
        downlink_Bps=np.where(rng.random(11) < 0.3, np.inf, rng.uniform(100, 3000, 11)),
    )
    W = averaging(11) if everyone else metropolis(network.adjacency)
    assert step_s(network, W)[0] == pytest.approx(by_paths(network, W, 100))


def test_ends_as_fast_as_all_their_links_change_nothing():
    network = load_network("er:n=20,p=0.3,seed=3")
    degree = np.bincount(network.links.ravel())
    ample = replace(network, uplink_Bps=degree * 12.5e6, downlink_Bps=degree * 12.5e6)
    assert not network.is_shared
    assert ample.is_shared
    assert step_s(ample)[0] == pytest.approx(step_s(network)[0])


def test_a_cycle_of_a_rule_that_sends_late_is_computing_and_then_messages():
    network = make_network(2, [(0, 1)], latency_s=2, bandwidth_Bps=1e12, compute_s=3)
    A = metropolis(network.adjacency)
    early, late = (Clock(network, 1, sends_early=early) for early in (True, False))
    assert early.cycle_cost(A, A, 2, 1, network.compute_s).time_s == pytest.approx(2 * 3 + 2)
    assert late.cycle_cost(A, A, 2, 1, network.compute_s).time_s == pytest.approx(2 * (3 + 2) + 2)
