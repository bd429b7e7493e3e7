"""Connected parts, by our own search and by SciPy."""

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array, tril, triu
from scipy.sparse.csgraph import connected_components

from ssdfl.graph import component_labels, from_networkx, num_components


@pytest.mark.parametrize("num_devices", [1, 2, 60, 400, 401])
@pytest.mark.parametrize("links_each", [0.0, 0.5, 1.0, 3.0])
def test_parts_are_numbered_by_their_first_device(num_devices, links_each):
    graph = nx.gnp_random_graph(num_devices, links_each / num_devices, seed=num_devices)
    adjacency = from_networkx(graph).adjacency
    number, labels = connected_components(adjacency, directed=False)
    assert component_labels(adjacency).tolist() == labels.tolist()
    assert component_labels(triu(adjacency).tocsr()).tolist() == labels.tolist()
    assert component_labels(tril(adjacency).tocsr()).tolist() == labels.tolist()
    assert num_components(adjacency) == number
    _, first = np.unique(labels, return_index=True)
    assert (np.diff(first) > 0).all()


def test_no_devices_have_no_parts():
    assert num_components(csr_array((0, 0))) == 0
