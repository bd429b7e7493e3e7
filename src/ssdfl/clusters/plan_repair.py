"""Repair a plan by moving few devices when devices, links or data change.

The result depends only on the old plan and the facts, not on the order of facts or the numbering of
devices: everything is computed in the order of devices' names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from ssdfl.arrays import IntArray
from ssdfl.clusters.candidates import Candidate, round_score
from ssdfl.clusters.decision import REPAIRED
from ssdfl.clusters.fitting import listed_names, renumbered
from ssdfl.clusters.formation import FormationSettings, score_inputs
from ssdfl.clusters.heterogeneity import Device, unknown_devices
from ssdfl.clusters.labelled import LinkTable
from ssdfl.clusters.partition import Clusters, clusters_of, labels_of
from ssdfl.clusters.plan import Plan, check_plannable
from ssdfl.clusters.recorded_settings import record, settings_from
from ssdfl.clusters.repair_options import RepairOptions
from ssdfl.clusters.repair_search import SMALL, RepairSearch
from ssdfl.clusters.scores import ScoreInputs
from ssdfl.clusters.settling import NOWHERE, settle
from ssdfl.clusters.standing import reasons_to_form, standing_of
from ssdfl.errors import InputError
from ssdfl.graph import Conductance, Network, NetworkLike, load_network

_RIVALS = 6
"""The number of the old plan's candidates that are weighed again."""


@dataclass(frozen=True)
class Repair:
    """A repaired plan, the changes, and whether to form a new plan instead.

    Attributes:
        plan: the repaired plan; its `choice` is ``repaired``.
        steps: the changes and their reasons, as text.
        reasons: why a new plan is worth forming; empty if it is not.
    """

    plan: Plan
    steps: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def worth_forming(self) -> bool:
        """Whether a new plan is worth forming."""
        return bool(self.reasons)


def repair(
    plan: Plan,
    network: NetworkLike,
    devices: Sequence[Device] | None = None,
    settings: FormationSettings | None = None,
) -> Repair:
    """Adapt a plan to a network that has changed, far faster than forming a new one.

    Devices are matched by name. New devices, and devices that lost the links to their cluster, join
    the cluster to which their links are fastest. Then the repair tries changes at links that a
    cycle waits for, by the predicted cost. On small networks it also tries merges, moves and the
    old plan's other candidates.

    Args:
        plan: formed or repaired earlier, on a network with some of the same devices.
        network: the current network.
        devices: the current descriptors of devices; by default all are alike.
        settings: the training to plan for; by default the plan's.

    Raises:
        InputError: the network is not connected, or has none of the plan's devices.

    Examples:
        >>> from ssdfl.clusters import form_clusters
        >>> from ssdfl.graph import make_network
        >>> bells = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)]
        >>> before = form_clusters(make_network(6, bells, names=list("abcdef")))
        >>> joined = make_network(7, [*bells, (6, 0), (6, 1)], names=list("abcdefg"))
        >>> repair(before, joined).plan.clusters
        ((0, 1, 2, 6), (3, 4, 5))
    """
    network = load_network(network)
    check_plannable(network)
    settings = settings or settings_from(plan.settings, plan.partition, plan.score_name)
    described = unknown_devices(network) if devices is None else devices
    with threadpool_limits(1):  # matrices are small: more threads would slow each other down
        return _repair(plan, network, described, settings)


def _repair(
    plan: Plan, network: Network, devices: Sequence[Device], settings: FormationSettings
) -> Repair:
    order = np.array(sorted(range(network.num_devices), key=lambda device: network.names[device]))
    inputs = _inputs_in_order(network, devices, settings, order)
    table = LinkTable(inputs)
    places = _places(plan, network)
    carried = carried_labels(plan.clusters, places, network.num_devices)
    labels, placements = settle(table, carried)
    was_feasible = plan.chosen is not None and plan.chosen.feasible
    search = RepairSearch(inputs, RepairOptions(inputs, table), settings, labels, was_feasible)
    rivals = _rivals(plan) if search.is_thorough else []
    search.run(placements, [carried_labels(one, places, network.num_devices) for one in rivals])
    candidate = _candidate(inputs, settings, search, was_feasible)
    changed = _num_changed(plan) + int((places == NOWHERE).sum() + (search.labels != carried).sum())
    now = standing_of(inputs, settings.predicted, candidate.score, changed)
    reasons = [*reasons_to_form(plan.standing, now, network.num_devices)]
    if was_feasible > candidate.feasible:
        reasons.append(
            "The repaired clusters miss the conductance threshold, which the plan kept to."
        )
    numbered = renumbered(candidate, dict(enumerate(order.tolist())))
    repaired = _plan(plan, network, numbered, settings, changed)
    return Repair(repaired, tuple(search.steps), tuple(reasons))


def _inputs_in_order(
    network: Network, devices: Sequence[Device], settings: FormationSettings, order: IntArray
) -> ScoreInputs:
    """The inputs of scores, with devices sorted by name."""
    ordered = network.renumbered(order)
    if settings.data_distance is not None:
        distance = network.link_matrix(settings.data_distance)[order][:, order]
        i, j = ordered.links.T
        settings = replace(settings, data_distance=np.asarray(distance[i, j]).ravel())
    return score_inputs(ordered, [devices[device] for device in order], settings)


def _places(plan: Plan, network: Network) -> IntArray:
    """(devices of the plan,) each one's position among the network's sorted names, −1 if gone.

    Raises:
        InputError: all devices are gone.
    """
    known = (plan.names or network.names)[: plan.num_devices]
    place = {name: number for number, name in enumerate(sorted(network.names))}
    places = np.full(plan.num_devices, NOWHERE, dtype=np.int64)
    places[: len(known)] = [place.get(name, NOWHERE) for name in known]
    if places.max() == NOWHERE:
        remedy = "Form a plan for this network."
        raise InputError(
            "devices of the plan", listed_names(known), "some of the network's devices", remedy
        )
    return places


def carried_labels(clusters: Clusters, places: IntArray, num_devices: int) -> IntArray:
    """(N,) an old partition's labels on the remaining devices, −1 for new ones.

    Clusters are numbered by their first devices, whatever their order in the plan.

    Examples:
        >>> carried_labels(((0, 2), (1,)), places=np.array([2, 0, -1]), num_devices=4).tolist()
        [0, -1, 1, -1]
    """
    there = places != NOWHERE
    labels = np.full(num_devices, NOWHERE, dtype=np.int64)
    labels[places[there]] = labels_of(clusters, len(places))[there]
    first = dict.fromkeys(labels[labels != NOWHERE].tolist())
    number = np.full(len(clusters) + 1, NOWHERE)
    number[list(first)] = np.arange(len(first))
    return number[labels]


def _rivals(plan: Plan) -> list[Clusters]:
    """The old plan's best candidates."""
    best = sorted(plan.candidates, key=lambda one: (round_score(one.score), one.num_clusters))
    return [one.clusters for one in best[:_RIVALS]]


def _candidate(
    inputs: ScoreInputs, settings: FormationSettings, search: RepairSearch, was_feasible: bool
) -> Candidate:
    clusters = clusters_of(search.labels)
    n = inputs.network.num_devices
    certify = was_feasible or n <= SMALL
    found = inputs.cache.weakest(clusters) if certify else _bound_of_conductance(inputs, clusters)
    return Candidate(
        clusters, search.score, settings.threshold(n, len(clusters)), found, (), "repair"
    )


def _bound_of_conductance(inputs: ScoreInputs, clusters: Clusters) -> Conductance:
    """A cheap interval for the lowest conductance of clusters, at most the weakest device's."""
    W = inputs.A_intra(clusters)
    device = int(np.argmax(W.diagonal()))
    return Conductance(0.0, float(1 - W.diagonal()[device]), (device,))


def _num_changed(plan: Plan) -> int:
    """The number of devices that earlier repairs changed."""
    return plan.standing.changed if plan.standing else 0


def _plan(
    plan: Plan,
    network: Network,
    candidate: Candidate,
    settings: FormationSettings,
    changed: int,
) -> Plan:
    standing = plan.standing
    return Plan(
        clusters=candidate.clusters,
        partition=plan.partition,
        candidates=(candidate,),
        score_name=settings.score_name,
        choice=REPAIRED,
        mode=settings.mode_for(network.num_devices),
        settings=record(settings),
        names=network.names,
        standing=None if standing is None else replace(standing, changed=changed),
    )
