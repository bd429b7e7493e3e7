"""Orders of devices with a narrow frontier: few passed devices still have neighbours to come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.graph.mixing import MixingMatrix, places_of
from ssdfl.graph.spectrum import DENSE_LIMIT

EASY_STATES = (
    1 << 14
)  # states of a search that is tried before cuts are refined and orders compared


def frontier_order(W: MixingMatrix, fiedler: FloatArray, thorough: bool) -> list[int]:
    """An order of devices with a narrow frontier.

    The Fiedler vector's order is good on elongated networks. A thorough search also tries a greedy
    order.
    """
    along: list[int] = np.argsort(np.round(fiedler, 9), kind="stable").tolist()
    too_many = W.shape[0] > DENSE_LIMIT
    if not thorough or too_many or _num_states(W, along) <= EASY_STATES:
        return along
    greedy = _greedy_order(_neighbour_masks(W), along[0])
    return min((along, greedy), key=lambda order: _num_states(W, order))


def frontier_widths(W: MixingMatrix, order: Sequence[int]) -> IntArray:
    """(n,) after each step, the number of passed devices that still have neighbours to come."""
    n = len(order)
    place = np.argsort(order)
    row, column = places_of(W)
    last = np.arange(n)
    np.maximum.at(last, place[row], place[column])
    change = np.zeros(n + 1, dtype=np.int64)
    np.add.at(change, np.arange(n), 1)
    np.add.at(change, last, -1)
    widths: IntArray = np.cumsum(change)[:n]
    return widths


def _num_states(W: MixingMatrix, order: Sequence[int]) -> float:
    """The approximate number of states of an order: the sum over steps of 2 to the width."""
    return float(np.exp2(frontier_widths(W, order)).sum())


def _neighbour_masks(W: MixingMatrix) -> list[int]:
    """Each device's neighbours as the bits of a number."""
    masks = [0] * W.shape[0]
    entries = W.tocoo()
    for i, j in zip(entries.row.tolist(), entries.col.tolist(), strict=True):
        if i != j:
            masks[i] |= 1 << j
    return masks


def _greedy_order(neighbours: list[int], first: int) -> list[int]:
    """An order that always passes the device that leaves the narrowest frontier."""
    order = [first]
    to_come = (1 << len(neighbours)) - 1 & ~(1 << first)
    frontier = [first]
    while to_come:
        device = _fewest_left_behind(neighbours, frontier, to_come)
        order.append(device)
        to_come &= ~(1 << device)
        frontier = [u for u in [*frontier, device] if neighbours[u] & to_come]
    return order


def _fewest_left_behind(neighbours: list[int], frontier: list[int], to_come: int) -> int:
    """The device next to the frontier that leaves it narrowest; ties go to the first."""
    reach = 0
    for device in frontier:
        reach |= neighbours[device] & to_come
    candidates = [u for u in range(len(neighbours)) if reach >> u & 1]

    def left_behind(candidate: int) -> int:
        rest = to_come & ~(1 << candidate)
        return sum(1 for u in (*frontier, candidate) if neighbours[u] & rest)

    return min(candidates, key=left_behind)
