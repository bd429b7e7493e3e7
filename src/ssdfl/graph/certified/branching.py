"""Branch and bound: bound the cells, and divide open ones, the weakest first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.graph.certified.bounding import FIRST_SMOOTHING, NEXT_SMOOTHING, Bounded, bound_cell
from ssdfl.graph.certified.cells import Cell, whole
from ssdfl.graph.certified.problem import Problem
from ssdfl.graph.certified.relaxation import Dual, start
from ssdfl.graph.certified.timer import Timer

_SAME = 1e-8
_FEW = 3  # with so few entries left, dividing is pointless: only rounding loosens the bound


@dataclass(eq=False)
class Node:
    """A cell of the proof: bounded, or divided into parts by sizes or by a pair of entries."""

    cell: Cell
    dual: Dual
    smoothing: float
    bounded: Bounded | None = None
    pair: tuple[int, int] | None = None
    parts: list[Node] = field(default_factory=list)

    def ratio(self, problem: Problem) -> float:
        """The lower bound on the conductance of the cell's sets that its own bound proves."""
        if self.bounded is None:
            return 0.0
        cell, found = self.cell, self.bounded
        return problem.ratio(cell.smallest, cell.largest, found.dual.slope, found.offset)

    def shown(self, problem: Problem) -> float:
        """The lower bound that its own bound or those of its parts prove."""
        return max(self.ratio(problem), self.shown_by_parts(problem))

    def shown_by_parts(self, problem: Problem) -> float:
        """The lower bound that its parts prove; 0 if there are none."""
        return min((part.shown(problem) for part in self.parts), default=0.0)


def prove(problem: Problem, timer: Timer, look: Callable[[FloatArray], bool]) -> Node:
    """A tree of cells whose leaves bound the conductance of all sets.

    Args:
        problem: the mixing matrix and the best cut known.
        timer: when it runs out, leaves keep the bounds that they have.
        look: called with each relaxation's estimate of the products; True stops the proof, since a
            better cut was found.
    """
    root = _divided_by_sizes(problem, whole(problem.num_devices))
    waiting: list[Node] = []
    for done, node in enumerate(root.parts):
        # Together the first cells cover all sets, so each needs a bound.
        _bound(problem, node, timer.share(len(root.parts) - done), waiting)
        if look(_bounded(node).Y):
            return root
    while waiting and timer.left_s:
        weakest = min(waiting, key=lambda node: node.ratio(problem))
        waiting.remove(weakest)
        for part in _divide(problem, weakest):
            _bound(problem, part, timer, waiting)
    return root


def _bound(problem: Problem, node: Node, timer: Timer, waiting: list[Node]) -> None:
    """Bound a cell; a cell that is not closed waits to be divided."""
    node.bounded = bound_cell(problem, node.cell, node.dual, node.smoothing, timer)
    if not node.bounded.closed:
        waiting.append(node)


def spectral(problem: Problem, lambda_2: float) -> Node:
    """All sets as one cell, bounded by λ₂: cut ≥ (1 − λ₂) size (n − size) / n."""
    n = problem.num_devices
    cell, gap = whole(n), 1 - lambda_2
    fresh = start(problem, cell)
    diagonal = np.append(np.full(n, gap / 4), 0.0)
    dual = replace(fresh, slope=-gap / (4 * n), limits=0 * fresh.limits, diagonal=diagonal)
    return Node(cell, dual, FIRST_SMOOTHING, Bounded(dual, n * gap / 4, np.inf, np.eye(n + 1)))


def _divided_by_sizes(problem: Problem, cell: Cell) -> Node:
    """Divide by ranges of sizes, narrow near half of the devices, where the bound must be tight."""
    root = Node(cell, start(problem, cell), FIRST_SMOOTHING)
    largest, width = cell.largest, 1
    while largest >= 1:
        smallest = _as_low_as_alike(problem, largest, max(1, largest - width + 1))
        part = cell.sized(smallest, largest)
        root.parts.append(Node(part, start(problem, part), FIRST_SMOOTHING))
        width = 2 * max(width, largest - smallest + 1)
        largest = smallest - 1
    return root


def _as_low_as_alike(problem: Problem, largest: int, smallest: int) -> int:
    """The smallest size that needs the same bound as the largest, or ``smallest``."""
    while smallest > 1 and problem.enough(largest) - problem.enough(smallest - 1) < _SAME:
        smallest -= 1
    return smallest


def _divide(problem: Problem, node: Node) -> list[Node]:
    """The parts of an open node: two ranges of sizes, or a pair that agrees or differs."""
    cell = node.cell
    if problem.enough(cell.largest) - problem.enough(cell.smallest) > _SAME:
        node.parts = _halves(problem, node)
    elif cell.num_groups > _FEW:
        node.parts = _by_pair(node)
    return node.parts


def _halves(problem: Problem, node: Node) -> list[Node]:
    cell, found = node.cell, _bounded(node)
    middle = (cell.smallest + cell.largest) // 2
    parts = []
    for part in (cell.sized(cell.smallest, middle), cell.sized(middle + 1, cell.largest)):
        fresh = start(problem, part)
        dual = replace(found.dual, slope=fresh.slope, limits=fresh.limits)
        parts.append(Node(part, dual, NEXT_SMOOTHING))
    return parts


def _by_pair(node: Node) -> list[Node]:
    found = _bounded(node)
    kept, gone = node.pair = _pivot(found.Y)
    return [
        Node(
            node.cell.merged(kept, gone, sign),
            found.dual.after_merge(kept, gone, sign),
            NEXT_SMOOTHING,
        )
        for sign in (1, -1)
    ]


def _pivot(Y: FloatArray) -> tuple[int, int]:
    """The entry whose relations to others are most certain, and the entry least related to it.

    The last group holds the entry that stands for "inside". At half of the devices both sides are
    symmetric, so that entry carries no information.
    """
    spread = np.sqrt(np.maximum(np.diag(Y), _SAME))
    related = np.abs(Y / np.outer(spread, spread))[:-1, :-1]
    centre = int(np.argmax((related**2).sum(axis=1)))
    row = related[centre].copy()
    row[centre] = np.inf
    other = int(np.argmin(row))
    return min(centre, other), max(centre, other)


def _bounded(node: Node) -> Bounded:
    assert node.bounded is not None
    return node.bounded
