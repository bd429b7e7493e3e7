"""Mixing matrices: symmetric, doubly stochastic, zero where there is no link.

A weight rule takes a 0/1 adjacency matrix, connected or not. For the links inside clusters it
returns the block-diagonal Ã of the intra-cluster regime, for all links the A of the inter-cluster
regime.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array

from ssdfl.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from ssdfl.errors import InputError, require
from ssdfl.graph.components import component_labels

FASTEST_LIMIT = 300

MixingMatrix: TypeAlias = SparseMatrix
Weights = Callable[[SparseMatrix], MixingMatrix]


def metropolis(adjacency: SparseMatrix) -> MixingMatrix:
    """Metropolis–Hastings weights: ``1 / (1 + max(d_i, d_j))`` on links, the rest on the diagonal.

    The paper uses them in its experiments. They are not always positive definite: two linked
    devices have eigenvalues 1 and 0.

    Examples:
        >>> metropolis(csr_array([[0, 1], [1, 0]])).toarray().tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    links = _without_loops(_sorted(adjacency))
    row, column = places_of(links)
    degree = np.diff(links.indptr)
    return _with_rest(links, 1.0 / (1 + np.maximum(degree[row], degree[column])))


def lazy(adjacency: SparseMatrix) -> MixingMatrix:
    """``(I + A) / 2`` of the Metropolis matrix: slower, but always positive definite.

    So it always satisfies Assumption 3 (`ass:adjacency_matrix`), ``I ⪰ A ≻ 0``.

    Examples:
        >>> lazy(csr_array([[0, 1], [1, 0]])).toarray().tolist()
        [[0.75, 0.25], [0.25, 0.75]]
    """
    identity: SparseMatrix = csr_array(eye_array(adjacency.shape[0]))
    return 0.5 * (identity + metropolis(adjacency))


def fastest(adjacency: SparseMatrix) -> MixingMatrix:
    """Symmetric doubly stochastic weights with the largest spectral gap, per connected part.

    The fastest-mixing Markov chain of Boyd, Diaconis and Xiao: minimise the spectral norm of
    ``W − 11ᵀ/n`` over non-negative link weights, a semidefinite programme. Needs ``ssdfl[fastest]``
    and takes at most 300 links in a part.
    """
    parts = component_labels(adjacency)
    i, j, _ = links_of(adjacency)
    weights = np.zeros(len(i))
    for part in np.unique(parts[i]):
        inside = parts[i] == part
        weights[inside] = _fastest_link_weights(i[inside], j[inside])
    return on_links(adjacency.shape[0], i, j, weights)


def _fastest_link_weights(rows: IntArray, columns: IntArray) -> FloatArray:
    if len(rows) > FASTEST_LIMIT:
        expected = f"at most {FASTEST_LIMIT} links in a connected part"
        raise InputError("links for fastest mixing", len(rows), expected, "Use metropolis or lazy.")
    cp = require("cvxpy", "fastest")
    devices, place = np.unique(np.concatenate([rows, columns]), return_inverse=True)
    n, m = len(devices), len(rows)
    B = np.zeros((n, m))
    B[place[:m], np.arange(m)], B[place[m:], np.arange(m)] = 1, -1
    w = cp.Variable(m, nonneg=True)
    W = np.eye(n) - B @ cp.diag(w) @ B.T
    problem = cp.Problem(
        cp.Minimize(cp.sigma_max(W - np.full((n, n), 1 / n))), [np.abs(B) @ w <= 1]
    )
    with warnings.catch_warnings():
        # A solution short of full accuracy is made feasible below, so it is still valid.
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL)
    if w.value is None:
        raise InputError(
            "fastest mixing", problem.status, "a solved programme", "Use metropolis or lazy."
        )
    weights: FloatArray = np.where(w.value > 1e-6, w.value, 0)
    return weights / max(1.0, float((np.abs(B) @ weights).max()))


def averaging(num_devices: int) -> MixingMatrix:
    """``11ᵀ / N``: every device gets the mean of all; sparse networks need many steps for that."""
    return csr_array(np.full((num_devices, num_devices), 1 / num_devices))


def averaging_within(labels: IntArray) -> MixingMatrix:
    """Every device gets the mean of the devices with its label: ``11ᵀ / n_s`` in blocks.

    Examples:
        >>> averaging_within(np.array([0, 1, 0])).toarray().tolist()
        [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]
    """
    members = csr_array((np.ones(len(labels)), (np.arange(len(labels)), labels)))
    shares = csr_array(members.multiply(1 / np.bincount(labels)))
    return csr_array(shares @ members.T)


def links_within(adjacency: SparseMatrix, labels: IntArray | BoolArray) -> SparseMatrix:
    """The links whose two devices have the same label, such as those inside clusters.

    Examples:
        >>> path = csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
        >>> links_within(path, np.array([0, 0, 1])).toarray().tolist()
        [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    """
    row = np.repeat(np.arange(adjacency.shape[0]), np.diff(adjacency.indptr))
    inside = labels[row] == labels[adjacency.indices]
    ends = np.concatenate([[0], np.cumsum(inside)])[adjacency.indptr]
    return csr_array(
        (adjacency.data[inside], adjacency.indices[inside], ends), shape=adjacency.shape
    )


def scaled(W: MixingMatrix, links: SparseMatrix) -> MixingMatrix:
    """W with each link's weight scaled by a value in [0, 1]; the rest goes to the diagonal.

    Examples:
        >>> half = metropolis(csr_array([[0, 1], [1, 0]]))
        >>> scaled(half, csr_array([[0, 0.5], [0.5, 0]])).toarray().tolist()
        [[0.75, 0.25], [0.25, 0.75]]
    """
    i, j, share = links_of(csr_array(W.multiply(links)))
    return on_links(W.shape[0], i, j, share)


def without_links(W: MixingMatrix, gone: Callable[[IntArray, IntArray], BoolArray]) -> MixingMatrix:
    """Remove links, and add their weights to the diagonal entries of both ends.

    The result is symmetric and doubly stochastic. ``gone(i, j)`` gets the links of W as two sorted
    arrays with ``i < j``, and returns which of them are lost.

    Examples:
        >>> half = metropolis(csr_array([[0, 1], [1, 0]]))
        >>> without_links(half, lambda i, j: np.array([True])).toarray().tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    i, j, weight = links_of(W)
    kept = ~gone(i, j)
    return on_links(W.shape[0], i[kept], j[kept], weight[kept])


def links_of(matrix: SparseMatrix) -> tuple[IntArray, IntArray, FloatArray]:
    """The links (i, j), i < j, of a symmetric matrix and their values, sorted by i and j.

    Examples:
        >>> links_of(csr_array([[0, 2], [2, 0]]))[2].tolist()
        [2]
    """
    row, column = places_of(matrix)
    above = np.flatnonzero(row < column)
    if not matrix.has_sorted_indices:
        above = above[np.lexsort((column[above], row[above]))]
    return row[above], column[above].astype(np.int64), matrix.data[above]


def places_of(matrix: SparseMatrix) -> tuple[IntArray, NDArray[np.integer[Any]]]:
    """Rows and columns of a matrix's entries in the order of its data; small ones have many calls.

    Examples:
        >>> [place.tolist() for place in places_of(csr_array([[0, 2], [3, 4]]))]
        [[0, 1, 1], [1, 0, 1]]
    """
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices


def on_links(n: int, i: IntArray, j: IntArray, weight: FloatArray) -> MixingMatrix:
    """The symmetric matrix with these link weights, and a diagonal that makes rows sum to 1.

    Examples:
        >>> on_links(3, np.array([0]), np.array([1]), np.array([0.25])).toarray().tolist()
        [[0.75, 0.25, 0.0], [0.25, 0.75, 0.0], [0.0, 0.0, 1.0]]
    """
    rows, columns = np.concatenate([i, j]), np.concatenate([j, i])
    weights = np.concatenate([weight, weight])
    links = _sorted(csr_array((weights, (rows, columns)), shape=(n, n)))
    return _with_rest(links, links.data)


def _sorted(links: SparseMatrix) -> SparseMatrix:
    """The same matrix with columns in order."""
    return links if links.has_sorted_indices else links.sorted_indices()


def _without_loops(links: SparseMatrix) -> SparseMatrix:
    """The same matrix without stored entries on its diagonal."""
    row, column = places_of(links)
    loops = row == column
    if not loops.any():
        return links
    ends = links.indptr - np.concatenate([[0], np.cumsum(loops)])[links.indptr]
    return csr_array((links.data[~loops], column[~loops], ends), shape=links.shape)


def _with_rest(links: SparseMatrix, weight: FloatArray) -> MixingMatrix:
    """Symmetric links with these weights, and a diagonal that makes rows sum to 1.

    Args:
        links: without a diagonal, columns in order.
        weight: of each entry.
    """
    n = links.shape[0]
    row, column = places_of(links)
    above = column > row
    below = ~above
    kept = 1.0 - np.bincount(row[above], weight[above], minlength=n)
    kept -= np.bincount(row[below], weight[below], minlength=n)
    ends = links.indptr + np.arange(n + 1)
    place = np.arange(len(row)) + row + above
    diagonal = ends[:-1] + np.bincount(row[below], minlength=n)
    columns, data = np.empty(len(row) + n, dtype=np.int64), np.empty(len(row) + n)
    columns[place], data[place] = column, weight
    columns[diagonal], data[diagonal] = np.arange(n), kept
    W = csr_array((data, columns, ends), shape=(n, n))
    W.eliminate_zeros()
    return W


def check_mixing(
    W: MixingMatrix, adjacency: SparseMatrix | None = None, tolerance: float = 1e-9
) -> None:
    """Refuse a matrix that is not symmetric, doubly stochastic and supported on the links.

    These are (i) and (iii) of Assumption 3 (`ass:adjacency_matrix`).

    Raises:
        InputError: a property fails; the error says which one, and where.

    Examples:
        >>> check_mixing(metropolis(csr_array([[0, 1], [1, 0]])))
    """
    remedy = "Use metropolis, lazy or fastest, or correct your own weights."
    if W.shape[0] != W.shape[1]:
        raise InputError("mixing matrix", W.shape, "a square matrix", remedy)
    asymmetry = float(np.abs((W - W.T).data).max(initial=0.0))
    if asymmetry > tolerance:
        raise InputError("mixing matrix: largest |W − Wᵀ|", asymmetry, "0", remedy)
    smallest = float(W.data.min(initial=0.0))
    if smallest < -tolerance:
        raise InputError("mixing matrix: smallest weight", smallest, "at least 0", remedy)
    sums: FloatArray = W.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    if abs(sums[worst] - 1) > tolerance:
        raise InputError(f"mixing matrix: sum of row {worst}", float(sums[worst]), "1", remedy)
    stray = None if adjacency is None else _stray_weight(W, adjacency, tolerance)
    if stray is not None:
        raise InputError("mixing matrix: weight between", stray, "weights on links only", remedy)


def _stray_weight(
    W: MixingMatrix, adjacency: SparseMatrix, tolerance: float
) -> tuple[int, int] | None:
    """The first pair of devices that have a weight but no link."""
    i, j, weight = links_of(W - W.multiply(adjacency.astype(bool)))
    pairs = np.flatnonzero(np.abs(weight) > tolerance)
    return (int(i[pairs[0]]), int(j[pairs[0]])) if len(pairs) else None


MIXINGS: dict[str, Weights] = {"metropolis": metropolis, "lazy": lazy, "fastest": fastest}
