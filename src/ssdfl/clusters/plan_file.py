"""Read and write ``plan.json``."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ssdfl.checksums import CHECKSUM, check_checksum
from ssdfl.clusters.candidates import Candidate
from ssdfl.clusters.decision import GIVEN
from ssdfl.clusters.diagnostics import Diagnostic
from ssdfl.clusters.formation import Skipped
from ssdfl.clusters.partition import Clusters
from ssdfl.clusters.plan import VERSION, Plan
from ssdfl.clusters.standing import Standing
from ssdfl.errors import InputError, unfit_value
from ssdfl.files import indentation, write_text
from ssdfl.graph import Conductance

READ_VERSIONS = (2, 3, VERSION)
"""Version 2 has device numbers and no names; neither it nor version 3 has a checksum."""
_FIRST_WITH_CHECKSUM = 4
_KEYS = frozenset(Plan((), "").to_json()) - {CHECKSUM}


def write_plan(plan: Plan, path: Path | str) -> None:
    """Write ``plan.json``."""
    write_text(path, json.dumps(plan.to_json(), indent=indentation(plan.num_devices)) + "\n")


def read_plan(path: Path | str) -> Plan:
    """The plan that `write_plan` wrote.

    Raises:
        InputError: the file is not a plan or of another version, or its clusters are no partition.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(
            "plan", str(path), "a plan.json", f"The reader says: {error!r}."
        ) from error
    return parse_plan(text, str(path))


def parse_plan(text: str, where: str = "plan") -> Plan:
    """The plan in a JSON text of `Plan.to_json`.

    Args:
        where: the name of the text in errors.

    Raises:
        InputError: the text is not a plan, damaged or of another version, or its clusters are not a
            partition.
    """
    try:
        data = json.loads(text)
        _check_version(data, where)
        plan = _plan_of(_PlanData.model_validate(data))
    except InputError:
        raise
    except ValidationError as error:
        raise unfit_value(error.errors()[0], where, "Correct it, or make the plan again.") from None
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise InputError("plan", where, "a plan.json", f"The reader says: {error!r}.") from error
    if not _is_partition(plan):
        expected = "every device in one cluster"
        raise InputError(f"clusters of {where}", "these", expected, "Correct them.")
    _check_candidates(plan, where)
    return plan


def _check_version(data: dict[str, Any], where: str) -> None:
    """Refuse plans of unknown versions, and damaged plans."""
    if data["version"] not in READ_VERSIONS:
        expected = " or ".join(map(str, READ_VERSIONS))
        raise InputError(f"version of {where}", data["version"], expected, "Make the plan again.")
    if data["version"] >= _FIRST_WITH_CHECKSUM:
        check_checksum(data, _KEYS, where)


def _is_partition(plan: Plan) -> bool:
    devices = list(range(len(plan.names) or plan.num_devices))
    return sorted(chain.from_iterable(plan.clusters)) == devices


def _check_candidates(plan: Plan, where: str) -> None:
    """Refuse candidates of devices that the plan does not have."""
    for candidate in plan.candidates:
        named = (*candidate.clusters, candidate.split, candidate.min_conductance.cut)
        highest = max(chain.from_iterable(named), default=0)
        if highest >= plan.num_devices:
            expected = f"places from 0 to {plan.num_devices - 1}"
            raise InputError(f"candidates of {where}", highest, expected, "Correct them.")


Number = Annotated[float, Field(allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=0, lt=2**63)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class _Cut(_Strict):
    lower: Number
    upper: Number
    cut: list[Whole]


class _CandidateData(_Strict):
    clusters: list[list[Whole]]
    score: Number | None
    threshold: Number
    min_conductance: _Cut
    split: list[Whole]
    rule: str


class _SkippedData(_Strict):
    sizes: Whole = 0
    prefixes: Whole = 0
    halves: Whole = 0
    moves: bool = False
    inexact: Whole = 0


class _DiagnosticData(_Strict):
    name: str
    holds: bool | None
    detail: str


class _StandingData(_Strict):
    gap: Number
    spread: Number
    changed: Whole = 0


class _PlanData(_Strict):
    """The schema of a plan.json."""

    clusters: list[list[str]] | list[list[Whole]]
    devices: list[str] | None = None
    partition: str
    candidates: list[_CandidateData]
    score_name: str
    choice: str
    mode: str
    skipped: _SkippedData
    settings: dict[str, bool | Whole | Number | str | None]
    diagnostics: list[_DiagnosticData]
    standing: _StandingData | None = None


def _plan_of(data: _PlanData) -> Plan:
    names = tuple(data.devices or ())
    if len(set(names)) < len(names):
        raise ValueError("two devices have the same name")
    return Plan(
        names=names,
        clusters=_named_clusters(data.clusters, names) if names else _clusters(data.clusters),
        partition=data.partition,
        candidates=tuple(map(_candidate_of, data.candidates)),
        score_name=data.score_name,
        choice=data.choice or GIVEN,
        mode=data.mode,
        skipped=Skipped(**data.skipped.model_dump()),
        settings=dict(zip(data.settings, map(_or_infinite, data.settings.values()), strict=True)),
        diagnostics=tuple(Diagnostic(**one.model_dump()) for one in data.diagnostics),
        standing=None if data.standing is None else Standing(**data.standing.model_dump()),
    )


def _candidate_of(data: _CandidateData) -> Candidate:
    found = data.min_conductance
    return Candidate(
        clusters=_clusters(data.clusters),
        score=_or_infinite(data.score),
        threshold=data.threshold,
        min_conductance=Conductance(found.lower, found.upper, tuple(found.cut)),
        split=tuple(data.split),
        rule=data.rule,
    )


def _clusters(lists: Sequence[Sequence[int | str]]) -> Clusters:
    return tuple(tuple(int(device) for device in cluster) for cluster in lists)


def _named_clusters(lists: Sequence[Sequence[str | int]], names: Sequence[str]) -> Clusters:
    """Clusters of names as clusters of positions, in the order of plans."""
    place: dict[str | int, int] = {name: device for device, name in enumerate(names)}
    return tuple(sorted(tuple(sorted(place[name] for name in cluster)) for cluster in lists))


def _or_infinite(value: Any) -> Any:
    return math.inf if value is None else value
