"""Conductance of a mixing matrix: exact with the set that attains it, or an interval.

Rows of a mixing matrix sum to 1, so a set's volume is its size and the conductance
(`eq:graph_conduct_defn`) is the least of cut(V) / |V| over sets of at most half of the devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isclose

import numpy as np

from ssdfl.arrays import BoolArray, FloatArray, IntArray
from ssdfl.graph.components import component_labels
from ssdfl.graph.frontier import EASY_STATES, frontier_order
from ssdfl.graph.mixing import MixingMatrix, places_of
from ssdfl.graph.sparsest_cut import ENUMERATION_LIMIT, CutSearch, enumerate_cuts, search_cuts
from ssdfl.graph.spectrum import DENSE_LIMIT, slowest_few, slowest_mode

STATE_LIMIT = 1 << 17
EXACT = 1e-9  # a smaller relative difference of the two ends is only rounding
VECTOR_DIGITS, VALUE_DIGITS = 9, 12
"""Digits to which vectors and conductances are rounded before they are compared."""
_SWEEP_VECTORS = 4
_ROUNDING = 1e-12

Mode = tuple[float, FloatArray]
"""λ₂ and the Fiedler vector."""


@dataclass(frozen=True)
class Conductance:
    """Φ lies in [lower, upper]; ``cut`` is a set of positions whose cut conductance is ``upper``.

    A single device cannot be cut: its Φ is 0 by convention, since it cannot mix, and its cut is
    empty.
    """

    lower: float
    upper: float
    cut: tuple[int, ...]

    @property
    def exact(self) -> bool:
        """Whether Φ is known exactly."""
        return isclose(self.lower, self.upper, rel_tol=EXACT, abs_tol=_ROUNDING)


def conductance(
    W: MixingMatrix, state_limit: int = STATE_LIMIT, mode: Mode | None = None
) -> Conductance:
    """Φ of a mixing matrix (`eq:graph_conduct_defn`).

    First it finds a good cut. Then a search over all sets, device by device, finds a better one or
    proves that there is none: see `search_cuts`. If that needs more than ``state_limit`` states at
    a time, Φ is an interval: its lower end ``(1 − λ₂) / 2`` is from Cheeger's inequality, its upper
    end is the best cut found.

    Args:
        mode: the matrix's `slowest_mode`, if already known.

    Examples:
        >>> from ssdfl.graph import load_network, metropolis
        >>> conductance(metropolis(load_network("barbell:size=3").adjacency))
        Conductance(lower=0.08333333333333333, upper=0.08333333333333333, cut=(0, 1, 2))
    """
    return ConductanceSearch(W, mode).within(state_limit)


class ConductanceSearch:
    """The search for Φ of one matrix; one that reached its limit can be continued with a higher."""

    def __init__(self, W: MixingMatrix, mode: Mode | None = None) -> None:
        self._W, self._mode = W, mode
        self._search: CutSearch | None = None

    def within(self, state_limit: int) -> Conductance:
        """Φ with at most this many states at a time; see `conductance`."""
        W = self._W
        n = W.shape[0]
        if n == 1:
            return Conductance(0.0, 0.0, ())
        known = None if self._search else _of_parts(W) or _of_complete(W)
        if known is not None:
            return known
        if n <= ENUMERATION_LIMIT and state_limit > 1:
            return _of_cut(W, enumerate_cuts(W.toarray()[None])[0])
        return self._by_search(state_limit)

    def _by_search(self, state_limit: int) -> Conductance:
        """Φ by a short search from good cuts, then a long one from better cuts; or an interval."""
        W, cuts, (lambda_2, fiedler) = self._W, self._good_cuts, self.mode
        found = self._searched(min(state_limit, EASY_STATES))
        if found is None and state_limit > EASY_STATES:
            cuts = _best_first(W, [refine(W, cut) for cut in cuts])
            found = search_cuts(W, fiedler, cut_conductance(W, cuts[0]), state_limit)
        if found is None:
            upper = cut_conductance(W, cuts[0])
            return Conductance(min((1 - lambda_2) / 2, upper), upper, _positions(cuts[0]))
        return _of_cut(W, found if found.any() else cuts[0])

    def _searched(self, state_limit: int) -> BoolArray | None:
        """The best cut, by continuing the search before if devices are passed in its order."""
        thorough = state_limit >= EASY_STATES
        order = frontier_order(self._W, self.mode[1], thorough)
        if self._search is None or self._search.order != order:
            upper = cut_conductance(self._W, self._good_cuts[0])
            self._search = CutSearch(self._W, order, upper)
        return self._search.within(state_limit)

    @property
    def mode(self) -> Mode:
        """λ₂ and the Fiedler vector."""
        return self._mode or self._slowest[0]

    @cached_property
    def _slowest(self) -> tuple[Mode, list[FloatArray]]:
        """The slowest mode, and vectors of the next ones, which take no longer to find."""
        W = self._W
        if 1 < W.shape[0] <= DENSE_LIMIT:
            return slowest_few(W, _SWEEP_VECTORS - 1)
        return self._mode or slowest_mode(W), []

    @cached_property
    def _good_cuts(self) -> list[BoolArray]:
        """Sweep cuts along several eigenvectors, improved by moving devices, best first."""
        W, vectors = self._W, [self.mode[1], *self._slowest[1]]
        return _best_first(W, [_improve(W, sweep_cut(W, vector)) for vector in vectors])


def _of_parts(W: MixingMatrix) -> Conductance | None:
    """0 and the smallest part of a network that is not connected."""
    parts = component_labels(W)
    if parts.max() == 0:
        return None
    smallest = int(np.bincount(parts).argmin())
    return Conductance(0.0, 0.0, _positions(parts == smallest))


def _of_complete(W: MixingMatrix) -> Conductance | None:
    n = W.shape[0]
    return None if W.nnz < n * (n - 1) else of_equal_weights(W.toarray())


def of_equal_weights(W: FloatArray) -> Conductance | None:
    """For a complete network with equal weights, any half of the devices is a best cut."""
    n = len(W)
    weights = W[~np.eye(n, dtype=bool)]
    weight = float(weights[0])
    if weight <= 0 or np.ptp(weights) >= _ROUNDING:
        return None
    half = n // 2
    value = weight * (n - half)
    return Conductance(value, value, tuple(range(half)))


def _of_cut(W: MixingMatrix, best: BoolArray) -> Conductance:
    """The exact conductance, from the best of all cuts."""
    value = cut_conductance(W, best)
    return Conductance(value, value, _positions(best))


def cut_conductance(W: MixingMatrix, inside: BoolArray) -> float:
    """φ(V) of a set given as a mask (`eq:cut_conductance_defn`).

    Examples:
        >>> from ssdfl.graph import load_network, metropolis
        >>> W = metropolis(load_network("ring:n=4").adjacency)
        >>> round(cut_conductance(W, np.array([True, True, False, False])), 6)
        0.333333
    """
    size = int(inside.sum())
    row, column = places_of(W)
    across = inside[row] & ~inside[column]
    return float(W.data[across].sum()) / min(size, len(inside) - size)


def _positions(mask: BoolArray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(mask).tolist())


def _best_first(W: MixingMatrix, cuts: list[BoolArray]) -> list[BoolArray]:
    return sorted(cuts, key=lambda cut: cut_conductance(W, cut))


def sweep_cut(W: MixingMatrix, vector: FloatArray) -> BoolArray:
    """The first devices along a vector, up to the cut of lowest conductance; ties by position.

    Examples:
        >>> from ssdfl.graph import load_network, metropolis
        >>> path = metropolis(load_network("path:n=4").adjacency)
        >>> sweep_cut(path, np.array([0.0, 1, 2, 3])).tolist()
        [True, True, False, False]
    """
    order = np.argsort(np.round(vector, VECTOR_DIGITS), kind="stable")
    first = np.zeros(len(order), dtype=bool)
    first[order[: int(np.argmin(prefix_conductance(W, order))) + 1]] = True
    return first


def prefix_conductance(W: MixingMatrix, order: IntArray) -> FloatArray:
    """(n − 1,) the cut conductance of the first 1, 2, … n − 1 devices of an order."""
    n = len(order)
    place = np.argsort(order)
    row, column = places_of(W)
    left, right = place[row], place[column]
    once = left < right
    change = np.zeros(n + 1)
    np.add.at(change, left[once] + 1, W.data[once])
    np.add.at(change, right[once] + 1, -W.data[once])
    sizes = np.arange(1, n)
    values: FloatArray = np.cumsum(change)[1:n] / np.minimum(sizes, n - sizes)
    return np.round(values, VALUE_DIGITS)


def _improve(W: MixingMatrix, inside: BoolArray) -> BoolArray:
    """Move single devices across the cut as long as that improves it."""
    best, best_value = inside, cut_conductance(W, inside)
    while True:
        moved, value = _best_move(W, best, np.ones(len(best), dtype=bool))
        if value >= best_value - _ROUNDING:
            return best
        best, best_value = moved, value


def refine(W: MixingMatrix, inside: BoolArray) -> BoolArray:
    """Repeat Kernighan–Lin passes while they help; they escape small local minima."""
    best, best_value = inside, cut_conductance(W, inside)
    while W.shape[0] <= DENSE_LIMIT:
        before = best_value
        best, best_value = _refining_pass(W, best, best_value)
        if best_value == before:
            break
    return best


def _refining_pass(W: MixingMatrix, inside: BoolArray, value: float) -> tuple[BoolArray, float]:
    """Move each device once, always the best next, even at a loss; returns the best cut seen."""
    best, best_value = inside, value
    now, free = inside, np.ones(len(inside), dtype=bool)
    while free.any():
        moved, value = _best_move(W, now, free)
        if not np.isfinite(value):
            break
        free &= moved == now
        now = moved
        if value < best_value - _ROUNDING:
            best, best_value = now, value
    return best, best_value


def _best_move(W: MixingMatrix, inside: BoolArray, free: BoolArray) -> tuple[BoolArray, float]:
    """The cut after the best move of one free device, and its conductance."""
    n = len(inside)
    kept = W.diagonal()
    total = 1.0 - kept
    to_inside = W @ inside.astype(float) - kept * inside
    cut = float((total - to_inside)[inside].sum())
    change = np.where(inside, 2 * to_inside - total, total - 2 * to_inside)
    sizes = int(inside.sum()) + np.where(inside, -1, 1)
    smaller = np.minimum(sizes, n - sizes)
    after = np.where((smaller > 0) & free, (cut + change) / np.maximum(smaller, 1), np.inf)
    device = int(np.argmin(after))
    moved = inside.copy()
    moved[device] = ~moved[device]
    return moved, float(after[device])
