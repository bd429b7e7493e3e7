"""Conductance of a mixing matrix: exact with the set that attains it, or an interval that holds it.

Rows of a mixing matrix sum to 1, so a set's volume is its size and the conductance
(`eq:graph_conduct_defn`) is the least of cut(V) / |V| over sets of at most half of the devices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from ssdfl.arrays import BoolArray, FloatArray, IntArray
from ssdfl.graph.mixing import MixingMatrix
from ssdfl.graph.spectrum import DENSE_LIMIT, slowest_mode

TABLE_LIMIT = 1 << 22
_SWEEP_VECTORS = 4
_NARROW = 8


@dataclass(frozen=True)
class Conductance:
    """Φ lies in [lower, upper]; ``cut`` is a set of positions whose cut conductance is ``upper``.

    A single device cannot be cut: its Φ is 0 by convention, since it cannot mix, and its cut is empty.
    """

    lower: float
    upper: float
    cut: tuple[int, ...]

    @property
    def exact(self) -> bool:
        """Whether Φ is known, and not only an interval."""
        return self.lower == self.upper


def conductance(
    W: MixingMatrix, table_limit: int = TABLE_LIMIT, mode: tuple[float, FloatArray] | None = None
) -> Conductance:
    """Φ of a mixing matrix; ``mode`` is its `slowest_mode`, if that is known already.

    Exact where a dynamic programme over a moving frontier of devices fits into ``table_limit`` numbers
    (trees, rings and sparse networks of many devices, any network of eighteen) and for complete networks.
    Elsewhere an interval: Cheeger's inequality gives its lower end ``(1 − λ₂) / 2``, the best cut found
    its upper one.

    Examples:
        >>> from ssdfl.graph import load_network, metropolis
        >>> conductance(metropolis(load_network("barbell:size=3").adjacency))
        Conductance(lower=0.08333333333333333, upper=0.08333333333333333, cut=(3, 4, 5))
    """
    n = W.shape[0]
    if n == 1:
        return Conductance(0.0, 0.0, ())
    parts: IntArray = connected_components(W, directed=False)[1]
    if parts.max() > 0:
        smallest = int(np.bincount(parts).argmin())
        return Conductance(0.0, 0.0, _positions(parts == smallest))
    if (uniform := _uniform_weight(W)) is not None:
        half = n // 2
        return _exact(uniform * (n - half), tuple(range(half)))
    lambda_2, fiedler = mode or slowest_mode(W)
    order = _frontier_order(W, fiedler, most=(table_limit // (n // 2 + 1)).bit_length() - 1)
    return _interval(W, lambda_2, fiedler) if order is None else _by_frontier(W, order)


def cut_conductance(W: MixingMatrix, inside: BoolArray) -> float:
    """φ(V) of a set given as a mask (`eq:cut_conductance_defn`).

    Examples:
        >>> from ssdfl.graph import load_network, metropolis
        >>> W = metropolis(load_network("ring:n=4").adjacency)
        >>> round(cut_conductance(W, np.array([True, True, False, False])), 6)
        0.333333
    """
    cut = float(W[inside][:, ~inside].sum())
    return cut / min(int(inside.sum()), int((~inside).sum()))


def _exact(value: float, cut: tuple[int, ...]) -> Conductance:
    return Conductance(value, value, cut)


def _positions(mask: BoolArray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(mask).tolist())


def _uniform_weight(W: MixingMatrix) -> float | None:
    """The weight that all pairs of a complete network share, if it is one and they do."""
    n = W.shape[0]
    if W.nnz < n * (n - 1):
        return None
    pairs = W.toarray()[~np.eye(n, dtype=bool)]
    return float(pairs[0]) if np.ptp(pairs) < 1e-12 and pairs[0] > 0 else None


def _frontier_order(W: MixingMatrix, fiedler: FloatArray, most: int) -> list[int] | None:
    """An order of devices in which at most so many of those passed still have neighbours to come, if found.

    The Fiedler vector's order is good on elongated networks; a greedy one helps elsewhere.
    """
    neighbours = _neighbour_masks(W)
    along: list[int] = np.argsort(np.round(fiedler, 9), kind="stable").tolist()
    width = _frontier_width(neighbours, along, most)
    if width <= min(most, _NARROW):
        return along
    greedy = _greedy_order(neighbours, along[0], most)
    if greedy is not None and _frontier_width(neighbours, greedy, most) < width:
        return greedy
    return along if width <= most else None


def _neighbour_masks(W: MixingMatrix) -> list[int]:
    """Each device's neighbours as the bits of a number."""
    masks = [0] * W.shape[0]
    entries = W.tocoo()
    for i, j in zip(entries.row.tolist(), entries.col.tolist(), strict=True):
        if i != j:
            masks[i] |= 1 << j
    return masks


def _frontier_width(neighbours: list[int], order: list[int], most: int) -> int:
    """How many devices a table over the frontier has to tell apart; no more than ``most`` + 1 are counted."""
    frontier: list[int] = []
    to_come, width = (1 << len(order)) - 1, 0
    for v in order:
        to_come &= ~(1 << v)
        frontier.append(v)
        width = max(width, len(frontier))
        if width > most:
            break
        frontier = [u for u in frontier if neighbours[u] & to_come]
    return width


def _greedy_order(neighbours: list[int], first: int, most: int) -> list[int] | None:
    """Always pass the device that leaves the fewest behind with neighbours to come; None if too many stay."""
    n = len(neighbours)
    frontier: list[int] = []
    order: list[int] = []
    to_come, v = (1 << n) - 1, first
    while len(frontier) <= most:
        order.append(v)
        to_come &= ~(1 << v)
        frontier = [u for u in [*frontier, v] if neighbours[u] & to_come]
        if not to_come:
            return order
        reach = 0
        for u in frontier:
            reach |= neighbours[u] & to_come
        candidates = [u for u in range(n) if reach >> u & 1]
        left_behind = {
            u: sum(1 for w in [*frontier, u] if neighbours[w] & to_come & ~(1 << u)) for u in candidates
        }
        v = min(candidates, key=lambda u: (left_behind[u], u))
    return None


def _by_frontier(W: MixingMatrix, order: list[int]) -> Conductance:
    """The least cut of every size, device by device.

    ``table[x_u for u in frontier, k]`` is the least weight cut among the devices passed so far when those of
    the frontier are on the sides x_u and k of them all are inside. A device joins with both sides, paying
    for links to the other side, and leaves with the better one once all its neighbours are passed.
    """
    n = W.shape[0]
    half = n // 2
    ends = zip(W.indptr, W.indptr[1:], strict=False)
    weights = [dict(zip(W.indices[a:b].tolist(), W.data[a:b].tolist(), strict=True)) for a, b in ends]
    table = np.full(half + 1, np.inf)
    table[0] = 0.0
    frontier: list[int] = []
    history: list[tuple[int, int, BoolArray | None]] = []
    to_come = np.ones(n, dtype=bool)
    for v in order:
        outside, inside = table.copy(), np.full_like(table, np.inf)
        inside[..., 1:] = table[..., :-1]
        for axis, u in enumerate(frontier):
            if u in weights[v]:
                np.moveaxis(outside, axis, 0)[1] += weights[v][u]
                np.moveaxis(inside, axis, 0)[0] += weights[v][u]
        table = np.stack([outside, inside])
        frontier.insert(0, v)
        history.append((v, -1, None))
        to_come[v] = False
        for u in [u for u in frontier if not any(to_come[w] for w in weights[u])]:
            axis = frontier.index(u)
            zero, one = np.moveaxis(table, axis, 0)
            history.append((u, axis, one < zero))
            table = np.minimum(zero, one)
            frontier.pop(axis)
    ratios = table[1:] / np.arange(1, half + 1)
    size = int(np.argmin(ratios)) + 1
    members = _trace_back(history, size)
    return _exact(cut_conductance(W, members), _positions(members))


def _trace_back(history: list[tuple[int, int, BoolArray | None]], size: int) -> BoolArray:
    """The set that the tables chose for a size."""
    members = np.zeros(max(v for v, _, _ in history) + 1, dtype=bool)
    sides: list[int] = []
    for v, axis, inside in reversed(history):
        if inside is None:
            size -= sides.pop(0)
        else:
            side = int(inside[(*sides, size)])
            sides.insert(axis, side)
            members[v] = bool(side)
    return members


def _interval(W: MixingMatrix, lambda_2: float, fiedler: FloatArray) -> Conductance:
    """``[(1 − λ₂) / 2, best cut]``: sweeps along several eigenvectors, improved by moving devices."""
    n = W.shape[0]
    vectors = [fiedler]
    if n <= DENSE_LIMIT:
        vectors = list(np.linalg.eigh(W.toarray())[1].T[-2 : -2 - _SWEEP_VECTORS : -1])
    cuts = [_improve(W, sweep_cut(W, vector)) for vector in vectors]
    best = min(cuts, key=lambda cut: cut_conductance(W, cut))
    upper = cut_conductance(W, best)
    return Conductance(min((1 - lambda_2) / 2, upper), upper, _positions(best))


def sweep_cut(W: MixingMatrix, vector: FloatArray) -> BoolArray:
    """The first devices along a vector, as many as make the cut conductance least; ties by position.

    Examples:
        >>> from ssdfl.graph import load_network, metropolis
        >>> sweep_cut(metropolis(load_network("path:n=4").adjacency), np.array([0.0, 1, 2, 3])).tolist()
        [True, True, False, False]
    """
    order = np.argsort(np.round(vector, 9), kind="stable")
    first = np.zeros(len(order), dtype=bool)
    first[order[: int(np.argmin(prefix_conductance(W, order))) + 1]] = True
    return first


def prefix_conductance(W: MixingMatrix, order: IntArray) -> FloatArray:
    """(n − 1,) the cut conductance of the first 1, 2, … n − 1 devices of an order."""
    n = len(order)
    place = np.argsort(order)
    entries = W.tocoo()
    left, right = place[entries.row], place[entries.col]
    once = left < right
    change = np.zeros(n + 1)
    np.add.at(change, left[once] + 1, entries.data[once])
    np.add.at(change, right[once] + 1, -entries.data[once])
    sizes = np.arange(1, n)
    values: FloatArray = np.cumsum(change)[1:n] / np.minimum(sizes, n - sizes)
    return np.round(values, 12)


def _improve(W: MixingMatrix, inside: BoolArray) -> BoolArray:
    """Move single devices across the cut as long as that makes it better."""
    n = W.shape[0]
    inside = inside.copy()
    total = W.sum(axis=1) - W.diagonal()
    for _ in range(n):
        to_inside = W @ inside.astype(float) - W.diagonal() * inside
        size = int(inside.sum())
        cut = float((total - to_inside)[inside].sum())
        change = np.where(inside, 2 * to_inside - total, total - 2 * to_inside)
        sizes = size + np.where(inside, -1, 1)
        smaller = np.minimum(sizes, n - sizes)
        after = np.where(smaller > 0, (cut + change) / np.maximum(smaller, 1), np.inf)
        v = int(np.argmin(after))
        if after[v] >= cut / min(size, n - size) - 1e-12:
            return inside
        inside[v] = ~inside[v]
    return inside
