"""``ssdfl plan``: form the clusters of a network."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ssdfl.cli.progress import say
from ssdfl.errors import InputError

if TYPE_CHECKING:
    from ssdfl.clusters import Candidate, Plan

SHOWN = 60


def plan(
    network: Annotated[str, typer.Argument(help="A spec such as er:n=30,p=0.1,seed=0, or a network file.")],
    devices: Annotated[
        Path | None, typer.Option(help="CSV: device,label_0,label_1,…[,rho][,mu]. Without it, all alike.")
    ] = None,
    tau_a: Annotated[int, typer.Option(help="τ_a, training steps of a cycle.")] = 3,
    tau_r: Annotated[int, typer.Option(help="τ_r, mixing-only steps of a cycle.")] = 1,
    local_steps: Annotated[int, typer.Option(help="E, mini-batch steps of a training step.")] = 1,
    learning_rate: Annotated[float, typer.Option(help="η.")] = 0.01,
    gradient_bound: Annotated[float, typer.Option(help="B, a bound on gradients' norms.")] = 1.0,
    smoothness: Annotated[float, typer.Option(help="γ̂, the largest curvature of a device's loss.")] = 1.0,
    initial_loss: Annotated[float, typer.Option(help="L(θ⁰); by default ln 10.")] = math.log(10),
    tolerance: Annotated[float, typer.Option(help="Δ_tol, the tolerated consensus gap.")] = 10.0,
    message_bytes: Annotated[int, typer.Option(help="Size of a model on the wire.")] = 50_000,
    partition: Annotated[str, typer.Option(help="cost (sees slow links), or paper (Algorithm 2).")] = "cost",
    score: Annotated[
        str,
        typer.Option(help="time, bytes, drift, stationarity (the paper's), integrated, or module:function."),
    ] = "time",
    mode: Annotated[
        str, typer.Option(help="literal weighs everything, fast leaves out what costs most.")
    ] = "auto",
    mixing: Annotated[str, typer.Option(help="Weights: metropolis, lazy or fastest.")] = "metropolis",
    with_tau_a: Annotated[
        bool, typer.Option("--with-tau-a", help="Keep Lemma 1's τ_a in Φ_min, which the paper drops.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Keep to the conductance threshold, whatever it costs.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Write plan.json here, for ssdfl run --plan.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to look at the plan with.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Form the clusters of a network and show every candidate.

    A candidate is feasible if each of its clusters has at least the conductance Φ_min; among these the one
    of least score wins. With --devices the prediction may overrule Φ_min where keeping to it would cost
    more than 10 %. `--partition paper --score stationarity` is the paper's formation, literally.
    """
    from ssdfl.clusters import FormationSettings, form_clusters, read_devices, unknown_devices, write_plan
    from ssdfl.clusters.formation import PRICE
    from ssdfl.graph import MIXINGS, load_network
    from ssdfl.theory import Constants

    constants = Constants(
        learning_rate=learning_rate,
        tau_a=tau_a,
        tau_r=tau_r,
        local_steps=local_steps,
        gradient_bound=gradient_bound,
        smoothness=smoothness,
        initial_loss=initial_loss,
        tolerance=tolerance,
    )
    if mixing not in MIXINGS:
        raise InputError("--mixing", mixing, f"one of {', '.join(MIXINGS)}", "Choose one of them.")
    settings = FormationSettings(
        constants,
        partition=partition,
        score=score,
        mode=mode,
        price=math.inf if strict else PRICE,
        message_bytes=message_bytes,
        weights=MIXINGS[mixing],
        with_tau_a=with_tau_a,
    )
    graph = load_network(network)
    known = unknown_devices(graph) if devices is None else read_devices(devices, graph.names)
    formed = form_clusters(graph, known, settings)
    if out is not None:
        write_plan(formed, out)
    if html is not None:
        from ssdfl.report import write_plan_page

        write_plan_page(graph, formed, html)
    if as_json:
        typer.echo(json.dumps(formed.to_json(), indent=1))
    else:
        _print(formed, graph.names)
    if formed.remark:
        say(Console(stderr=True), f"ssdfl: {formed.remark}")


def _print(formed: Plan, names: tuple[str, ...]) -> None:
    console = Console()
    table = Table("S", "score", "least Φ", "Φ_min", "feasible", "rule", box=SIMPLE_HEAD, pad_edge=False)
    shown = formed.candidates[:SHOWN]
    for candidate in shown:
        table.add_row(*_cells(candidate, candidate.clusters == formed.clusters))
    console.print(table)
    if len(shown) < len(formed.candidates):
        say(console, f"… and {len(formed.candidates) - len(shown)} more; --json has them all.")
    for number, cluster in enumerate(formed.clusters[:SHOWN]):
        say(console, f"cluster {number}: {', '.join(names[device] for device in cluster)}")
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
