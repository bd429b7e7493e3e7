"""``ssdfl plan``: form the clusters of a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ssdfl.cli.progress import say

if TYPE_CHECKING:
    from ssdfl.clusters import Candidate, Plan


def plan(
    network: Annotated[str, typer.Argument(help="A spec such as er:n=30,p=0.1,seed=0, or a network file.")],
    devices: Annotated[
        Path | None, typer.Option(help="CSV: device,label_0,label_1,…[,rho][,mu]. Without it, all alike.")
    ] = None,
    tau_a: Annotated[int, typer.Option(help="τ_a, training steps of a cycle.")] = 3,
    tau_r: Annotated[int, typer.Option(help="τ_r, mixing-only steps of a cycle.")] = 1,
    learning_rate: Annotated[float, typer.Option(help="η.")] = 0.01,
    gradient_bound: Annotated[float, typer.Option(help="B, a bound on gradients' norms.")] = 1.0,
    tolerance: Annotated[float, typer.Option(help="Δ_tol, the tolerated consensus gap.")] = 10.0,
    out: Annotated[Path | None, typer.Option(help="Write plan.json here, for ssdfl run --plan.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Form clusters by the paper's Algorithms 1 and 2, literally, and show every candidate.

    A candidate is feasible if each of its clusters has at least the conductance Φ_min; among these the one
    of least score wins. The paper's score prefers many clusters: see docs/planning.md.
    """
    import numpy as np

    from ssdfl.clusters import Device, FormationSettings, form_clusters, read_devices, write_plan
    from ssdfl.graph import load_network
    from ssdfl.theory import Constants

    constants = Constants(
        learning_rate=learning_rate,
        tau_a=tau_a,
        tau_r=tau_r,
        gradient_bound=gradient_bound,
        tolerance=tolerance,
    )
    graph = load_network(network)
    alike = (Device(np.ones(1)),) * graph.num_devices
    known = read_devices(devices, graph.names) if devices is not None else alike
    formed = form_clusters(graph, known, FormationSettings(constants))
    if out is not None:
        write_plan(formed, out)
    if as_json:
        typer.echo(json.dumps(formed.to_json(), indent=1))
    else:
        _print(formed, graph.names)
    chosen = formed.chosen
    if chosen is not None and not chosen.feasible:
        say(Console(stderr=True), _warning(chosen, learning_rate, tolerance))


def _warning(chosen: Candidate, learning_rate: float, tolerance: float) -> str:
    return (
        f"ssdfl: warning: no candidate has the conductance that its threshold asks for; "
        f"S = {chosen.num_clusters} comes nearest with Φ = {chosen.min_conductance.lower:.4f} "
        f"against Φ_min = {chosen.threshold:.4f}. Raise --tolerance (now {tolerance:g}) "
        f"or lower --learning-rate (now {learning_rate:g})."
    )


def _print(formed: Plan, names: tuple[str, ...]) -> None:
    console = Console()
    table = Table("S", "score", "least Φ", "Φ_min", "feasible", "rule", box=SIMPLE_HEAD, pad_edge=False)
    for candidate in formed.candidates:
        found = candidate.min_conductance
        table.add_row(
            f"{candidate.num_clusters}{' *' if candidate.clusters == formed.clusters else ''}",
            f"{candidate.score:.5g}",
            f"{found.upper:.4f}" if found.exact else f"{found.lower:.4f} … {found.upper:.4f}",
            f"{candidate.threshold:.4f}",
            "yes" if candidate.feasible else "no",
            candidate.rule,
        )
    console.print(table)
    for number, cluster in enumerate(formed.clusters):
        say(console, f"cluster {number}: {', '.join(names[device] for device in cluster)}")
