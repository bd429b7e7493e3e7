"""A plan for other programs: each device's cluster, as a CSV table or a GraphML attribute."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ssdfl.clusters.fitting import fitting_plan
from ssdfl.clusters.plan import Plan
from ssdfl.errors import InputError
from ssdfl.files import atomic_path
from ssdfl.graph import Network
from ssdfl.lazy import LazyModule

if TYPE_CHECKING:
    import networkx as nx
else:
    nx = LazyModule("networkx")


def export_plan(network: Network, plan: Plan, path: Path | str) -> None:
    """Write a plan as ``.csv`` (device, cluster) or ``.graphml`` (with each device's ``cluster``).

    Raises:
        InputError: the suffix is unknown, or the plan does not fit the network.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in EXPORTS:
        raise InputError(
            "--export", str(path), f"a name ending in {', '.join(EXPORTS)}", "Choose one."
        )
    EXPORTS[ending](network, fitting_plan(plan, network), path)


def _write_csv(network: Network, plan: Plan, path: Path) -> None:
    with atomic_path(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines)
        writer.writerow(["device", "cluster"])
        writer.writerows(zip(network.names, plan.labels.tolist(), strict=True))


def _write_graphml(network: Network, plan: Plan, path: Path) -> None:
    graph = network.to_networkx()
    nx.set_node_attributes(graph, dict(enumerate(plan.labels.tolist())), "cluster")
    with atomic_path(path) as temporary:
        nx.write_graphml(graph, temporary)


EXPORTS: dict[str, Callable[[Network, Plan, Path], None]] = {
    ".csv": _write_csv,
    ".graphml": _write_graphml,
}
