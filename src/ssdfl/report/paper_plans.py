"""The rules that chose an artefact's clusters: a line per run, and a summary sentence."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from operator import attrgetter
from pathlib import Path

from ssdfl.clusters.decision import CHOICES, Decision
from ssdfl.files import atomic_path
from ssdfl.records.artefacts import Artefact, Case
from ssdfl.records.tables import Row
from ssdfl.report.numbers import listed
from ssdfl.report.paper import Runs


@dataclass(frozen=True)
class PlanLine:
    """How the clusters of one run were chosen; `Decision` documents the numbers.

    Attributes:
        clusters: S.
        score: H, if the score is ``stationarity``.
    """

    panel: str
    point: str
    series: str
    seed: int
    rule: str
    clusters: int
    score_name: str
    score: float | None
    conductance: float | None
    threshold: float | None
    feasible: int
    candidates: int


def plan_lines(artefact: Artefact, runs: Runs) -> list[PlanLine]:
    """A line for each run whose method needs a plan, in the artefact's order."""
    return list(chain.from_iterable(_of_case(case, runs[case.key]) for case in artefact.cases))


def _of_case(case: Case, of_seeds: Sequence[Sequence[Row]]) -> list[PlanLine]:
    found = zip(case.experiment.seeds, map(_decision, of_seeds), strict=True)
    return [_line(case, seed, decision) for seed, decision in found if decision is not None]


def _decision(run: Sequence[Row]) -> Decision | None:
    decision: Decision | None = run[-1].get("decision")
    return decision


def _line(case: Case, seed: int, decision: Decision) -> PlanLine:
    return PlanLine(
        *case.key,
        seed=seed,
        rule=decision.rule,
        clusters=decision.num_clusters,
        score_name=decision.score_name,
        score=decision.score,
        conductance=decision.conductance,
        threshold=decision.threshold,
        feasible=decision.num_feasible,
        candidates=decision.num_candidates,
    )


def write_plans(path: Path, lines: Sequence[PlanLine]) -> None:
    """Write the lines as CSV; missing values are empty, an infinite score is ``inf``."""
    with atomic_path(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(PlanLine.__dataclass_fields__), lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(_texts, lines))


def _texts(line: PlanLine) -> dict[str, object]:
    return {name: _text(value) for name, value in asdict(line).items()}


def _text(value: object) -> object:
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else value


def plans_sentence(lines: Sequence[PlanLine]) -> str:
    """A sentence that counts plans by rule, their clusters, and infinite scores."""
    counts = Counter(map(attrgetter("rule"), lines))
    rules = listed(f"{count} by the rule “{CHOICES[rule]}”" for rule, count in counts.most_common())
    infinite = sum(math.isinf(line.score or 0.0) for line in lines)
    silent = f", {infinite} of them with an infinite score" if infinite else ""
    return f"Clusters of {len(lines)} plans: {rules}; {_span(lines)}{silent}."


def _span(lines: Sequence[PlanLine]) -> str:
    """``S = 3``, or ``S from 2 to 4``."""
    numbers = sorted(line.clusters for line in lines)
    least, most = numbers[0], numbers[-1]
    return f"S = {least}" if least == most else f"S from {least} to {most}"
