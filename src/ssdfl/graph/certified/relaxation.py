"""A lower bound on a cell's cuts: a semidefinite relaxation with triangle inequalities.

For every set of the cell, cut − slope · (n − 2 size)² ≥ zᵀ M z + Σ d − Σ μ − Σ σ · limit. The
multipliers belong to zᵢ² = 1 (d), to triangles (μ ≥ 0), and to limits (σ ≥ 0): the range of sizes,
and that the set differs from the best known one. And zᵀ M z ≥ r λ_min(M) for r entries of ±1. So
any multipliers prove a bound. Good ones are found by ascent on a smoothed dual (Malick and Roupin,
Mathematical Programming 140, 2013).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.graph.certified import triangles as tri
from ssdfl.graph.certified.cells import Cell
from ssdfl.graph.certified.problem import Problem, laplacian
from ssdfl.lazy import LazyModule

if TYPE_CHECKING:
    import scipy.optimize as optimize
else:
    optimize = LazyModule("scipy.optimize")

_MOST = 20.0  # of the multipliers of sizes and of the best set, in units of the mean weight
_MEMORY = 10


@dataclass(frozen=True, eq=False)
class Dual:
    """Multipliers of a relaxation; see the module's docstring."""

    slope: float
    limits: FloatArray
    diagonal: FloatArray
    triangles: IntArray
    weights: FloatArray

    def after_merge(self, kept: int, gone: int, sign: int) -> Dual:
        """Initial multipliers for the part where group ``gone`` is ``sign`` times ``kept``."""
        diagonal = self.diagonal.copy()
        diagonal[kept] += diagonal[gone]
        triangles, which = tri.after_merge(self.triangles, kept, gone, sign)
        weights = self.weights[which]
        return replace(
            self, diagonal=np.delete(diagonal, gone), triangles=triangles, weights=weights
        )

    def with_triangles(self, more: IntArray) -> Dual:
        """The multipliers without unimportant triangles, and with new ones."""
        size = len(self.diagonal)
        kept = self.weights > 0
        old, weights = self.triangles[kept], self.weights[kept]
        new = more[~np.isin(tri.codes(more, size), tri.codes(old, size))]
        return replace(
            self,
            triangles=np.concatenate([old, new]),
            weights=np.concatenate([weights, np.zeros(len(new))]),
        )


def start(problem: Problem, cell: Cell) -> Dual:
    """Initial multipliers, and a slope that suits the cell."""
    n = problem.num_devices
    few, many = (n - 2 * cell.smallest) ** 2, (n - 2 * cell.largest) ** 2
    rise = problem.enough(cell.smallest) - problem.enough(cell.largest)
    slope = rise / max(few - many, 1)
    one_size = cell.smallest == cell.largest
    limits = np.array([5 * problem.scale, 0.0] if one_size else [0.0, 0.0, 0.0])
    return Dual(slope, limits, np.zeros(cell.num_groups), tri.none(), np.zeros(0))


def limits_of(problem: Problem, cell: Cell) -> list[tuple[FloatArray, float]]:
    """Quadratic forms with their upper limits for all sets of the cell but the best known one."""
    n = problem.num_devices
    ones, last = np.append(np.ones(n), 0.0), np.append(np.zeros(n), 1.0)
    best = np.append(np.where(problem.cut, 1.0, -1.0), 0.0)
    another = (np.outer(best, best), float((n - 2) ** 2))
    few, many = n - 2 * cell.smallest, n - 2 * cell.largest
    if few == many:
        size = ones + few * last
        return [(np.outer(size, size), 0.0), another]
    imbalance = np.outer(ones, ones)
    return [(imbalance, float(few**2)), (-imbalance, -float(many**2)), another]


class Relaxation:
    """The dual of a cell's relaxation, as a function of its multipliers."""

    def __init__(self, problem: Problem, cell: Cell, slope: float) -> None:
        n = problem.num_devices
        self._scale, self._slope = problem.scale, slope
        cut = np.zeros((n + 1, n + 1))
        cut[:n, :n] = laplacian(problem.W) / 4 - slope
        self._objective = cell.fold(cut)
        limits = limits_of(problem, cell)
        self._forms = np.stack([cell.fold(form) for form, _ in limits]) / n
        self._most = np.array([most for _, most in limits]) / n
        self.Y: FloatArray = np.eye(cell.num_groups)
        self.offset = self.loss = -np.inf
        self.best: Dual | None = None

    def ascend(self, dual: Dual, smoothing: float, iterations: int) -> Dual:
        """Improve multipliers; `best` and `offset` keep the best bound found."""
        size = len(dual.diagonal)
        self._triangles = dual.triangles
        limited: list[tuple[float | None, float | None]] = [(0, _MOST * self._scale)] * len(
            dual.limits
        )
        free: list[tuple[float | None, float | None]] = [(None, None)] * size
        positive: list[tuple[float | None, float | None]] = [(0, None)] * len(dual.weights)
        found = optimize.minimize(
            self._smoothed,
            np.concatenate([dual.limits, dual.diagonal, dual.weights]),
            args=(smoothing * self._scale,),
            jac=True,
            method="L-BFGS-B",
            bounds=[*limited, *free, *positive],
            options={"maxiter": iterations, "maxcor": _MEMORY, "ftol": 0.0, "gtol": 0.0},
        )
        return self._dual(found.x)

    def _parts(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The multipliers of limits, of the diagonal and of triangles."""
        first = len(self._most)
        second = first + len(self.Y)
        return x[:first], x[first:second], x[second:]

    def _smoothed(self, x: FloatArray, smoothing: float) -> tuple[float, FloatArray]:
        """Minus the smoothed dual at x, and its gradient; keeps x if its bound is best."""
        size = len(self.Y)
        limits, diagonal, weights = self._parts(x)
        M = self._objective + np.tensordot(limits, self._forms, 1) - np.diag(diagonal)
        M -= tri.combined(self._triangles, weights, size)
        values, vectors = np.linalg.eigh(M)
        linear = float(diagonal.sum() - weights.sum() - limits @ self._most)
        self.loss = -size * float(values[0])
        self._note(x, linear - self.loss)
        used = values < 0
        share = -values[used] / smoothing
        self.Y = (vectors[:, used] * share) @ vectors[:, used].T
        value = linear - smoothing * float(share @ share) / 2
        above = np.tensordot(self._forms, self.Y, 2) - self._most
        gradient = np.concatenate([above, 1 - np.diag(self.Y), -tri.slack(self.Y, self._triangles)])
        return -value, -gradient

    def _dual(self, x: FloatArray) -> Dual:
        limits, diagonal, weights = self._parts(x)
        return Dual(self._slope, limits, diagonal, self._triangles, weights)

    def _note(self, x: FloatArray, offset: float) -> None:
        if offset > self.offset:
            self.offset, self.best = offset, self._dual(x.copy())
