"""The plan that a mesh begins with: given, formed before, or formed from what all devices tell."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ssdfl.clusters import Plan, form_clusters, write_plan
from ssdfl.errors import InputError, NotYetError
from ssdfl.learning import parse_optimizer
from ssdfl.mesh.agreement import ABSENT, FACTS_DIGEST
from ssdfl.mesh.facts_file import read_facts, write_facts
from ssdfl.mesh.flood import FACTS, OWN_FACT, Flood, answer_gossip
from ssdfl.mesh.knowledge import Knowledge
from ssdfl.mesh.member import PLAN, Member
from ssdfl.mesh.mesh_pb2 import Facts
from ssdfl.mesh.node import Node
from ssdfl.mesh.signing import Signer
from ssdfl.preparation import settings_of

GATHER_S = 300.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class FirstPlan:
    """How a device gets the plan its mesh began with; a later newcomer forms it for itself.

    Attributes:
        member: the device in the network as it was at the start.
    """

    folder: Path
    member: Member
    node: Node
    signer: Signer

    def known(self) -> Plan | None:
        """The plan formed before or given by the experiment; None if one must be formed."""
        self._tell_facts()
        return self._kept(self.member.known_plan())

    def formed(self) -> Plan:
        """The plan that every device forms from the same facts."""
        member = self._joining() if self.member.config.joins else self.member
        flood = self._flood(member)
        known = flood.gather(GATHER_S)
        write_facts(flood.facts(), self.folder / FACTS)
        if not known.measured:
            raise NotYetError(
                "measured constants", 0, "some device's", "Start the devices that measure."
            )
        plan = self._kept(self._plan_of(member, known, flood.book.digest))
        assert plan is not None
        return plan

    def forget(self) -> None:
        """Discard the plan, so that it is formed again."""
        self.node.plan_digest = ""
        for name in (PLAN, FACTS):
            (self.folder / name).unlink(missing_ok=True)

    def _kept(self, plan: Plan | None) -> Plan | None:
        """The plan, written down if it is not yet."""
        if plan is not None and not (self.folder / PLAN).exists():
            write_plan(plan, self.folder / PLAN)
        return plan

    def _flood(self, member: Member) -> Flood:
        """Tells neighbours what this device knows; one that joins only listens."""
        if member.config.joins:
            listens = self.member.network
            return Flood(self.node, member.described(), self.signer, network=listens)
        flood = Flood(
            self.node, member.described(), self.signer, member.measured(), self._signed_before()
        )
        write_facts(flood.facts(), self.folder / OWN_FACT)
        return flood

    def _plan_of(self, member: Member, known: Knowledge, digest: str) -> Plan:
        settings = settings_of(member.experiment, member.task, known.measured, known.data_distance)
        plan = form_clusters(self.member.network, known.devices, settings)
        formed_from = {FACTS_DIGEST: digest, ABSENT: json.dumps(known.absent)}
        return replace(plan, settings={**plan.settings, **formed_from})

    def _joining(self) -> Member:
        """A device that joins, in the network it joins: describes it before editions exist."""
        network = self.node.network
        return self.member.moved(network, [parse_optimizer("sgd")] * network.num_devices)

    def _signed_before(self) -> Facts | None:
        """What an earlier process has signed about this device."""
        try:
            return read_facts(self.folder / OWN_FACT)
        except InputError:  # there is none, or it is damaged
            return None

    def _tell_facts(self) -> None:
        """Tell the facts that the plan was formed from, to neighbours that still gather them."""
        path = self.folder / FACTS
        if path.exists():
            try:
                facts = read_facts(path)
            except InputError as error:
                log.error("%s Neighbours that still gather facts do not get them from here.", error)
            else:
                self.node.answers["gossip"] = partial(answer_gossip, facts)
