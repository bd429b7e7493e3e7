"""Fit a plan to a network: match devices by name, and name those that do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ssdfl.clusters.candidates import Candidate
from ssdfl.clusters.partition import Cluster, Clusters, labels_of
from ssdfl.clusters.plan import Plan
from ssdfl.errors import InputError
from ssdfl.graph import Network, component_labels, links_within

_LISTED = 8


@dataclass(frozen=True)
class Misfit:
    """The reasons why a plan does not fit a network.

    Attributes:
        new: devices of the network that the plan does not have.
        gone: devices of the plan that the network does not have.
        moved: devices that have lost the links to the rest of their cluster.
    """

    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.moved)

    def __str__(self) -> str:
        """The differences as text.

        Examples:
            >>> print(Misfit(new=("oslo",), gone=("rome", "paris")))
            1 device new (oslo), 2 devices gone (rome, paris)
        """
        parts = {"new": self.new, "gone": self.gone, "moved away from their cluster": self.moved}
        return ", ".join(_counted(names, what) for what, names in parts.items() if names)


def _counted(names: Sequence[str], what: str) -> str:
    noun = "device" if len(names) == 1 else "devices"
    return f"{len(names)} {noun} {what} ({listed_names(names)})"


def listed_names(names: Sequence[str], most: int = _LISTED) -> str:
    """Names for a line of text; only the first ones, and a count, if there are many.

    Examples:
        >>> listed_names(["a", "b", "c"], most=2)
        'a, b, … and 1 more'
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])}, … and {len(names) - most} more"


def misfit(plan: Plan, network: Network) -> Misfit:
    """The reasons why a plan does not fit a network; falsy if it fits.

    A plan without names, from an old file or made by hand, is matched by the devices' numbers.
    """
    ours = plan.names or _numbers(plan.num_devices)
    theirs = network.names if plan.names else _numbers(network.num_devices)
    found = Misfit(new=missing_in(ours, theirs), gone=missing_in(theirs, ours))
    return found or Misfit(moved=_moved(_on(plan, network), network))


def _numbers(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def missing_in(known: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """The names that are not known, in order.

    Examples:
        >>> missing_in(["a"], ["b", "a", "c"])
        ('b', 'c')
    """
    there = set(known)
    return tuple(name for name in names if name not in there)


def _moved(plan: Plan, network: Network) -> tuple[str, ...]:
    """Devices that are not connected to the largest part of their cluster within the cluster."""
    labels = labels_of(plan.clusters, network.num_devices)
    part = component_labels(links_within(network.adjacency, labels))
    sizes = np.bincount(part)
    main = [
        max(part[list(cluster)], key=lambda one: (sizes[one], -one)) for cluster in plan.clusters
    ]
    return tuple(network.names[i] for i in np.flatnonzero(part != np.array(main)[labels]))


def fitting_plan(plan: Plan, network: Network) -> Plan:
    """The plan with the network's numbers for its devices, if it fits the network.

    Raises:
        InputError: devices are new, gone or moved.

    Examples:
        >>> from ssdfl.graph import make_network
        >>> plan = Plan(((0, 1), (2,)), "by hand", names=("paris", "rome", "oslo"))
        >>> there = make_network(3, [(0, 1), (1, 2)], names=["oslo", "paris", "rome"])
        >>> fitting_plan(plan, there).clusters
        ((0,), (1, 2))
    """
    found = misfit(plan, network)
    if found:
        expected = f"the {network.num_devices} devices of {network.title}, clusters connected in it"
        remedy = (
            "Repair it with ssdfl plan NETWORK --repair plan.json, "
            "or make a new one with ssdfl plan NETWORK --out plan.json."
        )
        raise InputError("plan for this network", str(found), expected, remedy)
    return _on(plan, network)


def _on(plan: Plan, network: Network) -> Plan:
    """A plan of the same devices, with the network's numbers and names for them."""
    if plan.names in ((), network.names):
        return replace(plan, names=network.names)
    place = {name: device for device, name in enumerate(network.names)}
    number = {old: place[name] for old, name in enumerate(plan.names)}
    return replace(
        plan,
        names=network.names,
        clusters=_with_numbers(plan.clusters, number),
        candidates=tuple(renumbered(candidate, number) for candidate in plan.candidates),
    )


def _with_numbers(clusters: Clusters, number: Mapping[int, int]) -> Clusters:
    return tuple(sorted(_devices(cluster, number) for cluster in clusters))


def _devices(cluster: Cluster, number: Mapping[int, int]) -> Cluster:
    return tuple(sorted(number[device] for device in cluster))


def renumbered(candidate: Candidate, number: Mapping[int, int]) -> Candidate:
    """A candidate with other numbers for its devices."""
    found = candidate.min_conductance
    return replace(
        candidate,
        clusters=_with_numbers(candidate.clusters, number),
        min_conductance=replace(found, cut=_devices(found.cut, number)),
        split=_devices(candidate.split, number),
    )
