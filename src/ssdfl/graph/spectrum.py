"""Eigenvalues of a mixing matrix, which decide how fast devices agree, and its Fiedler vector."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array, eye_array

from ssdfl.arrays import FloatArray
from ssdfl.graph.mixing import MixingMatrix
from ssdfl.lazy import LazyModule

if TYPE_CHECKING:
    import scipy.sparse.csgraph as csgraph
    import scipy.sparse.linalg as linalg
else:
    csgraph = LazyModule("scipy.sparse.csgraph")
    linalg = LazyModule("scipy.sparse.linalg")

DENSE_LIMIT = 400
_TIE = 1e-9
_FEW_LINKS = 5
_NARROW = 4  # times √N, which is about the width of devices in a plane
_SHIFT = 1 + 1e-6
_TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The ends of a mixing matrix's spectrum ``1 = λ₁ ≥ λ₂ ≥ … ≥ λ_N > −1``.

    Attributes:
        lambda_2: second largest eigenvalue; 1 if the network is disconnected, 0 for one device.
        lambda_N: smallest eigenvalue; positive if Assumption 3, ``A ≻ 0``, holds.
        fiedler: (N,) unit eigenvector of λ₂ with a fixed sign.
    """

    lambda_2: float
    lambda_N: float
    fiedler: FloatArray

    @property
    def gap(self) -> float:
        """``1 − max(|λ₂|, |λ_N|)``: the least share of disagreement that a mixing step removes."""
        if len(self.fiedler) == 1:
            return 1.0
        return 1.0 - max(abs(self.lambda_2), abs(self.lambda_N))

    @property
    def positive_definite(self) -> bool:
        """Whether ``A ≻ 0``, (ii) of Assumption 3 (`ass:adjacency_matrix`)."""
        return self.lambda_N > _TIE


def spectrum(W: MixingMatrix, dense_limit: int = DENSE_LIMIT) -> Spectrum:
    """λ₂, λ_N and the Fiedler vector of a mixing matrix: dense if small, else Lanczos.

    Examples:
        >>> from ssdfl.graph import load_network, metropolis
        >>> round(spectrum(metropolis(load_network("complete:n=5").adjacency)).lambda_2, 6)
        0.0
    """
    lambda_2, fiedler = slowest_mode(W, dense_limit)
    return Spectrum(lambda_2, smallest_eigenvalue(W, dense_limit), fiedler)


def slowest_mode(W: MixingMatrix, dense_limit: int = DENSE_LIMIT) -> tuple[float, FloatArray]:
    """λ₂ and the Fiedler vector: the disagreement that mixing removes last."""
    n = W.shape[0]
    if n == 1:
        return 0.0, np.ones(1)
    if n > dense_limit:
        return _slowest_of_many(W)
    return slowest_few(W, 0)[0]


def slowest_few(W: MixingMatrix, count: int) -> tuple[tuple[float, FloatArray], list[FloatArray]]:
    """`slowest_mode` of a small matrix, and the vectors of a few eigenvalues after λ₂.

    Examples:
        >>> from ssdfl.graph import load_network, metropolis
        >>> mode, others = slowest_few(metropolis(load_network("path:n=4").adjacency), 1)
        >>> round(mode[0], 3), [len(vector) for vector in others]
        (0.805, [4])
    """
    values, vectors = np.linalg.eigh(W.toarray())
    others = vectors.T[-3 : -3 - count : -1]
    return _second(values, vectors), [vector.copy() for vector in others]


def slowest_modes(stacked: FloatArray) -> Iterator[tuple[float, FloatArray]]:
    """λ₂ and Fiedler vectors of dense matrices (k, n, n), each of at least two devices."""
    return map(_second, *np.linalg.eigh(stacked))


def _second(values: FloatArray, vectors: FloatArray) -> tuple[float, FloatArray]:
    """The second largest eigenvalue and its vector."""
    tied = vectors[:, np.abs(values - values[-2]) < _TIE]
    return float(values[-2]), canonical(tied)


def _slowest_of_many(W: MixingMatrix) -> tuple[float, FloatArray]:
    """λ₂ and the Fiedler vector by Lanczos."""
    values, vectors = slow_space(W, 1)
    return float(values[0]), canonical(vectors)


def slow_space(W: MixingMatrix, count: int) -> tuple[FloatArray, FloatArray]:
    """Some of the largest eigenvalues below λ₁ = 1, ascending, and vectors (N, count), by Lanczos.

    Networks with few links mix slowly, and so do long and narrow ones, such as sites in a row.
    Their eigenvalues cluster near 1, where plain Lanczos hardly converges, but factorising them is
    cheap. With more links it is the other way round.
    """
    is_plain = W.nnz > _FEW_LINKS * W.shape[0] and not _is_narrow(W)
    found = _largest(W, count + 1) if is_plain else None
    values, vectors = found or _largest_inverted(W, count + 1)
    ascending = np.argsort(values)[:-1]
    return values[ascending], vectors[:, ascending]


def _is_narrow(W: MixingMatrix) -> bool:
    """Whether devices can be numbered so that links join close numbers on average."""
    n = W.shape[0]
    place = np.empty(n, dtype=np.int64)
    place[csgraph.reverse_cuthill_mckee(W, symmetric_mode=True)] = np.arange(n)
    lowest = np.minimum.reduceat(place[W.indices], W.indptr[:-1])
    return bool((place - lowest).mean() <= _NARROW * np.sqrt(n))


def _largest(W: MixingMatrix, count: int) -> tuple[FloatArray, FloatArray] | None:
    """The largest eigenvalues and their vectors, or None if Lanczos does not converge soon."""
    most = 20 * int(np.sqrt(W.shape[0]))
    # Called thousands of times: as an operator, SciPy makes no matrix of each vector.
    mixing = linalg.LinearOperator(W.shape, matvec=W.dot, dtype=np.float64)
    with suppress(linalg.ArpackNoConvergence):
        return linalg.eigsh(mixing, k=count, which="LA", v0=_start(W), maxiter=most, tol=_TOLERANCE)
    return None


def _largest_inverted(W: MixingMatrix, count: int) -> tuple[FloatArray, FloatArray]:
    """The eigenvalues closest to 1 and their vectors, by factorising the matrix."""
    n = W.shape[0]
    # Positive definite, so neither pivots nor room for them are needed.
    factors = linalg.splu(
        csc_array(_SHIFT * eye_array(n) - W),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    inverse = linalg.LinearOperator((n, n), matvec=lambda x: -factors.solve(x), dtype=np.float64)
    return linalg.eigsh(
        W, k=count, sigma=_SHIFT, which="LM", v0=_start(W), tol=_TOLERANCE, OPinv=inverse
    )


def smallest_eigenvalue(W: MixingMatrix, dense_limit: int = DENSE_LIMIT) -> float:
    """λ_N, to six digits for many devices."""
    if W.shape[0] <= dense_limit:
        return float(np.linalg.eigvalsh(W.toarray())[0])
    return float(
        linalg.eigsh(W, k=1, which="SA", v0=_start(W), tol=1e-6, return_eigenvectors=False)[0]
    )


def smallest_eigenvalues(stacked: FloatArray) -> FloatArray:
    """λ_N of dense matrices (k, n, n)."""
    found: FloatArray = np.linalg.eigvalsh(stacked)[:, 0].astype(np.float64, copy=False)
    return found


def _start(W: MixingMatrix) -> FloatArray:
    """A fixed start vector, so that Lanczos is reproducible."""
    devices: FloatArray = np.arange(W.shape[0], dtype=np.float64)
    return np.cos(devices)


def canonical(eigenspace: FloatArray) -> FloatArray:
    """One vector of an eigenspace that depends on neither the solver's basis nor its sign.

    A multiple eigenvalue has no distinguished eigenvector. So fixed vectors are projected onto its
    space, the first nonzero projection is used, and its largest entry is made positive.
    """
    multiple = eigenspace.shape[1] > 1
    vector = _first_projection(eigenspace) if multiple else eigenspace[:, 0]
    unit: FloatArray = vector / np.linalg.norm(vector)
    leader = int(np.argmax(np.abs(unit) > np.abs(unit).max() - 1e-9))
    return unit if unit[leader] > 0 else -unit


def _first_projection(eigenspace: FloatArray) -> FloatArray:
    """The first of some fixed waves that is not orthogonal to a space, projected onto it."""
    n = len(eigenspace)
    waves = (np.cos(np.pi * k * (np.arange(n) + 0.5) / n) for k in range(1, n))
    projections = (eigenspace @ (eigenspace.T @ wave) for wave in waves)
    return next((p for p in projections if np.linalg.norm(p) > 1e-6), eigenspace[:, 0])
