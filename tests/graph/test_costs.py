import numpy as np
import pytest
from scipy.sparse import csr_array

from ssdfl.graph import Clock, averaging, load_network, make_network, metropolis


def test_max_plus_by_hand():
    network = make_network(
        3, [(0, 1), (1, 2)], latency_s=[1.0, 10.0], bandwidth_Bps=100.0, compute_s=[4, 5, 6]
    )
    clock = Clock(network, message_bytes=200)  # 2 s of transfer: links take 3 s and 12 s
    ready, sent = clock.advance(np.array([0.0, 1.0, 0.0]), metropolis(network.adjacency), network.compute_s)
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
    network = make_network(3, [(0, 1), (1, 2), (0, 2)], latency_s=[1.0, 10.0, 1.0], bandwidth_Bps=1e12)
    path = make_network(
        4, [(0, 1), (1, 2), (0, 2), (2, 3)], latency_s=[1.0, 10.0, 1.0, 1.0], bandwidth_Bps=1e12
    )
    ready, _ = Clock(path, 1).advance(np.zeros(4), averaging(4), np.zeros(4))
    assert ready == pytest.approx([2.0, 10.0, 10.0, 3.0])  # 3 reaches 1 by 2 and 0, not over the slow 1–2
    direct, sent = Clock(network, 1).advance(np.zeros(3), averaging(3), np.zeros(3))
    assert direct == pytest.approx([1.0, 10.0, 10.0])  # every weight has a link, so nothing is relayed
    assert sent == 6


@pytest.mark.parametrize("spec", ["ring:n=6", "star:n=5", "er:n=20,p=0.2"])
def test_transmissions_are_two_a_link(spec):
    network = load_network(spec)
    nobody = np.zeros(network.num_devices)
    _, sent = Clock(network, 1).advance(nobody, metropolis(network.adjacency), nobody)
    assert sent == 2 * network.num_links
