"""Slowest modes of clusters that shrink by a few devices at a time."""

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.graph import MixingMatrix, NestedModes, metropolis, nested_modes, slowest_mode, sweep_cut

_CORE, _HANGING = 600, 8


def _network_with_hanging_paths() -> csr_array:
    """A random network, and paths that hang on by one link: of 3 to 10 devices."""
    graph = nx.fast_gnp_random_graph(_CORE, 0.02, seed=1)
    for number in range(_HANGING):
        nx.add_path(graph, [60 * number, *range(len(graph), len(graph) + 3 + number)])
    assert nx.is_connected(graph)
    return csr_array(nx.to_scipy_sparse_array(graph, nodelist=range(len(graph)), dtype=float))


_LINKS = _network_with_hanging_paths()
_EVERYONE = np.arange(_LINKS.shape[0])


def _mixing(devices: IntArray) -> MixingMatrix:
    return metropolis(csr_array(_LINKS[devices][:, devices]))


def _larger_side(devices: IntArray, fiedler: FloatArray) -> IntArray:
    first = sweep_cut(_mixing(devices), fiedler)
    return devices[first] if 2 * first.sum() > len(devices) else devices[~first]


def test_what_remains_after_small_cuts_mixes_as_computed_anew() -> None:
    modes, devices = NestedModes(len(_EVERYONE)), _EVERYONE
    for _ in range(_HANGING):
        W = _mixing(devices)
        lambda_2, fiedler = modes(W, devices)
        exact, _ = slowest_mode(W)
        assert np.linalg.norm(W @ fiedler - lambda_2 * fiedler) <= 0.01 * (1 - lambda_2)
        assert lambda_2 == pytest.approx(exact, abs=0.01 * (1 - exact))
        devices = _larger_side(devices, fiedler)
    np.testing.assert_array_equal(devices, np.arange(_CORE))


def test_small_cuts_need_lanczos_only_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    searched, slow_space = [], nested_modes.slow_space

    def counted(W: MixingMatrix, count: int) -> tuple[FloatArray, FloatArray]:
        searched.append(W.shape[0])
        return slow_space(W, count)

    monkeypatch.setattr(nested_modes, "slow_space", counted)
    modes, devices = NestedModes(len(_EVERYONE)), _EVERYONE
    for _ in range(_HANGING):
        devices = _larger_side(devices, modes(_mixing(devices), devices)[1])
    assert searched[0] == len(_EVERYONE)
    assert len(searched) <= _HANGING / 2


def test_half_a_cluster_is_computed_anew() -> None:
    modes, half = NestedModes(len(_EVERYONE)), np.arange(_CORE - 100)
    modes(_mixing(_EVERYONE), _EVERYONE)
    lambda_2, fiedler = modes(_mixing(half), half)
    exact, expected = slowest_mode(_mixing(half))
    assert lambda_2 == pytest.approx(exact, abs=1e-6)
    assert abs(fiedler @ expected) == pytest.approx(1, abs=1e-3)


def test_small_clusters_have_their_exact_mode() -> None:
    few = np.arange(300)
    lambda_2, fiedler = NestedModes(len(_EVERYONE))(_mixing(few), few)
    exact, expected = slowest_mode(_mixing(few))
    assert lambda_2 == exact
    np.testing.assert_array_equal(fiedler, expected)
