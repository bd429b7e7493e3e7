"""Networks that cannot fit in memory are refused before they are tried."""

from __future__ import annotations

from ssdfl.errors import InputError
from ssdfl.machine import memory_bytes

BYTES_PER_DEVICE, BYTES_PER_LINK = 800, 500
"""Of a graph while it is made. Peaks of 101 MB were seen for ring:n=100000, 77 MB for complete:n=600."""


def check_fits(what: str, num_devices: float, num_links: float) -> None:
    """Refuse a network that would need more memory than this machine has.

    A network of fewer links than a tree is not connected and gets more, or is refused later.

    Raises:
        InputError: it is too large.
    """
    num_links = max(num_links, num_devices - 1)
    got = f"{num_devices:,.0f} devices and {num_links:,.0f} links"
    check_memory(what, got, num_devices * BYTES_PER_DEVICE + num_links * BYTES_PER_LINK)


def check_memory(what: str, got: str, needed_bytes: float) -> None:
    """Refuse what would need more memory than this machine has.

    Raises:
        InputError: it is too large.
    """
    there = memory_bytes()
    if needed_bytes > there:
        expected = (
            f"what fits into {there / 1e9:.3g} GB of memory (this needs about {needed_bytes / 1e9:.3g})"
        )
        raise InputError(what, got, expected, "Choose a smaller network.")
