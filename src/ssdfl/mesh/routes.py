"""Who relays for whom: two neighbours of which neither can be dialled meet at a third device.

A relay is linked to both and can be dialled. Of the two, the one whose name sorts last dials.
Everything follows from the network and from who has an address, so all three agree without
exchanging messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import combinations

from ssdfl.errors import InputError
from ssdfl.graph import Network

MOST_RELAYS = 3
"""Relays of one pair; more would only keep more calls open."""

Relays = Mapping[str, tuple[str, ...]]
"""By neighbour, the relays through which it can be reached."""

Pair = tuple[str, str]
"""The device that dials, and the one that is dialled."""


@dataclass(frozen=True)
class Routes:
    """How a device uses relays, and for whom it is one.

    Attributes:
        dialled: neighbours that it dials through relays.
        awaited: neighbours that dial it through relays.
        relayed: neighbours of its own between which it relays.
    """

    dialled: Relays = field(default_factory=dict)
    awaited: Relays = field(default_factory=dict)
    relayed: frozenset[Pair] = frozenset()

    def joined(self, other: Routes) -> Routes:
        """These routes and others; where both have relays for a neighbour, the others'."""
        return Routes(
            {**self.dialled, **other.dialled},
            {**self.awaited, **other.awaited},
            self.relayed | other.relayed,
        )

    def without(self, gone: Collection[str]) -> Routes:
        """The same without some neighbours."""
        kept = {pair for pair in self.relayed if not set(pair) & set(gone)}
        return replace(
            self,
            dialled=_without(self.dialled, gone),
            awaited=_without(self.awaited, gone),
            relayed=frozenset(kept),
        )


DIRECT = Routes()
"""Routes of a mesh in which no device needs a relay."""


def _without(relays: Relays, gone: Collection[str]) -> Relays:
    return {
        name: tuple(one for one in through if one not in gone)
        for name, through in relays.items()
        if name not in gone
    }


def ordered(a: str, b: str) -> Pair:
    """Two devices, the one that dials first.

    Examples:
        >>> ordered("Oslo", "Rome"), ordered("Rome", "Oslo")
        (('Rome', 'Oslo'), ('Rome', 'Oslo'))
    """
    return max(a, b), min(a, b)


def routes_of(network: Network, name: str, listen: str, neighbours: Mapping[str, str]) -> Routes:
    """A device's routes.

    Args:
        listen: where it can be dialled, or empty.
        neighbours: where each of its neighbours can be dialled, or empty.
    """
    hidden = sorted(other for other, address in neighbours.items() if not address)
    linked = {other: _linked(network, other) for other in hidden}
    if listen:
        pairs = combinations(hidden, 2)
        return Routes(relayed=frozenset(ordered(a, b) for a, b in pairs if b in linked[a]))
    open_ones = {other for other, address in neighbours.items() if address}
    found = {other: _relays(name, other, open_ones & linked[other]) for other in hidden}
    return Routes(
        dialled={other: through for other, through in found.items() if other < name},
        awaited={other: through for other, through in found.items() if other > name},
    )


def _linked(network: Network, name: str) -> set[str]:
    """The names of a device's neighbours."""
    return {network.names[j] for j in network.neighbours(network.names.index(name))}


def _relays(a: str, b: str, common: Iterable[str]) -> tuple[str, ...]:
    """The relays of a pair; pairs differ in which they prefer, so that no relay serves all."""

    def rank(relay: str) -> bytes:
        return sha256("\0".join((*ordered(a, b), relay)).encode()).digest()

    return tuple(sorted(common, key=rank)[:MOST_RELAYS])


def check_routes(name: str, routes: Routes) -> None:
    """Refuse that a device and a neighbour cannot reach each other, not even through a relay.

    Raises:
        InputError: it names both.
    """
    for other, through in {**routes.dialled, **routes.awaited}.items():
        if not through:
            expected = "an address for one of them, or for a device that is linked to both"
            remedy = "Give one of them an address, or link both to a device that has one."
            got = f"none for {name} and {other}"
            raise InputError("addresses of neighbours", got, expected, remedy)


def check_dialling(network: Network, addresses: Sequence[str]) -> None:
    """Refuse two neighbours that cannot reach each other, not even through a relay.

    Args:
        addresses: (N,) where devices can be dialled, empty for those that cannot.

    Raises:
        InputError: it names them.
    """
    of = dict(zip(network.names, addresses, strict=True))
    for name in network.names:
        neighbours = {other: of[other] for other in sorted(_linked(network, name))}
        check_routes(name, routes_of(network, name, of[name], neighbours))
