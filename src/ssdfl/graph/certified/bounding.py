"""Bound one cell: ascend, add violated triangles, and stop when it is proved or hopeless."""

from __future__ import annotations

from dataclasses import dataclass

from ssdfl.arrays import FloatArray
from ssdfl.graph.certified import triangles as tri
from ssdfl.graph.certified.cells import Cell
from ssdfl.graph.certified.problem import Problem
from ssdfl.graph.certified.relaxation import Dual, Relaxation
from ssdfl.graph.certified.timer import Timer

FIRST_SMOOTHING = 3e-4
NEXT_SMOOTHING = 3e-5  # for a part of a cell that was bounded before
_LEAST_SMOOTHING = 1e-6
_SHRINK = 0.85
_ITERATIONS = 50  # between two additions of triangles; with fewer, the ascent never gathers speed
_ROUNDS = 60
_TRIANGLES = 3000
_VIOLATION = 1e-2
_LOOK_BACK = 4
_PATIENCE = 6  # stop if this many times the last rounds' gain would not be enough


@dataclass(frozen=True, eq=False)
class Bounded:
    """A bound: the cut of every set of a cell is at least ``dual.slope · (n − 2 size)² + offset``.

    ``missing`` is the offset that is still to be proved; ``Y`` estimates the products of entries.
    """

    dual: Dual
    offset: float
    missing: float
    Y: FloatArray

    @property
    def closed(self) -> bool:
        """Whether no set of the cell is better than the best one known."""
        return self.missing <= 0


def bound_cell(problem: Problem, cell: Cell, dual: Dual, smoothing: float, timer: Timer) -> Bounded:
    """Bound the cuts of a cell's sets, starting from multipliers of a larger cell."""
    relaxation = Relaxation(problem, cell, dual.slope)
    wanted = problem.shortfall(cell.smallest, cell.largest, dual.slope)
    offsets: list[float] = []
    for _ in range(_ROUNDS):
        dual = relaxation.ascend(dual, smoothing, _ITERATIONS)
        offsets.append(relaxation.offset)
        smoothing = max(smoothing * _SHRINK, _LEAST_SMOOTHING)
        settled = smoothing < NEXT_SMOOTHING
        if offsets[-1] >= wanted or not timer.left_s or (settled and _hopeless(offsets, wanted)):
            break
        dual = dual.with_triangles(tri.violated(relaxation.Y, _TRIANGLES, _VIOLATION))
    assert relaxation.best is not None
    return Bounded(relaxation.best, relaxation.offset, wanted - relaxation.offset, relaxation.Y)


def _hopeless(offsets: list[float], wanted: float) -> bool:
    """Whether the bound grows too slowly to reach its goal."""
    if len(offsets) <= _LOOK_BACK:
        return False
    gain = offsets[-1] - offsets[-1 - _LOOK_BACK]
    return gain * _PATIENCE < wanted - offsets[-1]
