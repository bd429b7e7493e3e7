"""The set with the least cut conductance: by trying all, or by a search that keeps few states."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ssdfl.arrays import BoolArray, FloatArray, IntArray
from ssdfl.graph.frontier import EASY_STATES, frontier_order, frontier_widths
from ssdfl.graph.mixing import MixingMatrix
from ssdfl.graph.spectrum import DENSE_LIMIT

ENUMERATION_LIMIT = 12  # devices of which all sets are tried
_PATIENCE = 16  # a search may hold state_limit states at a time, and 16 times that in all
_KEY_BITS = 62  # of an integer that holds a state's sides and size
_ROUNDING = 1e-12
_TIE = 1e-13


def enumerate_cuts(W: FloatArray) -> BoolArray:
    """The set that conducts least, as a mask, by trying all."""
    inside, sizes = _all_sets(len(W))
    cuts = ((inside @ W) * (1 - inside)).sum(axis=1)
    best: BoolArray = inside[np.argmin(np.round(cuts / sizes, 12))] > 0
    return best if best.sum() * 2 <= len(W) else ~best


@lru_cache(maxsize=ENUMERATION_LIMIT + 1)
def _all_sets(n: int) -> tuple[FloatArray, IntArray]:
    """(2^(n−1) − 1, n) every proper set with the first device, and its smaller side's size."""
    rest = np.arange(2 ** (n - 1) - 1)[:, None] >> np.arange(n - 1) & 1
    inside = np.concatenate([np.ones((len(rest), 1)), rest], axis=1)
    sizes = inside.sum(axis=1).astype(np.int64)
    return inside, np.minimum(sizes, n - sizes)


def search_cuts(
    W: MixingMatrix, fiedler: FloatArray, upper: float, state_limit: int
) -> BoolArray | None:
    """The set that conducts least, if it conducts less than ``upper``; an empty one if none does.

    Devices are passed one by one, each on both sides of the cut. What matters of a partial set is
    its size and the sides of the devices that still have neighbours to come (the frontier). Of sets
    that agree in both, only the one that cuts least is kept, unless a smaller one with the same
    frontier has no larger cut − upper · size. Sets that already cut, or are bound to cut, too much
    for the largest size they can reach are dropped, too: this keeps the states few.

    Returns:
        A mask, or None if there were more states than allowed.
    """
    order = frontier_order(W, fiedler, thorough=state_limit >= EASY_STATES)
    if not _fits_a_key(W, order):
        return None
    best = np.zeros(len(order), dtype=bool)
    while True:
        # What was dropped at this bound may still have the better ratio: search again below it.
        found = _search_below(W, order, upper, state_limit)
        if found is None or not found[0].any():
            return None if found is None else best
        best, upper = found


def _search_below(
    W: MixingMatrix, order: list[int], upper: float, state_limit: int
) -> tuple[BoolArray, float] | None:
    """A set that conducts less than ``upper``, and what it conducts; empty if there is none."""
    search = _Search(W, order, upper)
    effort = 0
    for _ in order:
        search.pass_next_device()
        effort += search.num_states
        if search.num_states > state_limit or effort > _PATIENCE * state_limit:
            return None
    return search.best_set()


def _fits_a_key(W: MixingMatrix, order: list[int]) -> bool:
    """Whether a state's sides and size fit into one integer."""
    n = len(order)
    if n > DENSE_LIMIT:
        return False
    size_bits = (n // 2).bit_length()
    return bool(frontier_widths(W, order).max() < _KEY_BITS - size_bits)


class _Search:
    """All partial sets of the devices passed so far that may still become the best.

    Each device of the frontier has a slot, a bit of ``_sides`` that says whether it is in the set.
    """

    def __init__(self, W: MixingMatrix, order: list[int], upper: float) -> None:
        self._order, self._upper = order, upper
        self._half = len(order) // 2
        self._size_bits = self._half.bit_length()
        self._weights = _link_weights(W)
        # In the order of devices, so that those to come are the last columns.
        self._dense = W.toarray()[order][:, order]
        self._place = {device: step for step, device in enumerate(order)}
        self._last = _last_neighbours(self._weights, order)
        self._slot_of: dict[int, int] = {}
        self._sides = np.zeros(1, dtype=np.int64)
        self._sizes = np.zeros(1, dtype=np.int64)
        self._cuts = np.zeros(1)
        self._history: list[tuple[IntArray, IntArray]] = []

    @property
    def num_states(self) -> int:
        """How many partial sets are kept."""
        return len(self._cuts)

    def pass_next_device(self) -> None:
        """Put the next device on either side of every set; keep what may become the best."""
        step, before = len(self._history), self.num_states
        self._branch(self._order[step])
        self._free_slots(step)
        kept = self._promising(step)
        parents, chosen = kept % before, kept // before
        self._history.append((parents, chosen))
        self._sides, self._sizes, self._cuts = (
            self._sides[kept],
            self._sizes[kept],
            self._cuts[kept],
        )

    def _branch(self, device: int) -> None:
        """Double the states: first those with the device outside, then those with it inside."""
        links, slot_of = self._weights[device], self._slot_of
        passed = [u for u in links if u in slot_of]
        to_inside = self._weight_inside([links[u] for u in passed], [slot_of[u] for u in passed])
        linked = sum(links[u] for u in passed)
        taken = set(slot_of.values())
        slot = next(k for k in range(len(self._order)) if k not in taken)
        slot_of[device] = slot
        self._cuts = np.concatenate([self._cuts + to_inside, self._cuts + (linked - to_inside)])
        self._sides = np.concatenate([self._sides, self._sides | 1 << slot])
        self._sizes = np.concatenate([self._sizes, self._sizes + 1])

    def _weight_inside(self, weights: list[float], slots: list[int]) -> FloatArray:
        """The weight of links to devices inside, of each state; added in order, for equal bits."""
        if not slots:
            return np.zeros(self.num_states)
        inside = self._sides >> np.array(slots)[:, None] & 1
        added: FloatArray = np.add.accumulate(np.array(weights)[:, None] * inside, axis=0)[-1]
        return added

    def _free_slots(self, step: int) -> None:
        """Forget the sides of devices that have no neighbours to come."""
        finished = [u for u in self._slot_of if self._last[u] <= step]
        gone = sum(1 << self._slot_of.pop(u) for u in finished)
        self._sides &= ~gone

    def _promising(self, step: int) -> IntArray:
        """The states to keep: those that may stay below the bound, one per frontier and size."""
        sizes, cuts = self._sizes, self._cuts
        to_come = len(self._order) - step - 1
        most = self._upper * np.minimum(self._half, sizes + to_come) - _ROUNDING
        kept = np.flatnonzero((sizes <= self._half) & (cuts < most))
        keys = self._sides[kept] << self._size_bits | sizes[kept]
        kept = kept[_least_of_equals(keys, cuts[kept])]
        kept = kept[_undominated(self._sides[kept], cuts[kept] - self._upper * sizes[kept])]
        bound = cuts[kept] + self._cut_to_come(step + 1, self._sides[kept])
        return kept[bound < most[kept]]

    def _cut_to_come(self, first: int, sides: IntArray) -> FloatArray:
        """A lower bound on what each state will still cut: later devices join either side.

        Args:
            first: the step of the first later device.
            sides: of each state.
        """
        slots = np.array(list(self._slot_of.values()), dtype=np.int64)
        to_all = self._dense[[self._place[u] for u in self._slot_of], first:]
        links = np.compress(to_all.any(axis=0), to_all, axis=1)
        inside = (sides[:, None] >> slots & 1) @ links
        bound: FloatArray = np.minimum(inside, links.sum(axis=0) - inside).sum(axis=1)
        return bound

    def best_set(self) -> tuple[BoolArray, float]:
        """The kept set of least conductance as a mask, and its value; or none and the bound."""
        members = np.zeros(len(self._order), dtype=bool)
        proper = np.flatnonzero(self._sizes > 0)
        if not len(proper):
            return members, self._upper
        ratios = self._cuts[proper] / self._sizes[proper]
        state = int(proper[np.argmin(ratios)])
        for v, (parents, chosen) in zip(
            reversed(self._order), reversed(self._history), strict=True
        ):
            members[v] = bool(chosen[state])
            state = int(parents[state])
        return members, float(ratios.min())


def _link_weights(W: MixingMatrix) -> list[dict[int, float]]:
    """Of each device, the weights of its links by neighbour."""
    ends = zip(W.indptr, W.indptr[1:], strict=False)
    return [dict(zip(W.indices[a:b].tolist(), W.data[a:b].tolist(), strict=True)) for a, b in ends]


def _last_neighbours(weights: list[dict[int, float]], order: list[int]) -> dict[int, int]:
    """The step at which a device's last neighbour is passed."""
    place = {v: step for step, v in enumerate(order)}
    return {v: max(place[u] for u in weights[v]) for v in order}


def _undominated(groups: IntArray, values: FloatArray) -> BoolArray:
    """Which values are less than every earlier one of their group; groups lie together."""
    least = values.copy()
    shift = 1
    while shift < len(groups) and (groups[shift:] == groups[:-shift]).any():
        together = groups[shift:] == groups[:-shift]
        least[shift:] = np.where(together, np.minimum(least[shift:], least[:-shift]), least[shift:])
        shift *= 2
    first = np.ones(len(groups), dtype=bool)
    first[1:] = groups[1:] != groups[:-1]
    before = np.concatenate([[np.inf], least[:-1]])[: len(groups)]
    undominated: BoolArray = first | (values < before - _TIE)
    return undominated


def _least_of_equals(keys: IntArray, values: FloatArray) -> IntArray:
    """Where each key has its least value."""
    by_key = np.lexsort((values, keys))
    first = np.ones(len(keys), dtype=bool)
    first[1:] = keys[by_key[1:]] != keys[by_key[:-1]]
    return by_key[first]
