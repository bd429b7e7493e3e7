"""The set of devices that conducts least: by trying all, or by a search that keeps few partial sets."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ssdfl.arrays import BoolArray, FloatArray, IntArray
from ssdfl.graph.mixing import MixingMatrix
from ssdfl.graph.spectrum import DENSE_LIMIT

EASY_STATES = 1 << 14  # states of a search that is tried before cuts are refined and orders compared
ENUMERATION_LIMIT = 12  # devices of which all sets are tried
_PATIENCE = 16  # a search may hold state_limit states at a time, and so many times that in all
_ROUNDING = 1e-12


def enumerate_cuts(W: FloatArray) -> BoolArray:
    """The set that conducts least, by trying all."""
    inside, sizes = _all_sets(len(W))
    cuts = ((inside @ W) * (1 - inside)).sum(axis=1)
    best: BoolArray = inside[np.argmin(np.round(cuts / sizes, 12))] > 0
    return best if best.sum() * 2 <= len(W) else ~best


@lru_cache(maxsize=ENUMERATION_LIMIT + 1)
def _all_sets(n: int) -> tuple[FloatArray, IntArray]:
    """(2^(n−1) − 1, n) every proper set with the first device in it, and how many are on the smaller side."""
    rest = np.arange(2 ** (n - 1) - 1)[:, None] >> np.arange(n - 1) & 1
    inside = np.concatenate([np.ones((len(rest), 1)), rest], axis=1)
    sizes = inside.sum(axis=1).astype(np.int64)
    return inside, np.minimum(sizes, n - sizes)


def search_cuts(W: MixingMatrix, fiedler: FloatArray, upper: float, state_limit: int) -> BoolArray | None:
    """The set that conducts least, if it conducts less than ``upper``; an empty one if none does.

    Devices are passed one by one, each on both sides of the cut. Two partial sets are told apart only by
    the sides of the devices that still have neighbours to come (the frontier) and by their sizes; of those
    that agree in these, the one with the least weight cut is kept. What cuts, or will cut, more than the
    best set of the largest size could is dropped: that is what keeps the states few.

    Returns:
        A mask, or None if there were more states than allowed.
    """
    n = W.shape[0]
    half = n // 2
    size_bits = half.bit_length()
    order = _frontier_order(W, fiedler, thorough=state_limit >= EASY_STATES)
    if n > DENSE_LIMIT or _frontier_widths(W, order).max() >= 62 - size_bits:
        return None
    ends = zip(W.indptr, W.indptr[1:], strict=False)
    weights = [dict(zip(W.indices[a:b].tolist(), W.data[a:b].tolist(), strict=True)) for a, b in ends]
    last = _last_neighbours(weights, order)
    sides, sizes, cuts = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros(1)
    slot_of: dict[int, int] = {}
    effort = 0
    history: list[tuple[IntArray, IntArray]] = []
    for step, v in enumerate(order):
        passed = [u for u in weights[v] if u in slot_of]
        to_inside = np.zeros(len(cuts))
        for u in passed:
            to_inside += weights[v][u] * (sides >> slot_of[u] & 1)
        linked = sum(weights[v][u] for u in passed)
        slot = next(k for k in range(n) if k not in slot_of.values())
        slot_of[v] = slot
        cuts = np.concatenate([cuts + to_inside, cuts + (linked - to_inside)])
        sides = np.concatenate([sides, sides | 1 << slot])
        chosen = np.repeat([0, 1], len(sizes))
        sizes = np.concatenate([sizes, sizes + 1])
        gone = sum(1 << slot_of.pop(u) for u in list(slot_of) if last[u] <= step)
        sides &= ~gone
        most = np.minimum(half, sizes + (n - 1 - step))
        kept = np.flatnonzero((sizes <= half) & (cuts < upper * most - _ROUNDING))
        kept = kept[_least_of_equals(sides[kept] << size_bits | sizes[kept], cuts[kept])]
        bound = cuts[kept] + _cut_to_come(weights, slot_of, order[step + 1 :], sides[kept])
        kept = kept[bound < upper * most[kept] - _ROUNDING]
        effort += len(kept)
        if len(kept) > state_limit or effort > _PATIENCE * state_limit:
            return None
        parents = kept % (len(chosen) // 2)
        history.append((parents, chosen[kept]))
        sides, sizes, cuts = sides[kept], sizes[kept], cuts[kept]
    return _trace_back(order, history, sizes, cuts)


def _cut_to_come(
    weights: list[dict[int, float]], slot_of: dict[int, int], to_come: list[int], sides: IntArray
) -> FloatArray:
    """A lower bound of what each state will cut yet: every device to come cuts its links to one side."""
    frontier = list(slot_of)
    near = [v for v in to_come if any(u in weights[v] for u in frontier)]
    rows = [[weights[v].get(u, 0.0) for v in near] for u in frontier]
    links = np.array(rows).reshape(len(frontier), len(near))
    inside = (sides[:, None] >> np.array(list(slot_of.values()), dtype=np.int64) & 1) @ links
    bound: FloatArray = np.minimum(inside, links.sum(axis=0) - inside).sum(axis=1)
    return bound


def _last_neighbours(weights: list[dict[int, float]], order: list[int]) -> dict[int, int]:
    """The step at which a device's last neighbour is passed."""
    place = {v: step for step, v in enumerate(order)}
    return {v: max(place[u] for u in weights[v]) for v in order}


def _least_of_equals(keys: IntArray, values: FloatArray) -> IntArray:
    """Where each key has its least value."""
    by_key = np.lexsort((values, keys))
    first = np.ones(len(keys), dtype=bool)
    first[1:] = keys[by_key[1:]] != keys[by_key[:-1]]
    return by_key[first]


def _trace_back(
    order: list[int], history: list[tuple[IntArray, IntArray]], sizes: IntArray, cuts: FloatArray
) -> BoolArray:
    members = np.zeros(len(order), dtype=bool)
    proper = np.flatnonzero(sizes > 0)
    if not len(proper):
        return members
    state = int(proper[np.argmin(cuts[proper] / sizes[proper])])
    for v, (parents, chosen) in zip(reversed(order), reversed(history), strict=True):
        members[v] = bool(chosen[state])
        state = int(parents[state])
    return members


def _frontier_order(W: MixingMatrix, fiedler: FloatArray, thorough: bool) -> list[int]:
    """An order of devices in which few of those passed still have neighbours to come.

    The Fiedler vector's order is good on elongated networks; a greedy one helps elsewhere.
    """
    along: list[int] = np.argsort(np.round(fiedler, 9), kind="stable").tolist()
    if not thorough or W.shape[0] > DENSE_LIMIT or _num_states(W, along) <= EASY_STATES:
        return along
    greedy = _greedy_order(_neighbour_masks(W), along[0])
    return min((along, greedy), key=lambda order: _num_states(W, order))


def _num_states(W: MixingMatrix, order: list[int]) -> float:
    """About how many states an order makes: the sum over steps of 2 to the frontier's width."""
    return float(np.exp2(_frontier_widths(W, order)).sum())


def _frontier_widths(W: MixingMatrix, order: list[int]) -> IntArray:
    """(n,) after each step, how many of the devices passed still have neighbours to come."""
    n = len(order)
    place = np.argsort(order)
    entries = W.tocoo()
    last = np.arange(n)
    np.maximum.at(last, place[entries.row], place[entries.col])
    change = np.zeros(n + 1, dtype=np.int64)
    np.add.at(change, np.arange(n), 1)
    np.add.at(change, last, -1)
    widths: IntArray = np.cumsum(change)[:n]
    return widths


def _neighbour_masks(W: MixingMatrix) -> list[int]:
    """Each device's neighbours as the bits of a number."""
    masks = [0] * W.shape[0]
    entries = W.tocoo()
    for i, j in zip(entries.row.tolist(), entries.col.tolist(), strict=True):
        if i != j:
            masks[i] |= 1 << j
    return masks


def _greedy_order(neighbours: list[int], first: int) -> list[int]:
    """Always pass the device that leaves the fewest behind with neighbours to come."""
    n = len(neighbours)
    frontier: list[int] = []
    order: list[int] = []
    to_come, v = (1 << n) - 1, first
    while True:
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
