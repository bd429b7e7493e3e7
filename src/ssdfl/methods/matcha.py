"""MATCHA's two optimisations: the probability of each matching, and the weight of its links.

Both work on one connected part of a network, whose Laplacian is split into matchings: L = Σ_j L_j.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ssdfl.arrays import FloatArray, IntArray, SparseMatrix
from ssdfl.errors import InputError, check_range
from ssdfl.graph import colour_links, component_labels, links_of
from ssdfl.lazy import LazyModule

if TYPE_CHECKING:
    import scipy.optimize as optimize
else:
    optimize = LazyModule("scipy.optimize")

LINK_LIMIT = 20_000
_ITERATIONS = 60
_TOLERANCE = 1e-3
_CUTS_AT_ONCE = 6


@dataclass(frozen=True, eq=False)
class Matchings:
    """A network's links as MATCHA uses them.

    Attributes:
        i, j: (L,) the links.
        matching: (L,) the matching of each link.
        weight: (L,) α of each link while it is in use; it is the same in a connected part.
        probability: (M,) the probability that each matching is used in a step.
    """

    i: IntArray
    j: IntArray
    matching: IntArray
    weight: FloatArray
    probability: FloatArray


def plan_matchings(adjacency: SparseMatrix, budget: float) -> Matchings:
    """Split links into matchings with probabilities and weights, per connected part.

    Args:
        budget: the mean share of the matchings used in a step, above 0 and at most 1.
    """
    if not 0 < budget <= 1:
        raise InputError("method matcha: budget", budget, "a number above 0, at most 1", "Try 0.5.")
    i, j, _ = links_of(adjacency)
    matching, weight = np.zeros(len(i), dtype=np.int64), np.zeros(len(i))
    probabilities = [np.zeros(0)]
    part_of_link = component_labels(adjacency)[i]
    for number in np.unique(part_of_link):
        here = part_of_link == number
        part = _part(i[here], j[here])
        found = activation_probabilities(part, budget)
        matching[here] = part.matching + sum(map(len, probabilities))
        weight[here] = mixing_weight(part, found)
        probabilities.append(found)
    return Matchings(i, j, matching, weight, np.concatenate(probabilities))


def _part(i: IntArray, j: IntArray) -> _Part:
    """A connected part, from its links."""
    check_range("links for matcha", len(i), 0, LINK_LIMIT, "Use gossip, which needs no solver.")
    devices, place = np.unique(np.concatenate([i, j]), return_inverse=True)
    i_here, j_here = place[: len(i)], place[len(i) :]
    return _Part(len(devices), i_here, j_here, colour_links(len(devices), i_here, j_here))


@dataclass(frozen=True, eq=False)
class _Part:
    num_devices: int
    i: IntArray
    j: IntArray
    matching: IntArray

    @property
    def num_matchings(self) -> int:
        return int(self.matching.max(initial=-1)) + 1

    @property
    def largest_degree(self) -> int:
        return int(np.bincount(np.concatenate([self.i, self.j])).max())

    def laplacian(self, of_matching: FloatArray) -> FloatArray:
        """Σ_j c_j L_j for numbers c_j."""
        L = np.zeros((self.num_devices, self.num_devices))
        value = of_matching[self.matching]
        L[self.i, self.j] = L[self.j, self.i] = -value
        np.fill_diagonal(L, -L.sum(axis=1))
        return L

    def stretched(self, vectors: FloatArray) -> FloatArray:
        """(k, M) vᵀ L_j v of the columns v of (N, k) vectors."""
        squares = (vectors[self.i] - vectors[self.j]) ** 2
        gains = np.zeros((self.num_matchings, vectors.shape[1]))
        np.add.at(gains, self.matching, squares)
        return gains.T


def activation_probabilities(part: _Part, budget: float) -> FloatArray:
    """(M,) the probabilities that connect the expected network best, eq. (4) of the paper.

    Maximises λ₂(Σ_j p_j L_j) over 0 ≤ p_j ≤ 1 with Σ_j p_j ≤ budget · M. The objective is concave,
    since λ₂ is the minimum of the linear functions Σ_j p_j vᵀ L_j v over unit vectors v ⊥ 1. So
    cutting planes solve it. A linear programme over the vectors found so far bounds λ₂ from above.
    Then the eigenvectors at a point between its solution and the best point so far are added to it.
    """
    M = part.num_matchings
    best = np.full(M, budget)
    if budget == 1 or M == 1:
        return best
    best_value, cuts = _slowest(part, best)
    for _ in range(_ITERATIONS):
        bound, solution = _upper_bound(cuts, budget * M)
        if bound - best_value <= _TOLERANCE * bound:
            break
        middle = (best + solution) / 2
        value, found = _slowest(part, middle)
        cuts = np.concatenate([cuts, found])
        if value > best_value:
            best, best_value = middle, value
    return best


def _slowest(part: _Part, probability: FloatArray) -> tuple[float, FloatArray]:
    """λ₂ of the expected Laplacian, and vᵀ L_j v of its slowest modes v for every matching."""
    values, vectors = np.linalg.eigh(part.laplacian(probability))
    return float(values[1]), part.stretched(vectors[:, 1 : _CUTS_AT_ONCE + 1])


def _upper_bound(cuts: FloatArray, total: float) -> tuple[float, FloatArray]:
    """The upper bound on λ₂ from the cuts, and where it is attained."""
    num_cuts, M = cuts.shape
    found = optimize.linprog(
        c=np.append(np.zeros(M), -1.0),
        A_ub=np.vstack([np.append(np.ones(M), 0.0), np.hstack([-cuts, np.ones((num_cuts, 1))])]),
        b_ub=np.append(total, np.zeros(num_cuts)),
        bounds=[(0, 1)] * M + [(0, None)],
    )
    assert found.fun is not None
    assert found.x is not None  # a bounded problem that is feasible at 0 has a solution
    return -float(found.fun), np.asarray(found.x[:M])


def mixing_weight(part: _Part, probability: FloatArray) -> float:
    """The α for which random matchings reach agreement fastest, eq. (5) and Lemma 1 of the paper.

    Minimises ρ(α) = ‖E[W²] − 11ᵀ/N‖ with E[W²] = I − 2α L̄ + α² (L̄² + 2 L̃), L̄ = Σ_j p_j L_j and
    L̃ = Σ_j p_j (1 − p_j) L_j. It is convex in α. The paper lets W have negative entries; here α is
    at most 1/Δ, so that every W is doubly stochastic.
    """
    mean, spread = part.laplacian(probability), part.laplacian(probability * (1 - probability))
    square = mean @ mean + 2 * spread
    n = part.num_devices
    centred = np.eye(n) - np.full((n, n), 1 / n)

    def rho(alpha: float) -> float:
        error = centred - 2 * alpha * mean + alpha**2 * square
        return float(np.linalg.eigvalsh(error)[-1])

    most = 1 / part.largest_degree
    found = float(
        optimize.minimize_scalar(rho, bounds=(0, most), method="bounded", options={"xatol": 1e-5}).x
    )
    return most if rho(most) <= rho(found) else found
