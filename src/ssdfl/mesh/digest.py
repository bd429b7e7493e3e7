"""A short text by which two devices see whether they run the same thing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable


def plan_digest(
    experiment_text: str,
    network_text: str,
    clusters: Iterable[Iterable[int]],
    version: str,
    facts: str = "",
) -> str:
    """SHA-256 of all that must be the same on every device of a mesh.

    Args:
        experiment_text: of ``experiment.toml``.
        network_text: of ``network.json``.
        clusters: of the plan, as lists of device indices.
        version: of ssdfl, as another one may compute other numbers.
        facts: the digest of those that the plan was formed from, empty if it was given.

    Examples:
        >>> plan_digest("", "", [[0, 1], [2]], "0.1.0")[:12]
        'b425b5529d86'
    """
    parts = {
        "experiment": experiment_text,
        "network": network_text,
        "clusters": [[int(device) for device in cluster] for cluster in clusters],
        "version": version,
        "facts": facts,
    }
    # JSON quotes each part, so that none can run into the next.
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
