import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdfl.engine.local import DENSE_SHARE, mix
from ssdfl.graph import load_network, metropolis


@given(st.integers(1, 40), st.floats(0, 1), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_mixing_is_the_matrix_product(n, p, seed):
    W = metropolis(load_network(f"er:n={n},p={p},seed={seed}").adjacency)
    X = torch.randn(n, 5, generator=torch.Generator().manual_seed(seed))
    assert mix(W, X).numpy() == pytest.approx(W.toarray() @ X.numpy(), abs=1e-6)
    assert mix(W, X).dtype == X.dtype


@pytest.mark.parametrize(("spec", "dense"), [("complete:n=10", True), ("ring:n=50", False)])
def test_both_products(spec, dense):
    W = metropolis(load_network(spec).adjacency)
    assert (W.nnz > DENSE_SHARE * W.shape[0] ** 2) is dense
    X = torch.randn(W.shape[0], 3)
    assert mix(W, X).numpy() == pytest.approx(W.toarray() @ X.numpy(), abs=1e-6)
