"""Choose the devices that lie in an experiment."""

from __future__ import annotations

from collections.abc import Sequence

from ssdfl.errors import InputError
from ssdfl.graph import Network
from ssdfl.records.sections import FaultsSection
from ssdfl.rng import generator


def liars_of(faults: FaultsSection, network: Network, seed: int) -> tuple[int, ...]:
    """The devices that lie, in ascending order: the named ones, or the given number at random.

    Raises:
        InputError: no device has one of the names, or no honest device is left.
    """
    number = faults.liars if isinstance(faults.liars, int) else len(faults.liars)
    if number >= network.num_devices:
        expected = f"fewer than the {network.num_devices} devices"
        raise InputError("faults.liars", number, expected, "Leave at least one device honest.")
    if not isinstance(faults.liars, int):
        return _named(faults.liars, network.names)
    drawn = generator(seed, "liars").permutation(network.num_devices)[:number]
    return tuple(sorted(drawn.tolist()))


def _named(liars: Sequence[str], names: Sequence[str]) -> tuple[int, ...]:
    for liar in liars:
        if liar not in names:
            expected = f"names of devices, such as {', '.join(names[:3])}"
            raise InputError(
                "faults.liars", liar, expected, "ssdfl graph --save network.json writes names."
            )
    return tuple(sorted(names.index(liar) for liar in liars))
