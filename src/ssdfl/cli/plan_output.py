"""The output of ``ssdfl plan``: files and text for a formed or repaired plan."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ssdfl.cli.progress import say

if TYPE_CHECKING:
    from ssdfl.cli.plan_inputs import PlanInputs
    from ssdfl.clusters import Candidate, Explanation, Plan, PlanDifference, Repair
    from ssdfl.graph import Network

SHOWN = 60


@dataclass(frozen=True)
class PlanOutput:
    """Where to write a plan.

    Attributes:
        out: ``plan.json``.
        html: the page to write.
        export: files for the table of clusters.
        as_json: whether to print JSON instead of tables.
    """

    out: Path | None
    html: Path | None
    export: tuple[Path, ...]
    as_json: bool

    def write(self, network: Network, plan: Plan) -> None:
        """Write the requested files."""
        from ssdfl.clusters import export_plan, write_plan

        if self.out is not None:
            write_plan(plan, self.out)
        if self.html is not None:
            from ssdfl.report import write_plan_page

            write_plan_page(network, plan, self.html)
        for path in self.export:
            export_plan(network, plan, path)


def show_formed(inputs: PlanInputs, note: str, output: PlanOutput) -> None:
    """Form a plan, write it and print every candidate."""
    from ssdfl.clusters import explain, form_clusters

    formed = inputs.recorded_in(form_clusters(inputs.network, inputs.devices, inputs.settings))
    output.write(inputs.network, formed)
    found = explain(inputs.network, formed)
    if output.as_json:
        _print_json(formed, found)
    else:
        _print(formed, inputs.network.names, found)
    _remark(inputs.explain(), note, formed.remark)


def show_repair(old: Path, inputs: PlanInputs, is_training_given: bool, output: PlanOutput) -> None:
    """Repair a plan, write it, and print who moves, why, and whether to form a new one."""
    from ssdfl.clusters import compare_plans, explain, misfit, read_plan, repair

    before = read_plan(old)
    network = inputs.network
    found = repair(before, network, inputs.devices, inputs.settings if is_training_given else None)
    plan = inputs.recorded_in(found.plan, before.settings)
    output.write(network, plan)
    difference = compare_plans(before, plan, None if misfit(before, network) else network)
    explanation = explain(network, plan)
    if output.as_json:
        told = {"difference": difference.to_json(), "steps": found.steps, "reasons": found.reasons}
        _print_json(plan, explanation, repair=told)
    else:
        for line in _repair_lines(difference, found, explanation):
            say(Console(), line)
    source = inputs.explain() if is_training_given else f"training as in {old}"
    _remark(source, inputs.forgotten(before), _advice(found))


def _repair_lines(
    difference: PlanDifference, found: Repair, explanation: Explanation
) -> Iterable[str]:
    yield from difference.lines()
    yield from (f"why: {step}" for step in found.steps)
    yield from explanation.lines()


def _advice(found: Repair) -> str:
    if found.worth_forming:
        return f"note: a new plan is worth forming. {' '.join(found.reasons)}"
    return "a new plan is not worth forming"


def _remark(*texts: str) -> None:
    console = Console(stderr=True)
    for text in filter(None, texts):
        say(console, f"ssdfl: {text}")


def _print_json(plan: Plan, found: Explanation, **more: Any) -> None:
    typer.echo(json.dumps({**plan.to_json(), "explanation": found.to_json(), **more}, indent=1))


def _print(formed: Plan, names: tuple[str, ...], found: Explanation) -> None:
    console = Console()
    table = Table(
        "S", "score", "least Φ", "Φ_min", "feasible", "rule", box=SIMPLE_HEAD, pad_edge=False
    )
    shown = formed.candidates[:SHOWN]
    for candidate in shown:
        table.add_row(*_cells(candidate, candidate.clusters == formed.clusters))
    console.print(table)
    if len(shown) < len(formed.candidates):
        say(console, f"… and {len(formed.candidates) - len(shown)} more; --json has them all.")
    for number, cluster in enumerate(formed.clusters[:SHOWN]):
        say(console, f"cluster {number}: {', '.join(names[device] for device in cluster)}")
    for line in found.lines():
        say(console, line)
    for diagnostic in formed.diagnostics:
        mark = {True: "yes", False: "no ", None: "   "}[diagnostic.holds]
        say(console, f"{mark} {diagnostic.name} ({diagnostic.detail})")
    say(console, f"mode {formed.mode}: {formed.left_out}")


def _cells(candidate: Candidate, chosen: bool) -> tuple[str, ...]:
    found = candidate.min_conductance
    return (
        f"{candidate.num_clusters}{' *' if chosen else ''}",
        f"{candidate.score:.5g}",
        f"{found.upper:.4f}" if found.exact else f"{found.lower:.4f} … {found.upper:.4f}",
        f"{candidate.threshold:.4f}",
        "yes" if candidate.feasible else "no",
        candidate.rule,
    )
