"""A step of the search for the sparsest cut (`sparsest_cut`) with few states: one by one.

Most clusters of a large network take a handful of states. Operations on such short arrays cost more
than the arithmetic in them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

State = tuple[int, int, float]
"""Sides of the devices of the frontier, size and cut of a partial set."""
Numbered = tuple[int, int, float, int]
"""A state and its number."""
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
        most: by the size that a set can reach, what it may cut to stay below the bound.
    """

    slot: int
    links: Links
    gone: int
    to_come: Collection[Links]
    upper: float
    half: int
    left: int
    most: list[float]


def pass_device(states: list[State], turn: Turn) -> tuple[list[int], list[State]]:
    """The numbers, among those outside and then those inside, of the states to keep; and these.

    They are kept by the same rules, and to the same bits, as in arrays.
    """
    divided = _divided(turn.to_come)
    numbers, kept = [], []
    for sides, size, cut, number in _undominated(sorted(_branched(states, turn)), turn.upper):
        if _stays_below(turn.most[size + turn.left], cut, sides, divided):
            numbers.append(number)
            kept.append((sides, size, cut))
    return numbers, kept


def _branched(states: list[State], turn: Turn) -> list[Numbered]:
    """Every state with the device outside and inside, as far as they do not cut too much."""
    links, left, most = turn.links, turn.left, turn.most
    linked = sum(weight for _, _, weight in links)
    kept, joined = ~turn.gone, 1 << turn.slot
    found = []
    for number, (sides, size, cut) in enumerate(states):
        inside = 0.0
        for _, slot, weight in links:
            if sides >> slot & 1:
                inside += weight
        outside_cut, inside_cut = cut + inside, cut + (linked - inside)
        if outside_cut < most[size + left]:
            found.append((sides & kept, size, outside_cut, number))
        if size < turn.half and inside_cut < most[size + 1 + left]:
            joint = (sides | joined) & kept
            found.append((joint, size + 1, inside_cut, number + len(states)))
    return found


def _undominated(states: Iterable[Numbered], upper: float) -> Iterator[Numbered]:
    """Of each frontier and size the least cut, unless a smaller set of the frontier does better."""
    frontier, last_size, least = -1, -1, 0.0
    for state in states:
        sides, size, cut, _ = state
        value = cut - upper * size
        if sides != frontier:
            yield state
            frontier, least = sides, value
        elif size != last_size:
            if value < least - TIE:
                yield state
            least = min(least, value)
        last_size = size


def _divided(to_come: Iterable[Links]) -> list[tuple[int, Links]]:
    """Later devices that a state may divide from some of the frontier: their slots, and links."""
    several = [links for links in to_come if len(links) > 1]
    return [(sum(1 << slot for _, slot, _ in links), links) for links in several]


def _stays_below(most: float, cut: float, sides: int, divided: list[tuple[int, Links]]) -> bool:
    """Whether a state will not cut too much for certain: later devices join either side."""
    bound = 0.0
    for slots, links in divided:
        there = sides & slots
        if there and there != slots:
            inside = outside = 0.0
            for _, slot, weight in links:
                if sides >> slot & 1:
                    inside += weight
                else:
                    outside += weight
            bound += min(inside, outside)
            if cut + bound >= most:
                return False
    return True
