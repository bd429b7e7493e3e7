"""Matchings: sets of links that share no device, so all can be used at once."""

from __future__ import annotations

from itertools import count

import numpy as np

from ssdfl.arrays import BoolArray, IntArray

Partners = list[dict[int, int]]
"""For every device, the neighbour at the end of each of its coloured links."""


def colour_links(num_devices: int, i: IntArray, j: IntArray) -> IntArray:
    """(L,) a colour for each link; links of one colour are a matching.

    By Misra and Gries ("A constructive proof of Vizing's theorem", 1992) there are at most Δ + 1
    colours, where Δ is the largest degree.

    Examples:
        >>> colour_links(3, np.array([0, 1]), np.array([1, 2])).tolist()
        [0, 1]
    """
    partners: Partners = [{} for _ in range(num_devices)]
    degree = np.bincount(np.concatenate([i, j]), minlength=num_devices)
    palette = range(int(degree.max(initial=0)) + 1)
    links = list(zip(i.tolist(), j.tolist(), strict=True))
    for u, v in links:
        _colour_link(partners, u, v, palette)
    found = {(u, v): colour for u, of in enumerate(partners) for colour, v in of.items()}
    return np.array([found[link] for link in links], dtype=np.int64)


def _colour_link(partners: Partners, u: int, v: int, palette: range) -> None:
    """Give a new link the first colour that is free at both ends, or free one."""
    taken = partners[u].keys() | partners[v].keys()
    shared = next((colour for colour in palette if colour not in taken), None)
    if shared is None:
        _shift_colours(partners, u, v)
    else:
        partners[u][shared], partners[v][shared] = v, u


def _shift_colours(partners: Partners, u: int, v: int) -> None:
    """Colour a link whose ends share no free colour, by shifting colours along a fan at u."""
    fan, colours = _fan(partners, u, v)
    at_u, at_end = _free(partners, u), _free(partners, fan[-1])
    _swap_along_path(partners, u, at_u, at_end)
    colours = [at_u if colour == at_end else colour for colour in colours]
    last = next(k for k, device in enumerate(fan) if at_end not in partners[device])
    for device, colour in zip(fan[1 : last + 1], colours, strict=False):
        del partners[u][colour], partners[device][colour]
    for device, colour in zip(fan[: last + 1], [*colours[:last], at_end], strict=True):
        partners[u][colour], partners[device][colour] = device, u


def _fan(partners: Partners, u: int, v: int) -> tuple[list[int], list[int]]:
    """A fan at u that starts at v, and its colours; each is free at the neighbour before."""
    fan, colours = [v], list[int]()
    rest = dict(partners[u])
    while True:
        colour = next((c for c in rest if c not in partners[fan[-1]]), None)
        if colour is None:
            return fan, colours
        fan.append(rest.pop(colour))
        colours.append(colour)


def _free(partners: Partners, device: int) -> int:
    """The first colour that no link of a device has."""
    return next(colour for colour in count() if colour not in partners[device])


def _swap_along_path(partners: Partners, u: int, at_u: int, other: int) -> None:
    """Swap two colours along their alternating path from u, where the first one is free."""
    path, device, colour = [], u, other
    while colour in partners[device]:
        neighbour = partners[device][colour]
        path.append((device, neighbour, colour))
        device, colour = neighbour, at_u + other - colour
    for a, b, colour in path:
        del partners[a][colour], partners[b][colour]
    for a, b, colour in path:
        swapped = at_u + other - colour
        partners[a][swapped], partners[b][swapped] = b, a


def random_matching(
    num_devices: int, i: IntArray, j: IntArray, rng: np.random.Generator
) -> BoolArray:
    """(L,) a random maximal matching: take links in random order unless they touch a taken one.

    Examples:
        >>> both = random_matching(4, np.array([0, 2]), np.array([1, 3]), np.random.default_rng(0))
        >>> both.tolist()
        [True, True]
    """
    turn = rng.permutation(len(i))
    taken = np.zeros(len(i), dtype=bool)
    free = np.arange(len(i))
    while len(free):
        # A link that comes before all others at both of its ends is taken in any case.
        first = np.full(num_devices, len(i))
        np.minimum.at(first, i[free], turn[free])
        np.minimum.at(first, j[free], turn[free])
        chosen = free[(turn[free] == first[i[free]]) & (turn[free] == first[j[free]])]
        taken[chosen] = True
        busy = np.zeros(num_devices, dtype=bool)
        busy[i[chosen]] = busy[j[chosen]] = True
        free = free[~busy[i[free]] & ~busy[j[free]]]
    return taken
