"""A step of the search for the sparsest cut (`sparsest_cut`) with few states: one by one.

Most clusters of a large network take a handful of states. Operations on such short arrays cost more
than the arithmetic in them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

State = tuple[int, int, float]
"""Sides of the devices of the frontier, size and cut of a partial set."""
Links = list[tuple[int, int, float]]
"""Links of a device to the frontier: to which device, its slot, and the weight."""

ROUNDING = 1e-12
TIE = 1e-13


@dataclass(frozen=True)
class Turn:
    """The device that is passed in a step, and what is then left to come.

    Attributes:
        slot: the device's own.
        links: to devices passed before it, by their numbers.
        gone: the slots that are free from now on, as bits.
        to_come: the links of each later device to the frontier.
        upper: the conductance that a set must stay below.
        half: how many devices a set may have.
        left: how many devices are to come.
    """

    slot: int
    links: Links
    gone: int
    to_come: Collection[Links]
    upper: float
    half: int
    left: int

    def most(self, size: int) -> float:
        """What a set may cut at this step if it is to stay below the bound at any later size."""
        return self.upper * min(self.half, size + self.left) - ROUNDING


def pass_device(states: list[State], turn: Turn) -> list[tuple[int, State]]:
    """The states to keep, each with its number among those outside and then those inside.

    They are kept by the same rules, and to the same bits, as in arrays.
    """
    numbered = sorted(_branched(states, turn), key=_by_frontier)
    return [
        (number, state)
        for number, state in _undominated(numbered, turn.upper)
        if state[2] + _cut_to_come(turn.to_come, state[0]) < turn.most(state[1])
    ]


def _by_frontier(numbered: tuple[int, State]) -> tuple[State, int]:
    number, state = numbered
    return state, number


def _branched(states: list[State], turn: Turn) -> list[tuple[int, State]]:
    """Every state with the device outside and inside, as far as they do not cut too much."""
    linked = sum(weight for _, _, weight in turn.links)
    kept, joined = ~turn.gone, 1 << turn.slot
    found = []
    for number, (sides, size, cut) in enumerate(states):
        inside = _weight_inside(turn.links, sides)
        outside_cut, inside_cut = cut + inside, cut + (linked - inside)
        if outside_cut < turn.most(size):
            found.append((number, (sides & kept, size, outside_cut)))
        if size < turn.half and inside_cut < turn.most(size + 1):
            found.append((number + len(states), ((sides | joined) & kept, size + 1, inside_cut)))
    return found


def _weight_inside(links: Links, sides: int) -> float:
    """The weight of links to devices inside, added in order."""
    weight_inside = 0.0
    for _, slot, weight in links:
        if sides >> slot & 1:
            weight_inside += weight
    return weight_inside


def _undominated(numbered: list[tuple[int, State]], upper: float) -> list[tuple[int, State]]:
    """Of each frontier and size the least cut, unless a smaller set of the frontier does better."""
    found: list[tuple[int, State]] = []
    frontier, last_size, least = -1, -1, 0.0
    for number, (sides, size, cut) in numbered:
        value = cut - upper * size
        if sides != frontier:
            found.append((number, (sides, size, cut)))
            frontier, least = sides, value
        elif size != last_size:
            if value < least - TIE:
                found.append((number, (sides, size, cut)))
            least = min(least, value)
        last_size = size
    return found


def _cut_to_come(to_come: Iterable[Links], sides: int) -> float:
    """A lower bound on what a state will still cut: later devices join either side."""
    bound = 0.0
    for links in to_come:
        inside = outside = 0.0
        for _, slot, weight in links:
            if sides >> slot & 1:
                inside += weight
            else:
                outside += weight
        bound += min(inside, outside)
    return bound
