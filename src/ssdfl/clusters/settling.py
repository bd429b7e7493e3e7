"""Apply old clusters to a changed network, and find clusters for new and separated devices.

Labels are numbers of clusters, −1 for a device without a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ssdfl.arrays import BoolArray, IntArray
from ssdfl.clusters.labelled import LinkTable, fresh_label, with_pieces_apart
from ssdfl.graph import component_labels

NOWHERE = -1


@dataclass(frozen=True)
class Placement:
    """Devices that were put into a cluster together.

    Attributes:
        devices: the devices.
        is_new: whether the old plan lacks them; otherwise they lost the links to their cluster.
        host: a device of the cluster that they joined; None if they form a new cluster.
    """

    devices: tuple[int, ...]
    is_new: bool
    host: int | None


def settle(table: LinkTable, carried: IntArray) -> tuple[IntArray, list[Placement]]:
    """Give every device a connected cluster.

    If a cluster fell apart, its largest part stays. Its other parts, and new devices, join the
    cluster to which their slowest link is fastest. If that is slower than every link inside
    clusters, they form a new cluster.
    """
    is_new = carried == NOWHERE
    labels = np.where(with_pieces_apart(table, carried) == carried, carried, NOWHERE)
    usual = table.slowest_inside(labels)
    placements = []
    waiting = _units(table, labels, is_new, usual)
    while waiting:
        unit = waiting.pop(_next(table, labels, waiting))
        host = _host(table, labels, unit, usual)
        labels[unit] = fresh_label(labels) if host is None else labels[host]
        placements.append(Placement(tuple(unit.tolist()), bool(is_new[unit[0]]), host))
    return labels, placements


def _next(table: LinkTable, labels: IntArray, waiting: list[IntArray]) -> int:
    """The first waiting group that has a link to a cluster."""
    return next((k for k, unit in enumerate(waiting) if table.clusters_next_to(labels, unit)), 0)


def _units(table: LinkTable, labels: IntArray, is_new: BoolArray, usual: int) -> list[IntArray]:
    """Devices without a cluster, grouped by links as fast as those inside clusters."""
    i, j = table.links.T
    homeless = labels == NOWHERE
    close = homeless[i] & homeless[j] & (is_new[i] == is_new[j]) & (table.level <= usual)
    parts = component_labels(table.matrix(np.flatnonzero(close)))
    devices = np.flatnonzero(homeless)
    return [devices[parts[devices] == part] for part in dict.fromkeys(parts[devices].tolist())]


def _host(table: LinkTable, labels: IntArray, unit: IntArray, usual: int) -> int | None:
    """The device at the end of the fastest link to the cluster to join; None if no cluster fits."""
    links, others = table.leaving(unit)
    for nearest in table.clusters_next_to(labels, unit)[:1]:
        between = labels[others] == nearest
        level = table.level[links[between]]
        return int(others[between][np.argmin(level)]) if level.max() <= usual else None
    return None
