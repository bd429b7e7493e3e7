"""Conductance with a certificate that an independent checker can verify."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ssdfl.arrays import BoolArray, FloatArray, IntArray
from ssdfl.errors import InputError
from ssdfl.graph.certified.branching import Node, prove, spectral
from ssdfl.graph.certified.problem import Problem
from ssdfl.graph.certified.timer import Timer
from ssdfl.graph.components import component_labels
from ssdfl.graph.conductance import (
    EXACT,
    Conductance,
    conductance,
    cut_conductance,
    refine,
    sweep_cut,
)
from ssdfl.graph.frontier import frontier_order
from ssdfl.graph.mixing import MixingMatrix
from ssdfl.graph.sparsest_cut import search_cuts
from ssdfl.graph.spectrum import slowest_mode

CERTIFY_LIMIT = 1000  # devices; a relaxation is a dense matrix of their pairs
CERTIFY_SECONDS = 60.0
_VERSION = 1
_ROUNDING = 1e-12
_SLACK = 1e-7
_STATES = 1 << 21
_ROUNDED = 3  # vectors of a relaxation along which cuts are searched


@dataclass(frozen=True, eq=False)
class Certificate:
    """Conductance and its proof for JSON; `ssdfl.graph.certified.check` documents the format."""

    conductance: Conductance
    proof: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The input of `check_certificate`."""
        found = self.conductance
        return {
            "version": _VERSION,
            "lower": found.lower,
            "upper": found.upper,
            "cut": list(found.cut),
            "proof": self.proof,
        }


def certify(W: MixingMatrix, seconds: float = CERTIFY_SECONDS) -> Certificate:
    """Φ of a mixing matrix with a proof of its lower end; its cut proves the upper one.

    It first searches over a moving frontier of devices, which succeeds for narrow networks such as
    grids. Otherwise it uses branch and bound: cells of sets, each with a bound from semidefinite
    duality. If the time runs out, Φ is the interval proved so far.

    Args:
        W: a mixing matrix.
        seconds: time of one core after which no more cells are divided; cells in progress are
            finished.

    Raises:
        InputError: there are more than 1,000 devices.

    Examples:
        >>> from ssdfl.graph import load_network, metropolis
        >>> found = certify(metropolis(load_network("ring:n=20").adjacency))
        >>> found.conductance.exact, found.proof["kind"]
        (True, 'frontier')
    """
    if W.shape[0] > CERTIFY_LIMIT:
        expected = f"at most {CERTIFY_LIMIT:,} devices"
        raise InputError("devices to certify", W.shape[0], expected, "Leave --certify out.")
    if W.shape[0] == 1 or component_labels(W).max() > 0:
        return Certificate(conductance(W), {"kind": "none"})
    timer = Timer(seconds)
    with threadpool_limits(1):
        return _certify_connected(W, timer)


def _certify_connected(W: MixingMatrix, timer: Timer) -> Certificate:
    mode = slowest_mode(W)
    cut = _smaller_side(W, conductance(W, mode=mode).cut)
    better = search_cuts(W, mode[1], cut_conductance(W, cut), _STATES)
    if better is None:
        return relaxation_certificate(W, cut, timer)
    cut = better if better.any() else cut
    order = frontier_order(W, mode[1], thorough=True)
    value = cut_conductance(W, cut)
    return Certificate(_interval(value, value, cut), {"kind": "frontier", "order": order})


def relaxation_certificate(W: MixingMatrix, cut: BoolArray, timer: Timer) -> Certificate:
    """A certificate by branch and bound; it restarts when a relaxation leads to a better cut."""
    while True:
        problem = Problem(W, cut, cut_conductance(W, cut))
        best = [cut]
        tree = prove(problem, timer, lambda Y: _finds_better(W, Y, best))  # noqa: B023
        if best[0] is cut:
            break
        cut = best[0]
    trees = [tree, spectral(problem, slowest_mode(W)[0])]
    tree = max(trees, key=lambda root: root.shown(problem))
    shown = tree.shown(problem)
    # The checker allows for rounding; so does the claimed end, unless all cells are closed.
    lower = problem.upper if shown >= problem.upper * (1 - EXACT) else shown * (1 - _SLACK)
    proof = {"kind": "relaxation", "units": problem.units, "tree": _tree(tree, problem)}
    return Certificate(_interval(lower, problem.upper, cut), proof)


def _finds_better(W: MixingMatrix, Y: FloatArray, best: list[BoolArray]) -> bool:
    """Whether refined cuts along a relaxation's main vectors beat the best; keeps the best one."""
    vectors = np.linalg.eigh(Y[:-1, :-1])[1][:, ::-1].T[:_ROUNDED]
    cuts = [refine(W, sweep_cut(W, vector)) for vector in vectors]
    found = min(cuts, key=lambda cut: cut_conductance(W, cut))
    if cut_conductance(W, found) >= cut_conductance(W, best[0]) - _ROUNDING:
        return False
    best[0] = found if 2 * found.sum() <= len(found) else ~found
    return True


def _smaller_side(W: MixingMatrix, cut: tuple[int, ...]) -> BoolArray:
    inside = np.zeros(W.shape[0], dtype=bool)
    inside[list(cut)] = True
    return inside if 2 * inside.sum() <= len(inside) else ~inside


def _interval(lower: float, upper: float, cut: BoolArray) -> Conductance:
    return Conductance(lower, upper, tuple(np.flatnonzero(cut).tolist()))


def _tree(node: Node, problem: Problem) -> dict[str, Any]:
    """A cell as JSON; a pair is given by the first entries of its groups."""
    if node.ratio(problem) >= node.shown_by_parts(problem):
        return {"bound": _bound(node, problem.num_devices)}
    parts = [_tree(part, problem) for part in node.parts]
    if node.pair is None:
        sizes = [[part.cell.smallest, part.cell.largest] for part in node.parts]
        return {"sizes": sizes, "parts": parts}
    first = [int(np.flatnonzero(node.cell.group == group)[0]) for group in node.pair]
    return {"pair": first, "parts": parts}


def _bound(node: Node, num_devices: int) -> dict[str, Any]:
    assert node.bounded is not None
    dual = node.bounded.dual
    used: IntArray = np.flatnonzero(dual.weights > 0)
    return {
        "slope": dual.slope,
        "limits": (dual.limits / num_devices).tolist(),
        "diagonal": dual.diagonal.tolist(),
        "triangles": dual.triangles[used].tolist(),
        "weights": dual.weights[used].tolist(),
    }
