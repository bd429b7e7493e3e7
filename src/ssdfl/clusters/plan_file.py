"""``plan.json``: a plan as a file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from ssdfl.clusters.candidates import Candidate
from ssdfl.clusters.decision import GIVEN
from ssdfl.clusters.diagnostics import Diagnostic
from ssdfl.clusters.formation import Skipped
from ssdfl.clusters.partition import Clusters
from ssdfl.clusters.plan import VERSION, Plan
from ssdfl.clusters.standing import Standing
from ssdfl.errors import InputError
from ssdfl.files import write_text
from ssdfl.graph import Conductance

READ_VERSIONS = (2, VERSION)
"""Version 2 has device numbers and no names."""


def write_plan(plan: Plan, path: Path | str) -> None:
    """Write ``plan.json``."""
    write_text(path, json.dumps(plan.to_json(), indent=1) + "\n")


def read_plan(path: Path | str) -> Plan:
    """The plan that `write_plan` wrote.

    Raises:
        InputError: not a plan, or of another version, or clusters that are not a partition.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError("plan", str(path), "a plan.json", f"The reader says: {error!r}.") from error
    return parse_plan(text, str(path))


def parse_plan(text: str, where: str = "plan") -> Plan:
    """The plan in a text, as `Plan.to_json` makes it.

    Args:
        where: names the text in errors.

    Raises:
        InputError: not a plan, or of another version, or clusters that are not a partition.
    """
    try:
        data = json.loads(text)
        if data["version"] not in READ_VERSIONS:
            expected = " or ".join(map(str, READ_VERSIONS))
            raise InputError(f"version of {where}", data["version"], expected, "Make the plan again.")
        plan = _plan_from_json(data)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError("plan", where, "a plan.json", f"The reader says: {error!r}.") from error
    if not _is_partition(plan):
        expected = "every device in one cluster"
        raise InputError(f"clusters of {where}", "these", expected, "Correct them.")
    return plan


def _is_partition(plan: Plan) -> bool:
    devices = list(range(len(plan.names) or plan.num_devices))
    return sorted(chain.from_iterable(plan.clusters)) == devices


def _plan_from_json(data: dict[str, Any]) -> Plan:
    names = tuple(str(name) for name in data.get("devices") or ())
    place = {name: device for device, name in enumerate(names)}
    if len(place) < len(names):
        raise ValueError("two devices have one name")
    return Plan(
        names=names,
        clusters=_named_clusters(data["clusters"], place) if names else _clusters(data["clusters"]),
        partition=data["partition"],
        candidates=tuple(_candidate_from_json(candidate) for candidate in data["candidates"]),
        score_name=data["score_name"],
        choice=data["choice"] or GIVEN,
        mode=data["mode"],
        skipped=Skipped(**data["skipped"]),
        settings={name: _or_infinite(value) for name, value in data["settings"].items()},
        diagnostics=tuple(Diagnostic(**diagnostic) for diagnostic in data["diagnostics"]),
        standing=Standing(**data["standing"]) if data.get("standing") else None,
    )


def _candidate_from_json(data: dict[str, Any]) -> Candidate:
    found = data["min_conductance"]
    return Candidate(
        clusters=_clusters(data["clusters"]),
        score=_or_infinite(data["score"]),
        threshold=data["threshold"],
        min_conductance=Conductance(found["lower"], found["upper"], tuple(found["cut"])),
        split=tuple(data["split"]),
        rule=data["rule"],
    )


def _clusters(lists: Sequence[Sequence[int]]) -> Clusters:
    return tuple(tuple(int(device) for device in cluster) for cluster in lists)


def _named_clusters(lists: Sequence[Sequence[str]], place: Mapping[str, int]) -> Clusters:
    """Clusters of names as clusters of places, in the order that plans have."""
    return tuple(sorted(tuple(sorted(place[name] for name in cluster)) for cluster in lists))


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None else value
