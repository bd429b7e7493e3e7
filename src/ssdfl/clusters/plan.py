"""The plan: which devices form which cluster, and how that was decided."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdfl.clusters.partition import Clusters, spectral_bisection
from ssdfl.errors import InputError
from ssdfl.files import write_text
from ssdfl.graph import Network, Weights, metropolis

VERSION = 1


@dataclass(frozen=True)
class Plan:
    """Disjoint clusters that cover devices 0 … N − 1.

    Attributes:
        clusters: device ids of each cluster, ordered by the lowest.
        partition: the rule that made them.
    """

    clusters: Clusters
    partition: str

    @property
    def num_devices(self) -> int:
        """How many devices the plan covers."""
        return sum(len(cluster) for cluster in self.clusters)

    @property
    def num_clusters(self) -> int:
        """S, the number of clusters."""
        return len(self.clusters)

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON data, with a version that readers check."""
        return {
            "version": VERSION,
            "num_devices": self.num_devices,
            "num_clusters": self.num_clusters,
            "clusters": [list(cluster) for cluster in self.clusters],
            "partition": self.partition,
        }


def plan_clusters(network: Network, num_clusters: int, weights: Weights = metropolis) -> Plan:
    """A plan with a given number of clusters, by recursive spectral bisection.

    Examples:
        >>> from ssdfl.graph import load_network
        >>> plan_clusters(load_network("barbell:size=2"), 2).clusters
        ((0, 1), (2, 3))
    """
    return Plan(spectral_bisection(network, num_clusters, weights), partition="bisection")


def write_plan(plan: Plan, path: Path) -> None:
    """Write ``plan.json``."""
    write_text(path, json.dumps(plan.to_json(), indent=1) + "\n")


def read_plan(path: Path) -> Plan:
    """The plan that `write_plan` wrote.

    Raises:
        InputError: not a plan, or of another version.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        version, clusters = data["version"], data["clusters"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError("plan", str(path), "a plan.json", f"The reader says: {error!r}.") from error
    if version != VERSION:
        raise InputError(f"version of {path}", version, str(VERSION), "Make the plan again.")
    return Plan(tuple(tuple(cluster) for cluster in clusters), data["partition"])
