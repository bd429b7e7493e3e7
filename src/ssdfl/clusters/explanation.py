"""Explain a plan's clusters in links and seconds, which an operator can check and change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ssdfl.arrays import SparseMatrix
from ssdfl.clusters.fitting import listed_names
from ssdfl.clusters.partition import Clusters, labels_of
from ssdfl.clusters.plan import Plan
from ssdfl.clusters.scores import MESSAGE_BYTES, TRAINING
from ssdfl.graph import Cycle, Network, Part, best_upgrade, links_within

_TIMED_CLUSTERS = 40
_PROBED_LINKS = 2_000_000


@dataclass(frozen=True)
class LinkFacts:
    """A link in an operator's units."""

    devices: tuple[str, str]
    latency_ms: float
    bandwidth_MBps: float
    message_ms: float

    def __str__(self) -> str:
        a, b = self.devices
        return f"{a} – {b} ({self.latency_ms:.4g} ms, {self.bandwidth_MBps:.4g} MB/s)"


@dataclass(frozen=True)
class ClusterFacts:
    """The costs of a cluster's links.

    Attributes:
        slowest_inside: the slowest link inside; None for a device alone.
        slowest_cut: the slowest link that leaves the cluster; None if none does.
        num_cut: the number of links that leave the cluster.
        cut_cost_s: the extra seconds of a cycle if training also used these links; None if there
            are too many clusters or links to time each.
    """

    cluster: int
    num_devices: int
    slowest_inside: LinkFacts | None
    slowest_cut: LinkFacts | None
    num_cut: int
    cut_cost_s: float | None


@dataclass(frozen=True)
class PortFacts:
    """A device's uplink or downlink in an operator's units."""

    device: str
    kind: str
    bandwidth_MBps: float

    def __str__(self) -> str:
        return f"the {self.kind} of {self.device} ({self.bandwidth_MBps:.4g} MB/s)"


@dataclass(frozen=True)
class UpgradeFacts:
    """The links, uplinks and downlinks to upgrade first, and the seconds this saves per cycle."""

    links: tuple[LinkFacts, ...]
    ports: tuple[PortFacts, ...]
    saved_s: float
    upgraded_s: float


@dataclass(frozen=True)
class Explanation:
    """A plan in an operator's terms.

    Attributes:
        cycle_s: seconds of a cycle with these clusters, by the simulated clock.
        one_cluster_s: seconds of a cycle with all devices in one cluster.
        no_clusters_s: seconds of a cycle with every device alone.
        clusters: the costs of each cluster's links.
        upgrade: the first upgrade; None if no link makes a cycle wait.
    """

    cycle_s: float
    one_cluster_s: float
    no_clusters_s: float
    clusters: tuple[ClusterFacts, ...]
    upgrade: UpgradeFacts | None

    def to_json(self) -> dict[str, Any]:
        """The explanation as JSON data."""
        return asdict(self)

    def lines(self, most: int = 12) -> Iterator[str]:
        """Sentences for a terminal or a page; if there are many clusters, the costliest ones."""
        yield self.cycle_line
        shown = sorted(self.clusters, key=lambda one: (-(one.cut_cost_s or 0.0), one.cluster))[
            :most
        ]
        yield from map(cluster_line, sorted(shown, key=lambda one: one.cluster))
        if len(shown) < len(self.clusters):
            yield f"… and {len(self.clusters) - len(shown)} more clusters."
        yield self.upgrade_line

    @property
    def cycle_line(self) -> str:
        """A sentence on how long a cycle takes, beside one cluster and none."""
        ends = f"{_s(self.one_cluster_s)} with one cluster and {_s(self.no_clusters_s)} with none"
        return f"A cycle takes {_s(self.cycle_s)} with these clusters, {ends}."

    @property
    def upgrade_line(self) -> str:
        """A sentence on what to upgrade first."""
        if self.upgrade is None:
            return "No link makes a cycle wait: computing takes all its time, so no upgrade helps."
        parts = [*self.upgrade.links, *self.upgrade.ports]
        noun = "links, uplinks and downlinks" if self.upgrade.ports else "links"
        if self.upgrade.saved_s < 1e-3 * self.cycle_s:
            return (
                f"No {len(parts)} {noun} to upgrade make a cycle shorter: "
                "too many paths take as long."
            )
        names = listed_names([str(part) for part in parts])
        what = (
            f"Upgrade {names} first: twice as fast,"
            if len(parts) == 1
            else f"Upgrade {len(parts)} {noun}"
        )
        rest = (
            f" it saves {_s(self.upgrade.saved_s)} a cycle, "
            f"{_s(self.upgrade.upgraded_s)} instead of {_s(self.cycle_s)}."
        )
        if len(parts) == 1:
            return what + rest
        together = f" first, as none of them alone helps: {names}. All twice as fast,"
        return what + together + rest.replace(" it saves", " they save")


def _s(seconds: float) -> str:
    return f"{seconds:.4g} s"


def cluster_line(facts: ClusterFacts) -> str:
    """A sentence on the costs of one cluster's links."""
    noun = "device" if facts.num_devices == 1 else "devices"
    inside = (
        f"slowest link inside {facts.slowest_inside}" if facts.slowest_inside else "no links inside"
    )
    line = f"cluster {facts.cluster} ({facts.num_devices} {noun}): {inside}"
    if facts.slowest_cut is None:
        return f"{line}; no links leave it."
    cut = f"{facts.num_cut} links leave it, the slowest {facts.slowest_cut}"
    cost = "" if facts.cut_cost_s is None else f", and would add {_s(facts.cut_cost_s)} a cycle"
    return f"{line}; {cut}{cost}."


def explain(network: Network, plan: Plan) -> Explanation:
    """Explain a plan on its network, for the training that it was made for.

    Examples:
        >>> from ssdfl.clusters import form_clusters
        >>> from ssdfl.graph import load_network
        >>> network = load_network("sites:sites=2,size=3")
        >>> found = explain(network, form_clusters(network))
        >>> len(found.clusters), found.one_cluster_s > found.cycle_s
        (2, True)
    """
    return _Explainer(network, plan).explain()


class _Explainer:
    """Times cycles on a network with the constants that a plan was made with."""

    def __init__(self, network: Network, plan: Plan) -> None:
        self.network, self.plan = network, plan
        given = plan.settings
        self.message_bytes = int(given.get("message_bytes", MESSAGE_BYTES))
        self.sends_early = bool(given.get("sends_early", True))
        self.tau_a = int(given.get("tau_a", TRAINING.tau_a))
        self.tau_r = int(given.get("tau_r", TRAINING.tau_r))
        self.compute_s = network.compute_s * int(given.get("local_steps", TRAINING.local_steps))
        self.message_s = network.message_time_s(self.message_bytes)
        self.labels = labels_of(plan.clusters, network.num_devices)

    def explain(self) -> Explanation:
        n = self.network.num_devices
        cycle_s = self._time_s(self._inside(self.plan.clusters))
        ends = (tuple(range(n)),), tuple((device,) for device in range(n))
        one_s, none_s = (self._time_s(self._inside(clusters)) for clusters in ends)
        clusters = tuple(self._cluster(k, cycle_s) for k in range(self.plan.num_clusters))
        return Explanation(cycle_s, one_s, none_s, clusters, self._upgrade())

    def _inside(self, clusters: Clusters) -> SparseMatrix:
        return links_within(self.network.adjacency, labels_of(clusters, self.network.num_devices))

    def _cycle(self, used: SparseMatrix) -> Cycle:
        taus = self.tau_a, self.tau_r
        return Cycle(self.network.adjacency, used, *taus, self.compute_s, self.sends_early)

    def _time_s(self, used: SparseMatrix) -> float:
        """Seconds of a cycle with these links used while training."""
        return self._cycle(used).time_s(self.network, self.message_bytes)

    def _cluster(self, cluster: int, cycle_s: float) -> ClusterFacts:
        ends = self.labels[self.network.links] == cluster
        inside, cut = np.flatnonzero(ends.all(axis=1)), np.flatnonzero(ends.sum(axis=1) == 1)
        return ClusterFacts(
            cluster,
            len(self.plan.clusters[cluster]),
            self._slowest(inside),
            self._slowest(cut),
            len(cut),
            self._cost_of(cut, cycle_s),
        )

    def _cost_of(self, cut: Sequence[int] | Any, cycle_s: float) -> float | None:
        """The extra seconds of a cycle if training used these links."""
        clusters = self.plan.num_clusters
        if clusters > _TIMED_CLUSTERS or clusters * self.network.num_links > _PROBED_LINKS:
            return None
        inside = self.labels[self.network.links[:, 0]] == self.labels[self.network.links[:, 1]]
        inside[cut] = True
        used = self.network.link_matrix(inside.astype(float))
        used.eliminate_zeros()
        return max(self._time_s(used) - cycle_s, 0.0)

    def _slowest(self, links: Any) -> LinkFacts | None:
        if not len(links):
            return None
        return self._link(int(links[np.argmax(self.message_s[links])]))

    def _link(self, link: int) -> LinkFacts:
        i, j = self.network.links[link].tolist()
        return LinkFacts(
            (self.network.names[i], self.network.names[j]),
            float(self.network.latency_s[link]) * 1e3,
            float(self.network.bandwidth_Bps[link]) / 1e6,
            float(self.message_s[link]) * 1e3,
        )

    def _port(self, part: Part) -> PortFacts:
        limits = {"uplink": self.network.uplink_Bps, "downlink": self.network.downlink_Bps}
        bandwidth_Bps = float(limits[part.kind][part.number])
        return PortFacts(self.network.names[part.number], part.kind, bandwidth_Bps / 1e6)

    def _upgrade(self) -> UpgradeFacts | None:
        cycle = self._cycle(self._inside(self.plan.clusters))
        found = best_upgrade(self.network, self.message_bytes, cycle)
        if found is None:
            return None
        ports = tuple(part for part in found.parts if part.kind != "link")
        links = tuple(self._link(part.number) for part in found.parts if part not in ports)
        return UpgradeFacts(links, tuple(map(self._port, ports)), found.saved_s, found.upgraded_s)
