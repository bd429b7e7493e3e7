import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from helpers import TOPOLOGY_SPECS
from ssdfl.errors import InputError
from ssdfl.graph import (
    MIXINGS,
    averaging,
    check_mixing,
    fastest,
    from_networkx,
    lazy,
    links_within,
    load_network,
    metropolis,
    spectrum,
    without_links,
)

random_graphs = st.builds(
    lambda n, p, seed: from_networkx(nx.gnp_random_graph(n, p, seed=seed)),
    st.integers(1, 14),
    st.floats(0, 1),
    st.integers(0, 10**6),
)


@pytest.mark.parametrize("mixing", MIXINGS)
@pytest.mark.parametrize("spec", TOPOLOGY_SPECS)
def test_every_rule_on_every_topology(spec, mixing):
    network = load_network(spec)
    W = MIXINGS[mixing](network.adjacency)
    check_mixing(W, network.adjacency)
    assert spectrum(W).lambda_2 < 1 - 1e-6


@given(random_graphs)
@settings(max_examples=150, deadline=None)
def test_metropolis_and_lazy_on_random_graphs(network):
    for rule in (metropolis, lazy):
        check_mixing(rule(network.adjacency), network.adjacency)
    assert np.linalg.eigvalsh(lazy(network.adjacency).toarray()).min() > 0


def test_metropolis_by_hand():
    W = metropolis(load_network("star:n=3").adjacency).toarray()
    third = 1 / 3
    assert (
        pytest.approx(
            np.array([[third, third, third], [third, 2 * third, 0], [third, 0, 2 * third]])
        )
        == W
    )


def test_metropolis_ignores_stored_loops_and_the_order_of_columns():
    path = load_network("path:n=3").adjacency
    data, columns = np.ones(7), np.array([1, 0, 2, 1, 0, 1, 2])
    shuffled = csr_array((data, columns, np.array([0, 2, 5, 7])), shape=(3, 3))
    assert np.array_equal(metropolis(shuffled).toarray(), metropolis(path).toarray())


def test_metropolis_of_two_devices_is_not_positive_definite():
    assert not spectrum(metropolis(load_network("path:n=2").adjacency)).positive_definite
    assert spectrum(lazy(load_network("path:n=2").adjacency)).positive_definite


@pytest.mark.parametrize("spec", ["path:n=5", "star:n=6", "barbell:size=4", "er:n=12,p=0.3"])
def test_fastest_beats_metropolis(spec):
    adjacency = load_network(spec).adjacency
    assert spectrum(fastest(adjacency)).gap > spectrum(metropolis(adjacency)).gap


def test_fastest_on_a_star_has_the_known_gap():
    # The optimal weight of a star's links is 1 / (n − 1), which gives λ₂ = 1 − 1 / (n − 1).
    assert spectrum(fastest(load_network("star:n=6").adjacency)).gap == pytest.approx(
        1 / 5, abs=1e-5
    )


def test_fastest_refuses_what_would_take_hours():
    with pytest.raises(InputError, match="links for fastest mixing = 435: expected at most 300"):
        fastest(load_network("complete:n=30").adjacency)


def test_fastest_treats_parts_on_their_own():
    network = load_network("barbell:size=3")
    inside = links_within(network.adjacency, np.array([0, 0, 0, 1, 1, 1]))
    W = fastest(inside).toarray()
    assert pytest.approx(np.kron(np.eye(2), np.full((3, 3), 1 / 3)), abs=1e-5) == W


def test_weights_within_clusters_are_block_diagonal():
    network = load_network("barbell:size=3")
    labels = np.array([0, 0, 0, 1, 1, 1])
    W = metropolis(links_within(network.adjacency, labels)).toarray()
    assert np.array_equal(W != 0, labels[:, None] == labels[None])
    assert W[0] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0, 0, 0])


@given(random_graphs, st.integers(0, 100))
@settings(max_examples=50, deadline=None)
def test_lost_links_give_their_weight_back(network, seed):
    W = metropolis(network.adjacency)
    rng = np.random.default_rng(seed)
    lost = []

    def gone(i, j):
        mask = rng.random(len(i)) < 0.5
        lost.extend(zip(i[mask], j[mask], strict=True))
        return mask

    left = without_links(W, gone)
    check_mixing(left, network.adjacency)
    for i, j in lost:
        assert left[i, j] == left[j, i] == 0
    kept = [(i, j) for i, j in network.links.tolist() if (i, j) not in lost]
    for i, j in kept:
        assert left[i, j] == W[i, j]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1, 0, 0]], "a square matrix"),
        ([[0.5, 0.5], [0.4, 0.6]], r"largest \|W − Wᵀ\|"),
        ([[0.5, 0.4], [0.4, 0.5]], "sum of row 0 = 0.9"),
        ([[1.5, -0.5], [-0.5, 1.5]], "smallest weight = -0.5"),
    ],
)
def test_check_mixing_refuses(matrix, message):
    with pytest.raises(InputError, match=message):
        check_mixing(csr_array(np.array(matrix)))


def test_check_mixing_refuses_weights_off_links():
    with pytest.raises(InputError, match=r"weight between = \(0, 2\)"):
        check_mixing(averaging(3), load_network("path:n=3").adjacency)
