"""The mesh before and after each change of its membership: network, plan, optimizers, addresses.

Everything follows from the start and from the chain of changes, so all devices find the same. A
plan is repaired from the one before, with what devices told at the start and what a change says of
newcomers. A newcomer about which nothing is known counts as the average of all others.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np

import ssdfl
from ssdfl.arrays import FloatArray, IntArray
from ssdfl.clusters import (
    Device,
    FormationSettings,
    Plan,
    fitting_plan,
    read_plan,
    repair,
    write_plan,
)
from ssdfl.clusters.recorded_settings import settings_from
from ssdfl.errors import InputError
from ssdfl.graph import Network
from ssdfl.learning import Optimizer, draw_optimizers, parse_optimizer
from ssdfl.mesh.agreement import FACTS_DIGEST
from ssdfl.mesh.change import Newcomer, SignedChange
from ssdfl.mesh.descriptions import Descriptions
from ssdfl.mesh.digest import plan_digest
from ssdfl.mesh.facts_file import read_facts
from ssdfl.mesh.flood import FACTS
from ssdfl.mesh.folder import INITIAL
from ssdfl.mesh.member import Member
from ssdfl.mesh.membership import CHANGES
from ssdfl.mesh.routes import DIRECT, Routes, routes_of
from ssdfl.preparation import dealt_task, draw_optimizers_of, given_plan, shared_devices
from ssdfl.records.config import Experiment
from ssdfl.rng import generator

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Edition:
    """A mesh between two changes of its membership.

    Attributes:
        version: 0 at the start.
        cycle: how many cycles are done when it begins.
        digest: of all that must be the same on all devices.
        optimizers: everyone's.
        sizes: (N,) everyone's samples, if they matter.
        addresses: of all devices that this one may have to dial.
        told: what devices with data of their own have told for formation; None if they have not.
    """

    version: int
    cycle: int
    network: Network
    plan: Plan
    digest: str
    optimizers: tuple[Optimizer, ...]
    sizes: IntArray | None
    addresses: Mapping[str, str]
    told: Descriptions | None = None

    def has(self, name: str) -> bool:
        """Whether a device is in it."""
        return name in self.network.names

    def neighbours_of(self, name: str) -> dict[str, str]:
        """A device's neighbours and where they listen; none if it is not in it."""
        if not self.has(name):
            return {}
        names = self.network.names
        linked = [names[j] for j in self.network.neighbours(names.index(name))]
        return {other: self.addresses.get(other, "") for other in linked}

    def routes_of(self, name: str) -> Routes:
        """Who relays for a device, and for whom it does."""
        if not self.has(name):
            return DIRECT
        own = self.addresses.get(name, "")
        return routes_of(self.network, name, own, self.neighbours_of(name))


def first_edition(member: Member, plan: Plan, folder: Path) -> Edition:
    """The mesh as it began."""
    network = member.network
    optimizers = draw_optimizers_of(member.experiment, network.num_devices, member.config.seed)
    text = (folder / "network.json").read_text(encoding="utf-8")
    return Edition(
        version=0,
        cycle=0,
        network=network,
        plan=plan,
        digest=_digest(folder, text, plan),
        optimizers=optimizers,
        sizes=member.sizes,
        addresses=member.config.neighbours,
        told=_told_at_start(member, folder),
    )


def _told_at_start(member: Member, folder: Path) -> Descriptions | None:
    """What devices told before the first plan, unless it was given or their data are dealt."""
    if not member.has_own_data or not (folder / FACTS).exists():
        return None
    return Descriptions.at_start(read_facts(folder / FACTS), member.network.names)


def _told(
    before: Edition, joins: Mapping[str, Newcomer], optimizers: Mapping[str, Optimizer]
) -> Descriptions | None:
    return None if before.told is None else before.told.with_newcomers(joins, optimizers)


def next_edition(before: Edition, found: SignedChange, member: Member, folder: Path) -> Edition:
    """The mesh after a change.

    Raises:
        InputError: the experiment does not fit the network.
    """
    change, network = found.change, found.change.devices
    optimizers = _optimizers(before, network, change.joins)
    edition = replace(
        before,
        version=change.version,
        cycle=change.cycle,
        network=network,
        optimizers=optimizers,
        sizes=_sizes(before, network, change.joins),
        addresses=change.addresses,
        told=_told(before, change.joins, dict(zip(network.names, optimizers, strict=True))),
    )
    plan = _known_plan(edition, folder) or _repaired(before.plan, edition, member, folder)
    return replace(edition, plan=plan, digest=_digest(folder, before.digest + found.text, plan))


def drawn_optimizer(experiment: Experiment, seed: int, version: int, number: int) -> str:
    """The optimizer of a change's newcomer, drawn as those at the start were.

    Raises:
        InputError: they were listed one by one.
    """
    config = experiment.optimizers
    if config.devices:
        expected = "the newcomers' own, as the experiment lists one for each device"
        raise InputError("--optimizer", "nothing", expected, "Give it.")
    rng = generator(seed, "optimizers", version, number)
    return str(draw_optimizers(config.kind, 1, rng, config.rho, config.mu, config.mix)[0])


def _optimizers(
    before: Edition, network: Network, joins: Mapping[str, Newcomer]
) -> tuple[Optimizer, ...]:
    known = dict(zip(before.network.names, before.optimizers, strict=True))
    known |= {name: parse_optimizer(one.optimizer) for name, one in joins.items()}
    return tuple(known[name] for name in network.names)


def _sizes(before: Edition, network: Network, joins: Mapping[str, Newcomer]) -> IntArray | None:
    """Everyone's samples, if they matter; newcomers that told nothing have the mean."""
    if before.sizes is None:
        return None
    mean = round(float(before.sizes.mean()))
    known = dict(zip(before.network.names, before.sizes.tolist(), strict=True))
    known |= {name: one.samples or mean for name, one in joins.items()}
    return np.array([known[name] for name in network.names], dtype=np.int64)


def _plan_path(folder: Path, version: int) -> Path:
    return folder / CHANGES / f"{version}.plan.json"


def _known_plan(edition: Edition, folder: Path) -> Plan | None:
    """The plan that was repaired earlier."""
    path = _plan_path(folder, edition.version)
    return fitting_plan(read_plan(path), edition.network) if path.exists() else None


def _repaired(before: Plan, edition: Edition, member: Member, folder: Path) -> Plan:
    """The plan before, adapted to the network; one that the experiment makes is made again."""
    plan = given_plan(member.experiment, edition.network)
    if plan is None:
        devices, distances = _facts(edition, member)
        settings = _settings(before, distances)
        plan = repair(before, edition.network, devices, settings).plan
    try:
        write_plan(plan, _plan_path(folder, edition.version))
    except OSError as error:
        log.error("plan %d not written: %s", edition.version, error)
    return plan


def _settings(before: Plan, distances: FloatArray | None) -> FormationSettings:
    settings = settings_from(before.settings, before.partition, before.score_name)
    return replace(settings, data_distance=distances)


def _facts(edition: Edition, member: Member) -> tuple[Sequence[Device] | None, FloatArray | None]:
    """What is known of devices, and how different the data at links are."""
    if edition.told is not None:
        return edition.told.of_network(edition.network)
    if member.has_own_data:
        return None, None  # the first plan was given, so nobody has told anything
    experiment, seed = member.experiment, member.config.seed
    task = dealt_task(experiment, seed, member.data, edition.network)
    return shared_devices(experiment, task, edition.optimizers, seed), None


def _digest(folder: Path, network_text: str, plan: Plan) -> str:
    """Of everything that must be the same on all devices."""
    experiment = (folder / "experiment.toml").read_text(encoding="utf-8")
    initial = folder / INITIAL
    parameters = sha256(initial.read_bytes()).hexdigest() if initial.exists() else ""
    facts = str(plan.settings.get(FACTS_DIGEST, ""))
    return plan_digest(
        experiment + parameters, network_text, plan.clusters, ssdfl.__version__, facts
    )
