"""Check a certificate of conductance. This file needs only NumPy, and nothing of the package.

A certificate says that every set of at most half of n devices has cut / size ≥ ``lower``, and that
``cut`` is a set that has ``upper``. Its proof is one of:

``none``
    nothing to prove: ``lower`` is 0.
``frontier``
    an ``order`` of the devices in which all sets can be enumerated. Partial sets are compared if
    they agree on the devices that still have neighbours to come. A set dominates the others if it
    is no larger and its cut − lower · size is no larger.
``relaxation``
    a ``tree`` of cells. The entries of a set are y₀ … yₙ₋₁ = ±1, +1 for its devices, and yₙ = 1. A
    cell is divided by ``sizes`` of sets, or by a ``pair`` of entries that agree (first part) or
    differ (second part). A cell's ``bound`` has multipliers; with them, zᵀ M z ≥ r λ_min(M) bounds
    the cut of each of its sets; z are the r entries that are not tied to an earlier one. If every
    weight is a multiple of 1 / ``units``, so is every cut. The certificate's own ``cut`` needs no
    bound.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

TOLERANCE = 1e-9
_CLOSE = 1e-12
_KIND_SIGNS = {0: (1, 1, 1), 1: (1, -1, -1), 2: (-1, 1, -1), 3: (-1, -1, 1)}


class Refused(ValueError):
    """A certificate that does not prove its claim."""


def check_certificate(weights: Matrix, certificate: dict[str, Any]) -> None:
    """Verify a certificate against an (n, n) mixing matrix, as a dense array.

    Raises:
        Refused: the certificate is not valid; the message names the first failure.
    """
    W = np.asarray(weights, dtype=np.float64)
    try:
        _check(W, certificate)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise (
            error if isinstance(error, Refused) else Refused(f"malformed certificate: {error!r}")
        ) from error


def _demand(holds: bool, message: str) -> None:
    if not holds:
        raise Refused(message)


def _check(W: Matrix, certificate: dict[str, Any]) -> None:
    n = len(W)
    lower, upper = float(certificate["lower"]), float(certificate["upper"])
    _demand(certificate["version"] == 1, "unknown version")
    _demand(
        W.shape == (n, n) and bool(np.abs(W - W.T).max() <= TOLERANCE),
        "the matrix is not symmetric",
    )
    _demand(bool((W >= -TOLERANCE).all()), "the matrix has negative weights")
    _demand(bool(np.abs(W.sum(axis=1) - 1).max() <= TOLERANCE), "the matrix's rows do not sum to 1")
    _demand(0 <= lower <= upper + TOLERANCE, "the interval is empty")
    inside = _members(certificate["cut"], n)
    if n > 1:
        _check_cut(W, inside, upper)
    proof = certificate["proof"]
    show = {"none": _nothing, "frontier": _by_frontier, "relaxation": _by_tree}
    shown = max(0.0, show[proof["kind"]](W, proof, inside, lower, upper))
    _demand(
        shown >= lower - TOLERANCE * max(lower, TOLERANCE), f"only {shown} is shown, not {lower}"
    )


def _members(cut: list[int], n: int) -> Matrix:
    inside = np.zeros(n)
    for device in cut:
        _demand(0 <= device < n, "the cut names a device that does not exist")
        inside[device] = 1
    return inside


def _check_cut(W: Matrix, inside: Matrix, upper: float) -> None:
    size = int(inside.sum())
    _demand(0 < size < len(W), "the cut is empty or everything")
    value = float(inside @ W @ (1 - inside)) / min(size, len(W) - size)
    _demand(
        abs(value - upper) <= TOLERANCE * max(upper, TOLERANCE) * 10,
        f"the cut has {value}, not {upper}",
    )


def _nothing(W: Matrix, proof: dict[str, Any], inside: Matrix, lower: float, upper: float) -> float:
    return 0.0


# The proof by a frontier.


def _by_frontier(
    W: Matrix, proof: dict[str, Any], inside: Matrix, lower: float, upper: float
) -> float:
    """``lower``, if no set conducts less by more than rounding; otherwise raises."""
    order = [int(device) for device in proof["order"]]
    n = len(W)
    _demand(sorted(order) == list(range(n)), "the order does not name every device once")
    target = lower * (1 - TOLERANCE)
    position = {device: step for step, device in enumerate(order)}
    last = [
        max(position[u] for u in np.flatnonzero(W[v] + np.eye(n)[v]).tolist()) for v in range(n)
    ]
    frontier: list[int] = []
    masks, sizes, values = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1)
    for step, device in enumerate(order):
        weights = np.array([W[device, u] for u in frontier])
        masks, sizes, values = _both_sides(masks, sizes, values, weights, target)
        frontier = [*frontier, device]
        room = np.minimum(n // 2 - sizes, n - 1 - step)
        alive = (sizes <= n // 2) & (values < target * room)
        masks, frontier = _forget(masks, frontier, [last[u] > step for u in frontier])
        masks, sizes, values = _best_of_each(masks[alive], sizes[alive], values[alive])
    _demand(not bool((values[sizes > 0] < 0).any()), "a set conducts less than the lower end")
    return lower


def _both_sides(
    masks: Integers, sizes: Integers, values: Matrix, weights: Matrix, target: float
) -> tuple[Integers, Integers, Matrix]:
    """Partial sets with the next device outside and inside; a value is cut − target · size."""
    _demand(len(weights) < 62, "the frontier is too wide to check")
    linked = np.flatnonzero(weights)
    to_inside = np.zeros(len(masks))
    for place in linked.tolist():
        to_inside += weights[place] * ((masks >> place) & 1)
    joined = values + (weights.sum() - to_inside) - target
    return (
        np.concatenate([masks, masks | (1 << len(weights))]),
        np.concatenate([sizes, sizes + 1]),
        np.concatenate([values + to_inside, joined]),
    )


def _forget(masks: Integers, frontier: list[int], needed: list[bool]) -> tuple[Integers, list[int]]:
    """The devices of the frontier that are still needed, with their bits packed."""
    moved = np.zeros_like(masks)
    kept = [place for place, need in enumerate(needed) if need]
    for bit, place in enumerate(kept):
        moved |= ((masks >> place) & 1) << bit
    return moved, [frontier[place] for place in kept]


def _best_of_each(
    masks: Integers, sizes: Integers, values: Matrix
) -> tuple[Integers, Integers, Matrix]:
    """Among partial sets equal at the frontier, those that no set of at most their size beats."""
    by_group = np.lexsort((values, sizes, masks))
    masks, sizes, values = masks[by_group], sizes[by_group], values[by_group]
    # Ranks are whole numbers, so that a running minimum within groups is exact.
    rank = np.empty(len(values), np.int64)
    rank[np.argsort(values, kind="stable")] = np.arange(len(values))
    starts = np.concatenate([[True], masks[1:] != masks[:-1]]) if len(masks) else np.zeros(0, bool)
    group = np.cumsum(starts)
    lowest = np.minimum.accumulate(rank - group * (len(values) + 1))
    kept = np.concatenate([[True], lowest[1:] < lowest[:-1]]) if len(masks) else starts
    return masks[kept], sizes[kept], values[kept]


# The proof by a tree of cells.


def _by_tree(W: Matrix, proof: dict[str, Any], inside: Matrix, lower: float, upper: float) -> float:
    """The lower bound that the tree proves for all sets but the cut, which has ``upper``."""
    n = len(W)
    y = 2 * inside - 1
    off_diagonal = W - np.diag(np.diag(W))
    grid = _Grid(off_diagonal, int(proof["units"]))
    whole = _Cell((1, n // 2), [(entry, 1) for entry in range(n + 1)])
    return min(upper, _walk(grid, proof["tree"], whole, y))


class _Grid:
    """The possible values of cuts: multiples of a unit, with known parity if devices' are equal."""

    def __init__(self, off_diagonal: Matrix, units: int) -> None:
        self.off_diagonal, self.units = off_diagonal, units
        _demand(units == 0 or 0 < units <= 10**7, "units are out of range")
        whole = np.rint(off_diagonal * units)
        close = np.abs(off_diagonal * units - whole).max() <= _CLOSE * max(units, 1)
        _demand(bool(close), "a weight is not a whole number of units")
        odd = np.unique(whole.sum(axis=1) % 2)
        self.odd = int(odd[0]) if units and len(odd) == 1 else None

    def round_up(self, cut: float, size: int) -> float:
        if not self.units:
            return cut
        number = ceil((cut - TOLERANCE) * self.units)
        if self.odd is not None and number % 2 != (self.odd * size) % 2:
            number += 1
        return number / self.units


class _Cell:
    """Sets of some sizes; each entry is free, or equal or opposite to an earlier one."""

    def __init__(self, sizes: tuple[int, int], ties: list[tuple[int, int]]) -> None:
        self.low, self.high = sizes
        self.ties = ties

    def is_free(self, entry: int) -> bool:
        return self.ties[entry] == (entry, 1)

    def tied(self, first: int, second: int, sign: int) -> _Cell:
        """The part in which two free entries are equal or opposite."""
        ties = [(first, sign * own) if head == second else (head, own) for head, own in self.ties]
        return _Cell((self.low, self.high), ties)

    def matrix(self) -> Matrix:
        """The matrix that maps the free entries to all entries."""
        free = list(filter(self.is_free, range(len(self.ties))))
        column = {entry: place for place, entry in enumerate(free)}
        tie = np.zeros((len(self.ties), len(free)))
        for entry, (head, sign) in enumerate(self.ties):
            tie[entry, column[head]] = sign
        return tie


def _walk(grid: _Grid, node: dict[str, Any], cell: _Cell, y: Matrix) -> float:
    """The lower bound on the conductance of a cell's sets."""
    if "bound" in node:
        return _leaf(grid, node["bound"], cell, y)
    cells = _by_sizes(node, cell) if "sizes" in node else _by_pair(node, cell)
    return min(_walk(grid, part, one, y) for part, one in zip(node["parts"], cells, strict=True))


def _by_sizes(node: dict[str, Any], cell: _Cell) -> list[_Cell]:
    ranges = [(int(low), int(high)) for low, high in node["sizes"]]
    covered = {size for low, high in ranges for size in range(low, high + 1)}
    _demand(covered >= set(range(cell.low, cell.high + 1)), "sizes are left out")
    _demand(min(covered) >= 1 and max(covered) <= cell.high, "sizes are out of range")
    return [_Cell(span, cell.ties) for span in ranges]


def _by_pair(node: dict[str, Any], cell: _Cell) -> list[_Cell]:
    first, second = (int(entry) for entry in node["pair"])
    free = cell.is_free(first) and cell.is_free(second)
    _demand(free and 0 <= first < second, "a pair is not of two free entries")
    return [cell.tied(first, second, sign) for sign in (1, -1)]


def _leaf(grid: _Grid, bound: dict[str, Any], cell: _Cell, y: Matrix) -> float:
    """The ratio that a cell's multipliers prove."""
    n = len(y)
    slope = float(bound["slope"])
    form, constant = _limited(bound, n, cell, y)
    form[:n, :n] += (np.diag(grid.off_diagonal.sum(axis=1)) - grid.off_diagonal) / 4 - slope
    tie = cell.matrix()
    M = tie.T @ form @ tie
    diagonal = np.array(bound["diagonal"], dtype=np.float64)
    _demand(diagonal.shape == (len(M),), "a diagonal has the wrong length")
    M -= np.diag(diagonal)
    constant += float(diagonal.sum()) + _take_triangles(M, bound)
    offset = constant + len(M) * _least_eigenvalue(M)
    _demand(bool(np.isfinite(offset)), "a bound is not a number")
    cuts = {size: slope * (n - 2 * size) ** 2 + offset for size in range(cell.low, cell.high + 1)}
    return min(grid.round_up(cut, size) / size for size, cut in cuts.items())


def _limited(bound: dict[str, Any], n: int, cell: _Cell, y: Matrix) -> tuple[Matrix, float]:
    """The limits' forms times their multipliers, and what they subtract from the bound."""
    limits = _limits(n, cell.low, cell.high, y)
    multipliers = np.array(bound["limits"], dtype=np.float64)
    _demand(multipliers.shape == (len(limits),), "a limit has no multiplier")
    _demand(bool((multipliers >= 0).all()), "a limit's multiplier is negative")
    form = np.tensordot(multipliers, np.stack([one for one, _ in limits]), 1)
    return form, -float(multipliers @ [most for _, most in limits])


def _limits(n: int, low: int, high: int, y: Matrix) -> list[tuple[Matrix, float]]:
    """Forms of the entries, and their upper limits for sets of these sizes other than the cut."""
    ones = np.concatenate([np.ones(n), [0.0]])
    cut = np.concatenate([y, [0.0]])
    other = (np.outer(cut, cut), float((n - 2) ** 2))
    if low == high:
        exactly = np.concatenate([np.ones(n), [float(n - 2 * low)]])
        return [(np.outer(exactly, exactly), 0.0), other]
    imbalance = np.outer(ones, ones)
    return [
        (imbalance, float((n - 2 * low) ** 2)),
        (-imbalance, -float((n - 2 * high) ** 2)),
        other,
    ]


def _take_triangles(M: Matrix, bound: dict[str, Any]) -> float:
    """Subtract the triangles' forms from M; returns the change of the bound, −Σ weight."""
    total = 0.0
    for (i, j, k, kind), weight in zip(bound["triangles"], bound["weights"], strict=True):
        _demand(weight >= 0 and 0 <= i < j < k < len(M), "a triangle is not one")
        for (a, b), sign in zip(((i, j), (i, k), (j, k)), _KIND_SIGNS[kind], strict=True):
            M[a, b] -= sign * weight / 2
            M[b, a] -= sign * weight / 2
        total += weight
    return -total


def _least_eigenvalue(M: Matrix) -> float:
    """λ_min minus a bound on floating-point errors."""
    symmetric = (M + M.T) / 2
    error = 8 * len(M) * np.finfo(np.float64).eps * float(np.linalg.norm(symmetric))
    return float(np.linalg.eigvalsh(symmetric)[0]) - error
