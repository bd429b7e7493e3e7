"""Closed-form spectra of Metropolis matrices, and dense against Lanczos."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from ssdfl.graph import links_within, load_network, metropolis, spectrum


def spectrum_of(spec):
    return spectrum(metropolis(load_network(spec).adjacency))


@pytest.mark.parametrize("n", [3, 4, 5, 12, 501])
def test_ring(n):
    # Weights 1/3 on both neighbours: eigenvalues 1/3 + 2/3 cos(2πk/n).
    ends = spectrum_of(f"ring:n={n}")
    eigenvalues = 1 / 3 + 2 / 3 * np.cos(2 * np.pi * np.arange(n) / n)
    assert ends.lambda_2 == pytest.approx(np.sort(eigenvalues)[-2], abs=1e-8)
    assert ends.lambda_N == pytest.approx(eigenvalues.min(), abs=1e-6)


@pytest.mark.parametrize("n", [2, 5, 30])
def test_complete(n):
    ends = spectrum_of(f"complete:n={n}")
    assert ends.lambda_2 == pytest.approx(0, abs=1e-9)
    assert ends.gap == pytest.approx(1)


@pytest.mark.parametrize("n", [3, 8, 401])
def test_star(n):
    # Weights 1/n: the leaves keep 1 − 1/n, which is λ₂; the hub's eigenvalue is 0.
    ends = spectrum_of(f"star:n={n}")
    assert ends.lambda_2 == pytest.approx(1 - 1 / n)
    assert ends.lambda_N == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("n", [3, 6, 11])
def test_path(n):
    # I − W is a third of the path's Laplacian, whose eigenvalues are 2 − 2 cos(πk/n).
    ends = spectrum_of(f"path:n={n}")
    assert ends.lambda_2 == pytest.approx(1 - (2 - 2 * np.cos(np.pi / n)) / 3)


def test_one_device_and_a_disconnected_network():
    assert spectrum(csr_array(np.eye(1))).lambda_2 == 0
    inside = links_within(load_network("barbell:size=3").adjacency, np.array([0, 0, 0, 1, 1, 1]))
    assert spectrum(metropolis(inside)).lambda_2 == pytest.approx(1)


@pytest.mark.parametrize(
    "spec", ["er:n=60,p=0.1", "barbell:size=20", "sites:sites=2,size=20,links=3", "path:n=90"]
)
def test_lanczos_agrees_with_dense(spec):
    W = metropolis(load_network(spec).adjacency)
    dense = spectrum(W)
    lanczos = spectrum(W, dense_limit=0)
    assert lanczos.lambda_2 == pytest.approx(dense.lambda_2, abs=1e-8)
    assert lanczos.lambda_N == pytest.approx(dense.lambda_N, abs=1e-6)
    assert lanczos.fiedler == pytest.approx(dense.fiedler, abs=1e-5)


@pytest.mark.parametrize(
    "spec", ["ring:n=8", "complete:n=6", "torus:rows=3,cols=3", "barbell:size=4"]
)
def test_fiedler_vector_does_not_depend_on_the_solver(spec, monkeypatch):
    W = metropolis(load_network(spec).adjacency)
    usual = spectrum(W).fiedler
    assert W @ usual == pytest.approx(spectrum(W).lambda_2 * usual, abs=1e-9)
    assert usual.sum() == pytest.approx(0, abs=1e-9)
    eigh = np.linalg.eigh

    def turned(matrix):
        """Another basis of every eigenspace, as another library might give."""
        values, vectors = eigh(matrix)
        for value in np.unique(np.round(values, 9)):
            tied = np.abs(values - value) < 1e-8
            k = tied.sum()
            rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((k, k)))[0]
            vectors[:, tied] = vectors[:, tied] @ rotation
        return values, vectors

    monkeypatch.setattr(np.linalg, "eigh", turned)
    assert spectrum(W).fiedler == pytest.approx(usual, abs=1e-7)


def test_lanczos_converges_where_sites_stand_in_a_long_row():
    # Plain Lanczos stops early here; a row of cliques has λ₂ close to 1, but is narrow.
    W = metropolis(load_network("cliques:cliques=60,size=7").adjacency)
    exact = np.linalg.eigvalsh(W.toarray())[-2]
    assert W.nnz > 5 * W.shape[0]
    assert spectrum(W).lambda_2 == pytest.approx(exact, abs=1e-10)
