"""Find the set of lowest cut conductance, by trying all or by a search that keeps few states."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np

from ssdfl.arrays import BoolArray, FloatArray, IntArray
from ssdfl.graph.few_states import ROUNDING, TIE, Links, State, Turn, pass_device
from ssdfl.graph.frontier import EASY_STATES, frontier_order, frontier_widths
from ssdfl.graph.mixing import MixingMatrix
from ssdfl.graph.spectrum import DENSE_LIMIT

ENUMERATION_LIMIT = 12  # devices of which all sets are tried
_PATIENCE = 16  # a search may hold state_limit states at a time, and 16 times that in all
_KEY_BITS = 62  # of an integer that holds a state's sides and size
_FEW = 40  # states that are passed one by one


def enumerate_cuts(W: FloatArray) -> BoolArray:
    """(k, n) the set of lowest conductance as a mask, of each of (k, n, n) matrices, by trying all.

    Examples:
        >>> path = np.array([[2, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 2]]) / 3
        >>> enumerate_cuts(path[None]).tolist()
        [[True, True, False, False]]
    """
    n = W.shape[-1]
    inside, sizes = _all_sets(n)
    cuts = ((inside @ W) * (1 - inside)).sum(axis=2)
    best: BoolArray = inside[np.argmin(np.round(cuts / sizes, 12), axis=1)] > 0
    return np.where(2 * best.sum(axis=1, keepdims=True) <= n, best, ~best)


@lru_cache(maxsize=ENUMERATION_LIMIT + 1)
def _all_sets(n: int) -> tuple[FloatArray, IntArray]:
    """(2^(n−1) − 1, n) every proper set with the first device, and the size of its smaller side."""
    rest = np.arange(2 ** (n - 1) - 1)[:, None] >> np.arange(n - 1) & 1
    inside = np.concatenate([np.ones((len(rest), 1)), rest], axis=1)
    sizes = inside.sum(axis=1).astype(np.int64)
    return inside, np.minimum(sizes, n - sizes)


def search_cuts(
    W: MixingMatrix, fiedler: FloatArray, upper: float, state_limit: int
) -> BoolArray | None:
    """The set of lowest conductance if that is below ``upper``; otherwise an empty set.

    Devices are passed one by one, each on both sides of the cut. Only two properties of a partial
    set matter: its size, and the sides of the devices that still have neighbours to come (the
    frontier). Among sets that agree in both, only the one with the smallest cut is kept, unless a
    smaller set with the same frontier has no larger cut − upper · size. Sets are also dropped if
    their cut is, or is bound to become, too large for the largest size they can reach. This keeps
    the number of states small.

    Returns:
        A mask, or None if there were more states than allowed.
    """
    order = frontier_order(W, fiedler, thorough=state_limit >= EASY_STATES)
    return CutSearch(W, order, upper).within(state_limit)


class CutSearch:
    """The search of `search_cuts`; one that reached its limit can be continued with a higher one.

    Attributes:
        order: in which devices are passed.
    """

    def __init__(self, W: MixingMatrix, order: list[int], upper: float) -> None:
        self._W, self.order = W, order
        self._best = np.zeros(len(order), dtype=bool)
        self._is_possible = _fits_a_key(W, order)
        if self._is_possible:
            self._start(upper)

    def _start(self, upper: float) -> None:
        self._search, self._effort = _Search(self._W, self.order, upper), 0

    def within(self, state_limit: int) -> BoolArray | None:
        """The best set as a mask, or None if there were more states than allowed."""
        if not self._is_possible:
            return None
        while not self._exceeds(state_limit):
            if not self._search.is_done:
                self._search.pass_next_device()
                self._effort += self._search.num_states
                continue
            found, upper = self._search.best_set()
            if not found.any():
                return self._best
            # Sets dropped at this bound may still have a better ratio: search again below it.
            self._best = found
            self._start(upper)
        return None

    def _exceeds(self, state_limit: int) -> bool:
        return self._search.num_states > state_limit or self._effort > _PATIENCE * state_limit


def _fits_a_key(W: MixingMatrix, order: list[int]) -> bool:
    """Whether a state's sides and size fit into one integer."""
    n = len(order)
    if n > DENSE_LIMIT:
        return False
    size_bits = (n // 2).bit_length()
    return bool(frontier_widths(W, order).max() < _KEY_BITS - size_bits)


class _Search:
    """The partial sets of the devices passed so far that may still become the best.

    Each device of the frontier has a slot: a bit of ``_sides`` that is set if it is in the set.
    """

    def __init__(self, W: MixingMatrix, order: list[int], upper: float) -> None:
        self._W, self._order, self._upper = W, order, upper
        self._half = len(order) // 2
        self._size_bits = self._half.bit_length()
        self._weights = _link_weights(W)
        self._place = {device: step for step, device in enumerate(order)}
        self._last_at = _last_neighbours(self._weights, self._place)
        self._slot_of: dict[int, int] = {}
        self._taken = 0
        self._to_come: dict[int, Links] = {}
        reached = range(len(order) + 1)
        self._most = [upper * min(self._half, size) - ROUNDING for size in reached]
        self._few: list[State] | None = [(0, 0, 0.0)]  # if None, states are in the arrays
        self._sides, self._sizes, self._cuts = _arrays_of(self._few)
        self.num_states = 1
        self._history: list[tuple[int, Sequence[int] | IntArray]] = []

    @property
    def is_done(self) -> bool:
        """Whether all devices have been passed."""
        return len(self._history) == len(self._order)

    @property
    def states(self) -> list[State]:
        """The partial sets kept."""
        if self._few is not None:
            return self._few
        arrays = (self._sides.tolist(), self._sizes.tolist(), self._cuts.tolist())
        return list(zip(*arrays, strict=True))

    def pass_next_device(self) -> None:
        """Put the next device on either side of every set; keep what may become the best."""
        before = self.num_states
        turn = self._next_turn(len(self._history))
        kept = self._pass_few(turn) if before <= _FEW else self._pass_many(turn)
        self.num_states = len(kept)
        self._history.append((before, kept))

    def _next_turn(self, step: int) -> Turn:
        """Give the next device the lowest free slot, and free those of devices that are done."""
        device = self._order[step]
        links = sorted(self._to_come.pop(device, ()))
        slot = (~self._taken & self._taken + 1).bit_length() - 1
        self._slot_of[device] = slot
        self._taken |= 1 << slot
        for neighbour, weight in self._weights[device].items():
            if self._place[neighbour] > step:
                self._to_come.setdefault(neighbour, []).append((device, slot, weight))
        gone = sum(1 << self._slot_of.pop(done) for done in self._last_at.get(step, ()))
        self._taken &= ~gone
        left = len(self._order) - step - 1
        to_come = self._to_come.values()
        return Turn(slot, links, gone, to_come, self._upper, self._half, left, self._most)

    def _pass_few(self, turn: Turn) -> list[int]:
        """Pass a device, state by state; the numbers of states that are kept."""
        kept, self._few = pass_device(self.states, turn)
        return kept

    def _pass_many(self, turn: Turn) -> IntArray:
        """The same with all states at once."""
        if self._few is not None:
            self._sides, self._sizes, self._cuts = _arrays_of(self._few)
            self._few = None
        self._branch(turn)
        kept = self._promising(turn)
        self._sides, self._sizes, self._cuts = (
            self._sides[kept],
            self._sizes[kept],
            self._cuts[kept],
        )
        return kept

    def _branch(self, turn: Turn) -> None:
        """Double the states: first those with the device outside, then those with it inside."""
        to_inside = self._weight_inside(turn.links)
        linked = sum(weight for _, _, weight in turn.links)
        self._cuts = np.concatenate([self._cuts + to_inside, self._cuts + (linked - to_inside)])
        self._sides = np.concatenate([self._sides, self._sides | 1 << turn.slot]) & ~turn.gone
        self._sizes = np.concatenate([self._sizes, self._sizes + 1])

    def _weight_inside(self, links: Links) -> FloatArray:
        """The weight of links to devices inside, of each state; added in order, for equal bits."""
        if not links:
            return np.zeros(len(self._sides))
        _, slots, weights = zip(*links, strict=True)
        inside = self._sides >> np.array(slots)[:, None] & 1
        added: FloatArray = np.add.accumulate(np.array(weights)[:, None] * inside, axis=0)[-1]
        return added

    def _promising(self, turn: Turn) -> IntArray:
        """The states to keep: those that may stay below the bound, one per frontier and size."""
        sizes, cuts = self._sizes, self._cuts
        most = self._upper * np.minimum(self._half, sizes + turn.left) - ROUNDING
        kept = np.flatnonzero((sizes <= self._half) & (cuts < most))
        keys = self._sides[kept] << self._size_bits | sizes[kept]
        kept = kept[_least_of_equals(keys, cuts[kept])]
        kept = kept[_undominated(self._sides[kept], cuts[kept] - self._upper * sizes[kept])]
        bound = cuts[kept] + self._cut_to_come(self._sides[kept])
        return kept[bound < most[kept]]

    @cached_property
    def _dense(self) -> FloatArray:
        """(n, n) in the order of devices, so that those to come are the last columns."""
        dense: FloatArray = self._W.toarray()[self._order][:, self._order]
        return dense

    def _cut_to_come(self, sides: IntArray) -> FloatArray:
        """A lower bound on what each state will still cut: later devices join either side."""
        first = len(self._history) + 1
        slots = np.array(list(self._slot_of.values()), dtype=np.int64)
        to_all = self._dense[[self._place[u] for u in self._slot_of], first:]
        links = np.compress(to_all.any(axis=0), to_all, axis=1)
        inside = (sides[:, None] >> slots & 1) @ links
        bound: FloatArray = np.minimum(inside, links.sum(axis=0) - inside).sum(axis=1)
        return bound

    def best_set(self) -> tuple[BoolArray, float]:
        """The kept set of lowest conductance as a mask, and its value; or no set, and the bound."""
        members = np.zeros(len(self._order), dtype=bool)
        ratios = [(cut / size, k) for k, (_, size, cut) in enumerate(self.states) if size > 0]
        if not ratios:
            return members, self._upper
        least, state = min(ratios)
        for v, (before, kept) in zip(reversed(self._order), reversed(self._history), strict=True):
            inside, state = divmod(int(kept[state]), before)
            members[v] = bool(inside)
        return members, least


def _arrays_of(states: list[State]) -> tuple[IntArray, IntArray, FloatArray]:
    sides, sizes, cuts = zip(*states, strict=True)
    return np.array(sides, dtype=np.int64), np.array(sizes, dtype=np.int64), np.array(cuts)


def _link_weights(W: MixingMatrix) -> list[dict[int, float]]:
    """For each device, the weights of its links by neighbour."""
    ends = zip(W.indptr, W.indptr[1:], strict=False)
    return [dict(zip(W.indices[a:b].tolist(), W.data[a:b].tolist(), strict=True)) for a, b in ends]


def _last_neighbours(
    weights: list[dict[int, float]], place: dict[int, int]
) -> dict[int, list[int]]:
    """The devices whose last neighbour is passed at each step."""
    found: dict[int, list[int]] = {}
    for device in place:
        found.setdefault(max(place[u] for u in weights[device]), []).append(device)
    return found


def _undominated(groups: IntArray, values: FloatArray) -> BoolArray:
    """Which values are less than all earlier ones of their group; groups are contiguous."""
    least = values.copy()
    shift = 1
    while shift < len(groups) and (groups[shift:] == groups[:-shift]).any():
        together = groups[shift:] == groups[:-shift]
        least[shift:] = np.where(together, np.minimum(least[shift:], least[:-shift]), least[shift:])
        shift *= 2
    first = np.ones(len(groups), dtype=bool)
    first[1:] = groups[1:] != groups[:-1]
    before = np.concatenate([[np.inf], least[:-1]])[: len(groups)]
    undominated: BoolArray = first | (values < before - TIE)
    return undominated


def _least_of_equals(keys: IntArray, values: FloatArray) -> IntArray:
    """The position of the lowest value of each key."""
    by_key = np.lexsort((values, keys))
    first = np.ones(len(keys), dtype=bool)
    first[1:] = keys[by_key[1:]] != keys[by_key[:-1]]
    return by_key[first]
