import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdfl.graph import colour_links, random_matching

graphs = st.builds(
    nx.gnp_random_graph, st.integers(2, 16), st.floats(0, 1), seed=st.integers(0, 999)
)


def ends_of(graph):
    links = np.array(sorted(tuple(sorted(link)) for link in graph.edges()), dtype=np.int64).reshape(
        -1, 2
    )
    return len(graph), links[:, 0], links[:, 1]


def is_matching(i, j):
    ends = np.concatenate([i, j])
    return len(set(ends.tolist())) == len(ends)


@settings(max_examples=150, deadline=None)
@given(graphs)
def test_colours_are_matchings_and_at_most_one_more_than_the_largest_degree(graph):
    n, i, j = ends_of(graph)
    colours = colour_links(n, i, j)
    assert all(
        is_matching(i[colours == colour], j[colours == colour]) for colour in set(colours.tolist())
    )
    assert colours.max(initial=-1) + 1 <= max(dict(graph.degree()).values()) + 1
    assert set(colours.tolist()) == set(range(colours.max(initial=-1) + 1))


@pytest.mark.parametrize("n", [5, 9, 31])
def test_complete_graphs_of_odd_size_need_as_many_colours_as_devices(n):
    assert colour_links(*ends_of(nx.complete_graph(n))).max() + 1 == n


@settings(max_examples=100, deadline=None)
@given(graphs, st.integers(0, 99))
def test_random_matchings_are_maximal(graph, seed):
    n, i, j = ends_of(graph)
    taken = random_matching(n, i, j, np.random.default_rng(seed))
    assert is_matching(i[taken], j[taken])
    busy = set(i[taken].tolist()) | set(j[taken].tolist())
    assert all(a in busy or b in busy for a, b in graph.edges())


def test_random_matchings_take_links_in_random_order():
    n, i, j = ends_of(nx.path_graph(4))
    drawn = [tuple(random_matching(n, i, j, np.random.default_rng(seed))) for seed in range(600)]
    # The middle link is taken if it comes first, which it does once in three times.
    assert drawn.count((False, True, False)) / 600 == pytest.approx(1 / 3, abs=0.06)
    assert drawn.count((True, False, True)) / 600 == pytest.approx(2 / 3, abs=0.06)
