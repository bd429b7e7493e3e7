"""What formation knows of all devices, from the facts that they have signed.

A device of which nothing is known, or which contradicts itself, counts as the average of the
others, and a link without a fact as the median link. So every device forms the same plan from the
same facts, complete or not.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.clusters import Device
from ssdfl.learning import DeviceConstants
from ssdfl.mesh.facts import FactBook, checked_device
from ssdfl.mesh.mesh_pb2 import Descriptor

FARTHEST = 100.0
"""A measured constant this many times the median is not believed."""
_CONSTANTS = ("gradient_bound", "initial_loss", "smoothness")


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What every device knows after the flood.

    Attributes:
        devices: descriptors of all devices, without samples.
        data_distance: (L,) for each link, in the network's order.
        measured: constants by index, of the devices that measured them.
        absent: names of the devices whose facts are not known.
    """

    devices: tuple[Device, ...]
    data_distance: FloatArray
    measured: Mapping[int, DeviceConstants]
    absent: tuple[str, ...] = ()


def knowledge(book: FactBook, like: Device) -> Knowledge:
    """What the facts in a book say, with the average where there is none."""
    known = {name: book.descriptor(name) for name in book.names}
    told = {name: one for name, one in known.items() if one is not None}
    devices = {name: checked_device(one, like, book.names) for name, one in told.items()}
    average = average_device(list(devices.values()))
    return Knowledge(
        tuple(devices.get(name, average) for name in book.names),
        _distances(book),
        believable(_measured(book.names, told)),
        tuple(name for name in book.names if name not in told),
    )


def _distances(book: FactBook) -> FloatArray:
    told = [book.distance(link) for link in book.links]
    known = [distance for distance in told if distance is not None]
    usual = statistics.median(known) if known else 0.0
    return np.array([usual if distance is None else distance for distance in told])


def _measured(names: Sequence[str], told: Mapping[str, Descriptor]) -> dict[int, DeviceConstants]:
    return {
        index: DeviceConstants(*(getattr(told[name], constant) for constant in _CONSTANTS))
        for index, name in enumerate(names)
        if name in told and told[name].measured
    }


def average_device(known: Sequence[Device]) -> Device:
    """A device like the others: their mean labels and sketch, and plain SGD.

    Examples:
        >>> average_device([Device(np.array([2.0, 0.0])), Device(np.array([0.0, 4.0]))]).labels
        array([1., 2.])
    """
    sketches = [device.sketch for device in known if device.sketch is not None]
    return Device(
        np.mean([device.labels for device in known], axis=0),
        sketch=np.mean(sketches, axis=0) if sketches else None,
        sketch_scale=float(np.mean([device.sketch_scale for device in known])),
    )


def believable(measured: Mapping[int, DeviceConstants]) -> dict[int, DeviceConstants]:
    """Measured constants without devices that claim many times what is usual.

    Formation takes the largest, so one absurd claim would decide for all. The reference is the
    lower median: of two, the smaller.

    Examples:
        >>> one, absurd = DeviceConstants(2.0, 1.0, 0.0), DeviceConstants(1e9, 1.0, 0.0)
        >>> list(believable({0: one, 3: absurd, 5: one}))
        [0, 5]
    """
    usual = [_usual([getattr(one, name) for one in measured.values()]) for name in _CONSTANTS]
    return {index: one for index, one in measured.items() if _is_near(one, usual)}


def _usual(values: Sequence[float]) -> float:
    positive = [value for value in values if value > 0]  # 0 is what some do not measure
    return statistics.median_low(positive) if positive else 0.0


def _is_near(one: DeviceConstants, usual: Sequence[float]) -> bool:
    return all(
        getattr(one, name) <= FARTHEST * value
        for name, value in zip(_CONSTANTS, usual, strict=True)
    )
