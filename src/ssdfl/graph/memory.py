"""Refuse networks that cannot fit in memory before building them."""

from __future__ import annotations

from ssdfl.claims import check_memory
from ssdfl.errors import InputError

BYTES_PER_DEVICE, BYTES_PER_LINK = 800, 500
"""Bytes to build a graph; peaks were 101 MB for ring:n=100000, 77 MB for complete:n=600."""
MOST_DEVICES, MOST_LINKS = 1_000_000, 20_000_000
"""Larger networks are untested, and a short spec can ask for any number."""
_REMEDY = "Choose a smaller network."


def check_fits(what: str, num_devices: float, num_links: float) -> None:
    """Refuse a network that is over the limits, or needs more memory than this machine has.

    A network with fewer links than a tree is counted as a tree: links are added, or it is refused
    later.

    Raises:
        InputError: the network is too large.
    """
    num_links = max(num_links, num_devices - 1)
    got = f"{num_devices:,.0f} devices and {num_links:,.0f} links"
    if num_devices > MOST_DEVICES or num_links > MOST_LINKS:
        expected = f"at most {MOST_DEVICES:,} devices and {MOST_LINKS:,} links"
        raise InputError(what, got, expected, _REMEDY)
    check_memory(what, got, num_devices * BYTES_PER_DEVICE + num_links * BYTES_PER_LINK, _REMEDY)
