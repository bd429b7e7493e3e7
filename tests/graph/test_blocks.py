import numpy as np
import pytest

from ssdfl.graph import (
    ENUMERATION_LIMIT,
    MIXINGS,
    conductance,
    links_inside,
    load_network,
    make_blocks,
    num_components,
    prefix_conductance,
    slowest_mode,
    small_conductances,
    smallest_eigenvalue,
    sweep_cut,
)
from ssdfl.graph.mixing import links_within

SPECS = ("er:n=60,p=0.08,seed=3", "rgeo:n=60,radius=0.25,seed=1", "sites:sites=8,size=6,seed=0")


def groups_of(num_devices, seed):
    """Disjoint groups of sizes from 1 up, not all devices among them, in no order."""
    order = np.random.default_rng(seed).permutation(num_devices)
    return [np.sort(part) for part in np.split(order[:40], [21, 22, 24, 26, 33])]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("mixing", ["metropolis", "lazy"])
def test_blocks_are_the_groups_one_by_one(spec, mixing):
    links, weights = load_network(spec).adjacency, MIXINGS[mixing]
    groups = groups_of(links.shape[0], seed=1)
    blocks = make_blocks(links, groups, weights)
    lambda_2, fiedler = blocks.slowest
    first = blocks.sweep(fiedler)
    for number, devices in enumerate(groups):
        W = weights(links[devices][:, devices])
        place = blocks.places(number)
        assert (links_inside(links, devices) != links[devices][:, devices]).nnz == 0
        assert np.array_equal(blocks.matrix(number).toarray(), W.toarray())
        mode = slowest_mode(W)
        assert lambda_2[number] == mode[0]
        assert blocks.smallest[number] == smallest_eigenvalue(W)
        assert np.array_equal(fiedler[place], mode[1])
        if len(devices) > 1:
            assert np.array_equal(first[place], sweep_cut(W, mode[1]))
            assert blocks.parts(first)[number] == num_components(links_within(W, first[place]))


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("mixing", ["metropolis", "lazy"])
def test_cuts_of_groups_are_those_of_the_groups_one_by_one(spec, mixing):
    links, weights = load_network(spec).adjacency, MIXINGS[mixing]
    groups = groups_of(links.shape[0], seed=2)
    blocks = make_blocks(links, groups, weights)
    order = blocks.order(blocks.slowest[1])
    values = blocks.prefixes(order)
    connected = np.flatnonzero(blocks.weakest_device > 0)
    small = dict(small_conductances(blocks, connected))
    for number, devices in enumerate(groups):
        W, place = weights(links[devices][:, devices]), blocks.places(number)
        is_connected = num_components(W) == 1
        assert blocks.weakest_device[number] == is_connected * (1 - W.diagonal()).min()
        along = order[place] - place.start
        assert values[place][:-1].tolist() == prefix_conductance(W, along).tolist()
        assert values[place][-1] == np.inf
        is_small = 1 < len(devices) <= ENUMERATION_LIMIT
        assert (number in small) == (is_connected and is_small)
        if number in small:
            assert small[number] == conductance(W)


def test_modes_are_found_of_the_chosen_groups_only():
    links = load_network("path:n=6").adjacency
    blocks = make_blocks(links, np.split(np.arange(6), 2), MIXINGS["metropolis"])
    lambda_2, fiedler = blocks.modes(np.array([1]))
    assert lambda_2.tolist() == [0, blocks.slowest[0][1]]
    assert fiedler.tolist() == [1, 1, 1, *blocks.slowest[1][3:]]


@pytest.mark.parametrize("spec", SPECS)
def test_weights_are_found_from_the_links_inside_groups_in_both_directions(spec):
    links = load_network(spec).adjacency
    groups = groups_of(links.shape[0], seed=1)
    inside = make_blocks(links, groups, lambda found: found).W.toarray()
    devices, owner = np.concatenate(groups), np.repeat(np.arange(6), list(map(len, groups)))
    expected = links[devices][:, devices].toarray() * (owner[:, None] == owner)
    assert np.array_equal(inside, expected)
    assert inside[:, 0].any()


def test_only_so_many_matrices_are_decomposed_at_a_time(monkeypatch):
    monkeypatch.setattr("ssdfl.graph.blocks._STACKED", 30)
    links = load_network("ring:n=30").adjacency
    groups = np.split(np.arange(30), 10)
    blocks = make_blocks(links, groups, MIXINGS["metropolis"])
    assert [len(numbers) for numbers in blocks.of_equal_size(np.arange(10))] == [3, 3, 3, 1]
    assert np.allclose(blocks.slowest[0], 2 / 3)
