"""A network and its plan as the pages' scripts read them."""

from __future__ import annotations

import math
from collections import Counter
from html import escape
from typing import Any

import numpy as np

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.clusters import Candidate, Clusters, Explanation, Plan, labels_of
from ssdfl.graph import Network
from ssdfl.report.condensed import Condensed
from ssdfl.report.figures import layout, link_widths
from ssdfl.report.page import html_table
from ssdfl.report.places import map_projection
from ssdfl.report.world import WORLD

DRAWN_LINKS = 20_000


def network_data(network: Network, clusters: Clusters) -> dict[str, Any]:
    """The places and names of devices, and the costs of links and computing.

    At most 20 000 links are listed, evenly chosen; ``num_links`` and ``degrees`` count all links.
    """
    labels = labels_of(clusters, network.num_devices)
    links = _links(network)
    every = math.ceil(len(links) / DRAWN_LINKS) or 1
    return {
        "names": network.names,
        "labels": labels.tolist(),
        **_drawn_at(network, labels),
        "links": links[::every],
        "num_links": len(links),
        "degrees": np.bincount(network.links.ravel(), minlength=network.num_devices).tolist(),
        "compute_ms": [rounded(seconds * 1e3) for seconds in network.compute_s.tolist()],
        "uplink_MBps": _megabytes(network.uplink_Bps),
        "downlink_MBps": _megabytes(network.downlink_Bps),
    }


def _megabytes(limits_Bps: FloatArray) -> list[float | None]:
    """MB/s of each device's uplink or downlink; None if unlimited, empty if all are unlimited."""
    if not np.isfinite(limits_Bps).any():
        return []
    return [rounded(limit / 1e6) if math.isfinite(limit) else None for limit in limits_Bps.tolist()]


def _drawn_at(network: Network, labels: IntArray) -> dict[str, Any]:
    """Places of devices in a unit square, with the outline of the world if they are on a map."""
    if network.positions is not None and network.geographic:
        scale, shift = map_projection(network.positions)
        world = [(np.array(outline) * scale + shift).round(4).tolist() for outline in WORLD]
        return {"places": (network.positions * scale + shift).round(5).tolist(), "world": world}
    places = layout(network, labels)
    in_order = np.array([places[device] for device in range(network.num_devices)])
    return {"places": _unit_square(in_order).round(4).tolist(), "world": []}


def _links(network: Network) -> list[list[float]]:
    """The ends of each link, its drawn width, its latency in ms and its bandwidth in MB/s."""
    columns = zip(
        network.links.tolist(),
        link_widths(network).round(2).tolist(),
        (network.latency_s * 1e3).tolist(),
        (network.bandwidth_Bps / 1e6).tolist(),
        strict=True,
    )
    return [[i, j, width, rounded(ms), rounded(rate)] for (i, j), width, ms, rate in columns]


def drawn_data(network: Network, plan: Plan, groups: Condensed | None) -> dict[str, Any]:
    """A network and its plan: devices, or groups of them if there are too many to draw."""
    if groups is None:
        return {**network_data(network, plan.clusters), **plan_data(plan)}
    return {**network_data(groups.network, groups.clusters), **plan_data(plan, groups.first)}


def plan_data(plan: Plan, drawn: IntArray | None = None) -> dict[str, Any]:
    """All candidates of a formed plan, and the chosen one; a given plan has no candidates.

    Args:
        drawn: the devices that represent all devices; all by default.
    """
    chosen = [candidate.clusters for candidate in plan.candidates]
    shown = np.arange(plan.num_devices) if drawn is None else drawn
    return {
        "chosen": chosen.index(plan.clusters) if plan.clusters in chosen else None,
        "candidates": [
            _candidate(candidate, plan.num_devices, shown) for candidate in plan.candidates
        ],
        "score": plan.score_name,
    }


def plan_reason(plan: Plan) -> str:
    """One sentence on why the plan has these clusters."""
    if not plan.candidates:
        return f"S = {plan.num_clusters}, given rather than formed: by {plan.partition}."
    remark = plan.remark.partition(": ")[2]
    why = remark or "the best of the candidates that reach their conductance threshold."
    return f"S = {plan.num_clusters}: {why}"


def diagnostics_table(plan: Plan) -> str:
    """Which assumptions hold for the plan, and its predicted costs."""
    words = {True: "holds", False: "does not hold", None: ""}
    rows = ((d.name, words[d.holds], d.detail) for d in plan.diagnostics)
    return html_table(("condition", "", "numbers"), rows)


def explanation_list(found: Explanation) -> str:
    """The plan explained in links and seconds."""
    lines = (f"<li>{escape(line)}</li>" for line in found.lines(most=40))
    return f"<ul>{''.join(lines)}</ul>"


def formation_line(plan: Plan) -> str:
    """How the plan was formed."""
    return f"Partition {plan.partition}, score {plan.score_name}, mode {plan.mode}: {plan.left_out}"


def settings_table(plan: Plan) -> str:
    """The settings that formation used."""
    rows = (
        (name, value if isinstance(value, str) else f"{value:g}")
        for name, value in plan.settings.items()
    )
    return html_table(("setting", "value"), rows)


def rounded(value: float, digits: int = 7) -> float:
    """A number rounded to a few digits, to keep pages small.

    Examples:
        >>> rounded(0.123456789)
        0.1234568
    """
    return float(f"{value:.{digits}g}")


def _candidate(candidate: Candidate, num_devices: int, shown: IntArray) -> dict[str, Any]:
    found = candidate.min_conductance
    labels = labels_of(candidate.clusters, num_devices)[shown]
    return {
        "num_clusters": candidate.num_clusters,
        "labels": np.unique(labels, return_inverse=True)[1].tolist(),
        "score": candidate.score,
        "threshold": candidate.threshold,
        "lower": found.lower,
        "upper": found.upper,
        "exact": found.exact,
        "feasible": candidate.feasible,
        "rule": candidate.rule,
        "sizes": _sizes(candidate.clusters),
    }


def _sizes(clusters: Clusters) -> str:
    """Cluster sizes as text, with equal sizes counted: ``3 × 5, 2``."""
    counts = Counter(len(cluster) for cluster in clusters)
    return ", ".join(_counted(size, counts[size]) for size in sorted(counts, reverse=True))


def _counted(size: int, count: int) -> str:
    return f"{count} × {size}" if count > 1 else str(size)


def _unit_square(places: FloatArray) -> FloatArray:
    low, span = places.min(axis=0), np.ptp(places, axis=0)
    scaled: FloatArray = np.where(span > 0, (places - low) / np.where(span > 0, span, 1), 0.5)
    return scaled
