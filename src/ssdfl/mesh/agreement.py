"""Whether a device's neighbours have its plan, and which of them it trains with.

One neighbour that is silent, or has another plan, does not stop the others. A device counts itself
and the neighbours that have its plan against those that do not, and trains if the former are more.
What others say may change, so a device that cannot train for this reason ends with a code that
allows a restart.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

from ssdfl.clusters import Plan
from ssdfl.errors import NotYetError
from ssdfl.mesh.node import Node

FACTS_DIGEST = "facts"
ABSENT = "absent"
"""Under which names a plan's settings say what it was formed from, and whose facts were missing."""

log = logging.getLogger(__name__)


class OtherPlanError(NotYetError):
    """Most neighbours have another plan."""


def absent_devices(plan: Plan) -> list[str]:
    """The devices without whose facts a plan was formed.

    Examples:
        >>> absent_devices(Plan(((0,),), "cost", settings={"absent": '["Tokyo"]'}))
        ['Tokyo']
    """
    found: list[str] = json.loads(str(plan.settings.get(ABSENT, "[]")))
    return found


def without_plan(node: Node, but: Sequence[str] = ()) -> list[str]:
    """The neighbours that are not there, or have no plan yet.

    Args:
        but: neighbours that need not have one.
    """
    known = {name: node.neighbours[name] for name in node.linked if name not in but}
    return [name for name, one in known.items() if not (one.alive and one.plan_digest)]


def go_without(node: Node, waited_s: float) -> None:
    """Train without neighbours that have no plan, unless they are as many as the rest.

    Raises:
        NotYetError: they are as many as the other neighbours and this device.
    """
    missing = without_plan(node)
    others = 1 + len(node.linked) - len(missing)
    if len(missing) >= others:
        raise NotYetError("neighbour", missing[0], f"a plan within {waited_s:g} s", "Start it.")
    for name in missing:
        log.error("%s has no plan after %g s: training without it until it has", name, waited_s)


def other_plans(node: Node) -> dict[str, str]:
    """Train without neighbours that have another plan; their digests, if they are the majority.

    This device counts among those that agree, so one liar cannot stop a device with two other
    neighbours.
    """
    ours, neighbours = node.plan_digest, node.neighbours
    plans = {name: neighbours[name].plan_digest for name in neighbours.alive}
    others = {name: plan for name, plan in plans.items() if node.has_other_plan(name)}
    agreeing = 1 + sum(plan == ours for plan in plans.values())
    if len(others) >= agreeing:
        return others
    for name, theirs in others.items():
        log.error("%s has another plan (%s): training without it", name, theirs[:12])
    return {}


def refuse_other_plans(node: Node, others: dict[str, str]) -> None:
    """Refuse to train if most neighbours have another plan.

    Raises:
        OtherPlanError: they have; it names one.
    """
    for name, theirs in others.items():
        expected = f"{node.plan_digest[:12]}, as {node.name} has"
        remedy = "Give all devices the same experiment, network and version of ssdfl."
        raise OtherPlanError(f"plan of {name}", theirs[:12], expected, remedy)
