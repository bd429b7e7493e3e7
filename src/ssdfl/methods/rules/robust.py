"""Rules that tolerate wrong messages from a few neighbours."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ssdfl.errors import check_range
from ssdfl.methods.moment import Moment, Rows
from ssdfl.methods.rules.base import Heard, Inbox, Memory, Move, Rule


class RobustRule(Rule):
    """Sends like `cta`; combines own and neighbours' parameters robustly, and adds the move."""

    linear = False

    def receive(
        self, at: Moment, theta: Rows, move: Move, memory: Memory, heard: Heard
    ) -> tuple[Rows, Memory]:
        """The combined parameters plus the move; without messages, a device keeps its own."""
        after = theta.clone()
        for inbox in heard.each():
            after[inbox.places] = self.combined(theta[inbox.places], inbox)
        return move.added_to(after), memory

    @abstractmethod
    def combined(self, own: Rows, inbox: Inbox) -> Rows:
        """(g, d) the combination of g devices' own parameters with their inboxes."""


@dataclass(frozen=True)
class Clipped(RobustRule):
    """ClippedGossip: limits how far a neighbour can pull a device.

        x⁺ = x + Σ_j w_ij clip(x_j − x, τ_i) − η g,  clip(v, τ) = v min(1, τ / ‖v‖)

    With ``radius = 0`` a device sets τ_i at each step to the distance of its (liars + 1)-th
    farthest neighbour, so that at most ``liars`` messages are clipped. A fixed radius of ∞ makes it
    `cta`.

    Source: He, Karimireddy and Jaggi, Byzantine-robust decentralized learning via ClippedGossip,
    2022; the adaptive radius is from its authors' code.
    """

    radius: float = 0.0
    liars: int = 1

    def __post_init__(self) -> None:
        check_range("radius", self.radius, 0, remedy="0 adapts it; inf clips nothing.")
        check_range("liars", self.liars, 0)

    def combined(self, own: Rows, inbox: Inbox) -> Rows:
        """Own parameters plus the clipped pulls of the neighbours."""
        apart = inbox.rows - own
        distances = apart.norm(dim=-1)
        radius = self.radius or self._radius(distances)
        left = (radius / distances.clamp(min=1e-30)).clamp(max=1)
        return apart.mul_((inbox.weights * left)[:, :, None]).sum(0).add_(own)

    def _radius(self, distances: Rows) -> Rows:
        """(g,) the distance that all but a few neighbours do not exceed."""
        place = max(0, len(distances) - 1 - self.liars)
        return distances.sort(0).values[place]


@dataclass(frozen=True)
class Trimmed(RobustRule):
    """Trimmed mean: in every coordinate, the mean without the largest and the smallest values.

        x⁺ = mean of own and neighbours' values without the b largest and b smallest − η g

    It tolerates b = ``liars`` wrong neighbours. A device with too few neighbours to drop 2 b values
    keeps its own parameters.

    Source: Yin, Chen, Kannan and Bartlett, Byzantine-robust distributed learning, ICML 2018; Fang,
    Yang and Bajwa, BRIDGE, IEEE TSIPN 2022.
    """

    liars: int = 1

    def __post_init__(self) -> None:
        check_range("liars", self.liars, 0)

    def combined(self, own: Rows, inbox: Inbox) -> Rows:
        """The trimmed mean of own and neighbours' parameters."""
        count = len(inbox.rows) + 1
        left = range(self.liars, count - self.liars)
        if not left:
            return own
        return _mean_of_ordered([own, *inbox.rows], left)


@dataclass(frozen=True)
class Median(RobustRule):
    """Coordinate-wise median of own and neighbours' parameters.

        x⁺ = median of own and neighbours' values − η g

    It tolerates wrong neighbours if they are fewer than half of a device and its neighbours.

    Source: Yin, Chen, Kannan and Bartlett, Byzantine-robust distributed learning, ICML 2018.
    """

    def combined(self, own: Rows, inbox: Inbox) -> Rows:
        """The median of own and neighbours' parameters."""
        return median([own, *inbox.rows])


def median(rows: list[Rows]) -> Rows:
    """The median of several rows in every coordinate.

    Examples:
        >>> import torch
        >>> median([torch.tensor([0.0, 5.0]), torch.tensor([1.0, 6.0])]).tolist()
        [0.5, 5.5]
    """
    return _mean_of_ordered(rows, range((len(rows) - 1) // 2, len(rows) // 2 + 1))


def _mean_of_ordered(rows: list[Rows], wanted: range) -> Rows:
    """The mean of the values at the ``wanted`` ranks, in every coordinate.

    Whole rows are compared and exchanged, which is much faster than sorting the few values of each
    coordinate.
    """
    for low, high, needed in _exchanges(len(rows), wanted):
        one, other = rows[low], rows[high]
        if low in needed:
            rows[low] = one.minimum(other)
        if high in needed:
            rows[high] = one.maximum(other)
    total = rows[wanted[0]].clone()
    for place in wanted[1:]:
        total += rows[place]
    return total.div_(len(wanted))


Exchange = tuple[int, int, frozenset[int]]
"""Two positions, for the smaller and the larger value, and which of them is needed later."""


@lru_cache(maxsize=1024)
def _exchanges(count: int, wanted: range) -> tuple[Exchange, ...]:
    """The pairs to compare, in order, after which the wanted positions hold the sorted values.

    Of two sorting networks, the one with fewer operations is used: removing a few values at the
    ends is cheaper than sorting all.
    """
    networks = (_merge_exchange(count), _ends_taken_off(count, wanted))
    return min((_needed(list(pairs), wanted) for pairs in networks), key=_operations)


def _needed(pairs: list[tuple[int, int]], wanted: range) -> tuple[Exchange, ...]:
    """The exchanges of a network on which the wanted positions depend."""
    needed, kept = set(wanted), []
    for low, high in reversed(pairs):
        later = frozenset({low, high} & needed)
        if later:
            needed |= {low, high}
            kept.append((low, high, later))
    return tuple(reversed(kept))


def _operations(exchanges: tuple[Exchange, ...]) -> int:
    return sum(len(needed) for _, _, needed in exchanges)


def _ends_taken_off(count: int, wanted: range) -> Iterator[tuple[int, int]]:
    """Move the smallest values below the wanted positions, then the largest above, one by one.

    The values left in the wanted positions are not sorted, since they are only summed.
    """
    for place in range(wanted[0]):
        yield from ((place, other) for other in range(place + 1, count))
    for place in range(count - 1, wanted[-1], -1):
        yield from ((other, place) for other in range(wanted[0], place))


def _merge_exchange(count: int) -> Iterator[tuple[int, int]]:
    """Batcher's network that sorts ``count`` values (Knuth, volume 3, 5.2.2, Algorithm M)."""
    first = 1 << max(0, (count - 1).bit_length() - 1)
    p = first
    while p > 0:
        q, r, d = first, 0, p
        while True:
            yield from ((i, i + d) for i in range(count - d) if i & p == r)
            if q == p:
                break
            d, q, r = q - p, q >> 1, p
        p >>= 1
