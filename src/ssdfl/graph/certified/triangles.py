"""Triangle inequalities: two of three entries ±1 agree, so a signed sum of products is ≥ −1.

A triangle is a row (i, j, k, kind) with i < j < k; its kind is a row of `SIGNS`.
"""

from __future__ import annotations

import numpy as np

from ssdfl.arrays import FloatArray, IntArray

SIGNS = np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)])
_ENDS = ((0, 1), (0, 2), (1, 2))
_PER_ENTRY = 200  # the most per first entry and kind: diverse ones help more than the worst


def none() -> IntArray:
    """No triangles."""
    return np.zeros((0, 4), dtype=np.int64)


def slack(Y: FloatArray, triangles: IntArray) -> FloatArray:
    """The distance of each inequality from its limit; negative if Y violates it."""
    i, j, k, kind = triangles.T
    signs = SIGNS[kind]
    gap: FloatArray = 1 + signs[:, 0] * Y[i, j] + signs[:, 1] * Y[i, k] + signs[:, 2] * Y[j, k]
    return gap


def combined(triangles: IntArray, weights: FloatArray, size: int) -> FloatArray:
    """The weighted sum of the triangles' quadratic forms, a symmetric matrix."""
    total = np.zeros(size * size)
    signs = SIGNS[triangles[:, 3]]
    for pair, (a, b) in enumerate(_ENDS):
        places = triangles[:, a] * size + triangles[:, b]
        total += np.bincount(places, weights * signs[:, pair] / 2, minlength=size * size)
    half: FloatArray = total.reshape(size, size)
    return half + half.T


def violated(Y: FloatArray, most: int, tolerance: float) -> IntArray:
    """The triangles that Y violates by more than a tolerance, the worst first, at most ``most``."""
    found = [_violated_at(Y, first, tolerance) for first in range(len(Y) - 2)]
    triangles = np.concatenate([none(), *found])
    return triangles[np.argsort(slack(Y, triangles), kind="stable")[:most]]


def _violated_at(Y: FloatArray, first: int, tolerance: float) -> IntArray:
    """The violated triangles whose first entry is given."""
    row, rest = Y[first, first + 1 :], Y[first + 1 :, first + 1 :]
    left, right = np.triu_indices(len(row), 1)
    products = np.stack([row[left], row[right], rest[left, right]])
    found = []
    for kind, signs in enumerate(SIGNS):
        gap = 1 + signs @ products
        worst = np.flatnonzero(gap < -tolerance)
        if len(worst) > _PER_ENTRY:
            worst = worst[np.argpartition(gap[worst], _PER_ENTRY)[:_PER_ENTRY]]
        places = np.stack([left[worst] + first + 1, right[worst] + first + 1], axis=1)
        found.append(np.insert(np.insert(places, 0, first, axis=1), 3, kind, axis=1))
    return np.concatenate(found)


def codes(triangles: IntArray, size: int) -> IntArray:
    """One number for each triangle, for comparisons."""
    i, j, k, kind = triangles.T
    numbers: IntArray = ((i * size + j) * size + k) * 4 + kind
    return numbers


def after_merge(triangles: IntArray, kept: int, gone: int, sign: int) -> tuple[IntArray, IntArray]:
    """The triangles after ``gone`` became ``sign`` times ``kept``, and their old indices.

    Triangles with both entries are dropped, since they say nothing any more. A changed sign makes
    another kind of triangle.
    """
    ends = triangles[:, :3]
    alive = np.flatnonzero(~((ends == kept).any(axis=1) & (ends == gone).any(axis=1)))
    ends, signs = ends[alive], SIGNS[triangles[alive, 3]].copy()
    for pair, (a, b) in enumerate(_ENDS):
        touched = (ends[:, a] == gone) | (ends[:, b] == gone)
        signs[touched, pair] *= sign
    moved = np.where(ends == gone, kept, ends - (ends > gone))
    return _in_order(moved, signs), alive


def _in_order(ends: IntArray, signs: IntArray) -> IntArray:
    """Rows with ascending ends; the pair opposite to an end keeps its sign."""
    order = np.argsort(ends, axis=1)
    # Pair 0 leaves out end 2, pair 1 end 1, and pair 2 end 0.
    without = signs[:, ::-1]
    ordered = np.take_along_axis(without, order, axis=1)[:, ::-1]
    kind = (ordered[:, None, :] == SIGNS[None]).all(axis=2).argmax(axis=1)
    return np.column_stack([np.take_along_axis(ends, order, axis=1), kind])
