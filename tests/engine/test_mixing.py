import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from helpers import tiny_job
from ssdfl.engine import mixing, run
from ssdfl.engine.mixing import Mixing
from ssdfl.engine.threads import Threads
from ssdfl.graph import averaging, load_network, metropolis


def product(W, X, workers=1):
    out = torch.full_like(X, torch.nan)
    Mixing(W, X.dtype, X.device).into(out, X, Threads(workers))
    return out


@given(
    st.integers(1, 40),
    st.floats(0, 1),
    st.integers(0, 1000),
    st.sampled_from([torch.float32, torch.float64]),
)
@settings(max_examples=60, deadline=None)
def test_mixing_is_the_matrix_product(n, p, seed, dtype):
    W = metropolis(load_network(f"er:n={n},p={p},seed={seed}").adjacency)
    X = torch.randn(n, 5, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    assert product(W, X).numpy() == pytest.approx(W.toarray() @ X.numpy(), abs=1e-6)


@pytest.mark.parametrize("which", [[0, 1, 2], [3], [1, 4, 5, 11], [2, 0, 1], [0, 2, 1, 3]])
def test_rows_are_those_of_the_product(which):
    W = metropolis(load_network("ring:n=12").adjacency)
    X = torch.randn(12, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = Mixing(W, X.dtype, X.device).rows(X, np.array(which))
    assert found.numpy() == pytest.approx((W.toarray() @ X.numpy())[which], abs=1e-12)


def _sites_apart(sites, size):
    """Complete sites without links between them; in 64 bits, diagonals differ in the last one."""
    one = metropolis(load_network(f"complete:n={size}").adjacency).toarray()
    return csr_array(np.kron(np.eye(sites), one))


@pytest.mark.parametrize(
    "which", [range(40), range(5, 35), [39, 0, 17, 1, 18, 2], range(39, -1, -1)], ids=str
)
def test_equal_rows_are_summed_once_to_the_same_bits(which):
    W, rows = _sites_apart(4, 10), np.array(which)
    X = torch.randn(40, 7, generator=torch.Generator().manual_seed(0))
    mixed = Mixing(W, X.dtype, X.device)
    bag = mixed._bag(rows)
    assert bag.copies is not None
    assert len(bag.first) == len({row // 10 for row in which})
    one_by_one = torch.cat([mixed.rows(X, np.array([row])) for row in which])
    assert torch.equal(mixed.rows(X, rows), one_by_one)


def test_rows_that_only_look_alike_are_kept_apart():
    """Both have the same number of neighbours, and the same sum of weights times square roots."""
    starts, columns = np.array([0, 2, 4]), np.array([2, 7, 2, 7])
    weights = np.array([3.0, 0.0, 0.0, 2.0])  # 3 · √4 = 2 · √9
    assert mixing._kinds_of_rows(starts, columns, weights).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("W", "kind"),
    [
        (metropolis(load_network("er:n=18,p=0.9,seed=0").adjacency), "dense"),
        (metropolis(load_network("ring:n=50").adjacency), "sparse"),
        (averaging(12), "alike"),
        (metropolis(load_network("complete:n=12").adjacency), "alike"),
        (csr_array(np.eye(7)), "alone"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("workers", [1, 3])
def test_every_kind_of_product_in_stretches(W, kind, workers, monkeypatch):
    monkeypatch.setattr(mixing, "_NUMBERS_IN_CACHE", 1)
    monkeypatch.setattr(mixing, "_LEAST_COLUMNS", 4)
    assert Mixing(W, torch.float32, torch.device("cpu")).kind == kind
    X = torch.randn(W.shape[0], 11)
    assert product(W, X, workers).numpy() == pytest.approx(W.toarray() @ X.numpy(), abs=1e-6)


def test_parameters_shared_by_all_devices_mix_too():
    X = torch.randn(1, 9).expand(20, -1)
    assert product(metropolis(load_network("ring:n=20").adjacency), X).numpy() == pytest.approx(
        X.numpy()
    )


def test_rows_are_in_memory_of_their_own_before_they_mix(monkeypatch):
    """Torch would copy a whole matrix of equal rows whenever it mixes some of them."""
    seen, plain = [], Mixing.rows

    def watched(self, X, which):
        seen.append(X.is_contiguous())
        return plain(self, X, which)

    monkeypatch.setattr(Mixing, "rows", watched)
    next(run(tiny_job(spec="ring:n=12", model="mlp")))
    assert seen
    assert all(seen)
