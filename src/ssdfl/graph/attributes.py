"""Read costs from file attributes, by names with units; report ignored attributes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ssdfl.errors import InputError

Attributes = Mapping[str, Any]
Units = Mapping[str, tuple[str, float]]

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_BYTES_PER_SECOND = {
    **{"Bps": 1.0, "kBps": 1e3, "MBps": 1e6, "GBps": 1e9},
    **{
        "bps": 1 / 8,
        "kbps": 1e3 / 8,
        "Mbps": 1e6 / 8,
        "mbps": 1e6 / 8,
        "Gbps": 1e9 / 8,
        "gbps": 1e9 / 8,
    },
}
LINK_UNITS: Units = {
    **{f"latency_{unit}": ("latency_s", scale) for unit, scale in _SECONDS.items()},
    **{f"delay_{unit}": ("latency_s", scale) for unit, scale in _SECONDS.items()},
    **{f"bandwidth_{unit}": ("bandwidth_Bps", scale) for unit, scale in _BYTES_PER_SECOND.items()},
    "LinkSpeedRaw": ("bandwidth_Bps", 1 / 8),
    "distance": ("distance_km", 1.0),
    "distance_km": ("distance_km", 1.0),
}
"""Attributes of links: the cost of each, and its factor. Topology Zoo's speed is in bit/s."""
DEVICE_UNITS: Units = {
    **{f"compute_{unit}": ("compute_s", scale) for unit, scale in _SECONDS.items()},
    **{f"uplink_{unit}": ("uplink_Bps", scale) for unit, scale in _BYTES_PER_SECOND.items()},
    **{f"downlink_{unit}": ("downlink_Bps", scale) for unit, scale in _BYTES_PER_SECOND.items()},
}
"""Attributes of devices: the cost of each, and its factor."""

_LONGITUDE = ("longitude", "lon", "lng", "long")
_LATITUDE = ("latitude", "lat")
_OF_LINKS = {"added", "id", "key"}
_OF_DEVICES = {"name", "label", "id", "x", "y", "pos", *_LONGITUDE, *_LATITUDE}
_COSTS = ("latency", "delay", "bandwidth", "compute", "uplink", "downlink")

MS_PER_KM, MS_PER_LINK = 0.0085, 4.0
"""Latency of a link by its length, as assumed in studies of these networks."""
_EARTH_RADIUS_KM = 6371.0


def read_costs(attributes: Attributes, units: Units, where: str) -> dict[str, float]:
    """The costs among the attributes of a link or device, in seconds, bytes and kilometres.

    Raises:
        InputError: a value is not a number, two attributes contradict each other, or a cost has no
            known unit.

    Examples:
        >>> read_costs({"latency_ms": 20, "bandwidth_Mbps": 8}, LINK_UNITS, "link a-b")
        {'latency_s': 0.02, 'bandwidth_Bps': 1000000.0}
    """
    costs: dict[str, float] = {}
    for name, value in attributes.items():
        if name not in units:
            _check_no_cost(name, value, units, where)
            continue
        cost, scale = units[name]
        number = _number(name, value, where) * scale
        if cost in costs and not math.isclose(costs[cost], number):
            got = f"{number:g} by {name}, {costs[cost]:g} by another attribute"
            raise InputError(f"{cost} of {where}", got, "one value", "Remove one of them.")
        costs[cost] = number
    return costs


def _check_no_cost(name: str, value: Any, units: Units, where: str) -> None:
    if name.lower().startswith(_COSTS):
        expected = f"one of {', '.join(units)}"
        raise InputError(
            f"attribute of {where}", f"{name} = {value}", expected, "Name it with its unit."
        )


def _number(name: str, value: Any, where: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        remedy = "Correct it or leave it out."
        raise InputError(f"{name} of {where}", value, "a number", remedy) from None


def coordinates_of(attributes: Attributes) -> tuple[float, float] | None:
    """Longitude and latitude of a device in degrees, by any of the usual names, or None.

    Raises:
        InputError: a value is not a number, or out of range.

    Examples:
        >>> coordinates_of({"Latitude": 52.4, "Longitude": 4.9})
        (4.9, 52.4)
    """
    lower = {name.lower(): value for name, value in attributes.items()}
    longitude = _degrees(lower, _LONGITUDE, 180.0)
    latitude = None if longitude is None else _degrees(lower, _LATITUDE, 90.0)
    return None if longitude is None or latitude is None else (longitude, latitude)


def _degrees(attributes: Attributes, names: Iterable[str], limit: float) -> float | None:
    """The first of these attributes that exists, validated; None if none exists."""
    name = next((name for name in names if attributes.get(name) not in (None, "")), None)
    if name is None:
        return None
    value = _number(name, attributes[name], "a device")
    if not abs(value) <= limit:
        raise InputError(name, value, f"degrees from {-limit:g} to {limit:g}", "Correct it.")
    return value


def great_circle_km(here: tuple[float, float], there: tuple[float, float]) -> float:
    """The distance of two places, given as longitude and latitude in degrees.

    Examples:
        >>> round(great_circle_km((0, 0), (0, 90)))  # a quarter of a meridian
        10008
    """
    (λ1, φ1), (λ2, φ2) = (map(math.radians, place) for place in (here, there))
    haversine = (
        math.sin((φ2 - φ1) / 2) ** 2 + math.cos(φ1) * math.cos(φ2) * math.sin((λ2 - λ1) / 2) ** 2
    )
    return 2 * _EARTH_RADIUS_KM * math.asin(math.sqrt(min(haversine, 1.0)))


def latency_of_distance(distance_km: float) -> float:
    """The latency in seconds of a link of this length.

    Examples:
        >>> latency_of_distance(1000)
        0.0125
    """
    return (MS_PER_LINK + MS_PER_KM * distance_km) * 1e-3


def ignored(attributes: Iterable[Attributes], units: Units, what: str) -> list[str]:
    """A line on attributes of links or devices that are not read; empty if all are.

    Examples:
        >>> ignored([{"LinkNote": "x", "latency_s": 1}], LINK_UNITS, "link")
        ['ignored attributes of links: LinkNote']
    """
    read = {*units, *(_OF_LINKS if what == "link" else _OF_DEVICES)}
    names = {name: None for one in attributes for name in one if name not in read}
    unread = [name for name in names if name.lower() not in (_LONGITUDE + _LATITUDE)]
    return [f"ignored attributes of {what}s: {', '.join(map(str, unread))}"] if unread else []
