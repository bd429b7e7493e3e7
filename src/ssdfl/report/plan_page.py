"""``plan.html``: a plan to look at, with every candidate that was weighed, in one file."""

from __future__ import annotations

import json
import math
from collections import Counter
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import ssdfl
from ssdfl.arrays import FloatArray
from ssdfl.clusters import Candidate, Clusters, Plan, labels_of
from ssdfl.errors import InputError
from ssdfl.files import write_text
from ssdfl.graph import Network
from ssdfl.report.figures import COLOURS, layout, link_widths
from ssdfl.report.page import fill, table


def write_plan_page(network: Network, plan: Plan, path: Path | str) -> None:
    """Write the page of a formed plan.

    Raises:
        InputError: the plan is not one of this network, or has no candidates to show.
    """
    if plan.num_devices != network.num_devices:
        expected = f"{network.num_devices}, as the network has"
        raise InputError("devices of the plan", plan.num_devices, expected, "Take the plan's own network.")
    if not plan.candidates:
        raise InputError("candidates of the plan", 0, "a formed plan", "Make it with ssdfl plan.")
    text = fill(
        "plan.html",
        title=escape(f"{network.title}: {plan.num_devices} devices in {plan.num_clusters} clusters"),
        headline=escape(_headline(plan)),
        score=escape(plan.score_name),
        diagnostics=_diagnostics(plan),
        formation=escape(
            f"Partition {plan.partition}, score {plan.score_name}, mode {plan.mode}: {plan.left_out}"
        ),
        settings=table(
            ("setting", "value"),
            ((k, v if isinstance(v, str) else f"{v:g}") for k, v in plan.settings.items()),
        ),
        version=escape(ssdfl.__version__),
        data=json.dumps(_data(network, plan), separators=(",", ":")).replace("<", "\\u003c"),
    )
    write_text(path, text)


def _headline(plan: Plan) -> str:
    why = (
        plan.remark.partition(": ")[2] or "the best of the candidates that reach their conductance threshold."
    )
    return f"S = {plan.num_clusters}: {why}"


def _diagnostics(plan: Plan) -> str:
    words = {True: "holds", False: "does not hold", None: ""}
    rows = ((d.name, words[d.holds], d.detail) for d in plan.diagnostics)
    return table(("condition", "", "numbers"), rows)


def _settings(plan: Plan) -> list[tuple[str, str]]:
    return [(k, v if isinstance(v, str) else f"{v:g}") for k, v in plan.settings.items()]


def _data(network: Network, plan: Plan) -> dict[str, Any]:
    labels = labels_of(plan.clusters, network.num_devices)
    places = layout(network, labels)
    latency_ms, rate = network.latency_s * 1e3, network.bandwidth_Bps / 1e6
    return {
        "colours": COLOURS,
        "names": network.names,
        "titles": _titles(network),
        "places": _unit_square(np.array([places[k] for k in range(network.num_devices)])).round(4).tolist(),
        "links": [
            [i, j, round(width, 2), f"{network.names[i]} – {network.names[j]}: {ms:.3g} ms, {MBps:.3g} MB/s"]
            for (i, j), width, ms, MBps in zip(
                network.links.tolist(), link_widths(network).tolist(), latency_ms, rate, strict=True
            )
        ],
        "chosen": [candidate.clusters for candidate in plan.candidates].index(plan.clusters),
        "candidates": [_candidate(candidate, network.num_devices) for candidate in plan.candidates],
    }


def _titles(network: Network) -> list[str]:
    degree = np.diff(network.adjacency.indptr)
    return [
        f"{name}: {degree[k]} links, {network.compute_s[k] * 1e3:.3g} ms a mini-batch"
        for k, name in enumerate(network.names)
    ]


def _candidate(candidate: Candidate, num_devices: int) -> dict[str, Any]:
    found = candidate.min_conductance
    return {
        "num_clusters": candidate.num_clusters,
        "labels": labels_of(candidate.clusters, num_devices).tolist(),
        "score": candidate.score if math.isfinite(candidate.score) else None,
        "threshold": candidate.threshold,
        "lower": found.lower,
        "upper": found.upper,
        "exact": found.exact,
        "feasible": candidate.feasible,
        "rule": candidate.rule,
        "sizes": _sizes(candidate.clusters),
    }


def _sizes(clusters: Clusters) -> str:
    """Cluster sizes in words, equal ones counted: ``3 × 5, 2``."""
    counts = sorted(Counter(len(cluster) for cluster in clusters).items(), reverse=True)
    return ", ".join(f"{count} × {size}" if count > 1 else str(size) for size, count in counts)


def _unit_square(places: FloatArray) -> FloatArray:
    low, span = places.min(axis=0), np.ptp(places, axis=0)
    scaled: FloatArray = np.where(span > 0, (places - low) / np.where(span > 0, span, 1), 0.5)
    return scaled
