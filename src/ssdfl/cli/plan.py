"""``ssdfl plan``: form the clusters of a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ssdfl.cli.options import find_modules_in
from ssdfl.cli.plan_diff import show_difference
from ssdfl.cli.progress import say

if TYPE_CHECKING:
    from ssdfl.clusters import Candidate, Explanation, Plan
    from ssdfl.records import Experiment

SHOWN = 60


def plan(
    network: Annotated[
        str | None,
        typer.Argument(help="A spec such as er:n=30,p=0.1,seed=0, or a network file; else the experiment's."),
    ] = None,
    experiment: Annotated[
        Path | None,
        typer.Option(
            help="Experiment (TOML) to plan for: its training, model and data. Else the default one."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="Set one of the experiment's values. Repeatable."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure nothing: do not load the experiment's data and model.")
    ] = False,
    devices: Annotated[
        Path | None,
        typer.Option(help="CSV: device,label_0,label_1,…[,rho][,mu]; instead of the experiment's devices."),
    ] = None,
    tau_a: Annotated[int | None, typer.Option(help="τ_a, training steps of a cycle.")] = None,
    tau_r: Annotated[int | None, typer.Option(help="τ_r, mixing-only steps of a cycle.")] = None,
    local_steps: Annotated[int | None, typer.Option(help="E, mini-batch steps of a training step.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="η.")] = None,
    gradient_bound: Annotated[float | None, typer.Option(help="B, a bound on gradients' norms.")] = None,
    smoothness: Annotated[
        float | None, typer.Option(help="γ̂, the largest curvature of a device's loss.")
    ] = None,
    initial_loss: Annotated[float | None, typer.Option(help="L(θ⁰).")] = None,
    tolerance: Annotated[float | None, typer.Option(help="Δ_tol, the tolerated consensus gap.")] = None,
    message_bytes: Annotated[int | None, typer.Option(help="Size of a model on the wire.")] = None,
    partition: Annotated[
        str | None, typer.Option(help="cost (sees slow links), or paper (Algorithm 2).")
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(help="time, bytes, drift, stationarity (the paper's), integrated, or module:function."),
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="literal weighs everything, fast leaves out what costs most, or auto.")
    ] = None,
    mixing: Annotated[str | None, typer.Option(help="Weights: metropolis, lazy or fastest.")] = None,
    with_tau_a: Annotated[
        bool, typer.Option("--with-tau-a", help="Keep Lemma 1's τ_a in Φ_min, which the paper drops.")
    ] = False,
    threshold_step: Annotated[
        str | None, typer.Option(help="Step size in Φ_min: eta (as printed), or eta_E (η times E).")
    ] = None,
    strict: Annotated[
        bool | None,
        typer.Option("--strict/--no-strict", help="Keep to the conductance threshold, whatever it costs."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder with data sets, as SSDFL_DATA.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write plan.json here, for ssdfl run --plan.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to look at the plan with.")] = None,
    export: Annotated[
        list[Path] | None,
        typer.Option(help="Write each device's cluster as .csv or .graphml. Repeatable."),
    ] = None,
    diff: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="OLD NEW", help="Form nothing: compare two plans, on NETWORK if it is given."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Form the clusters of a network and show every candidate.

    - `ssdfl plan NETWORK` plans for the default experiment's training, and measures nothing.

    - `ssdfl plan --experiment my.toml` shows the plan that `ssdfl run my.toml` forms for its first seed:
      devices' data, constants and the model's size are measured.

    One line says which values are given, measured or assumed. Options without a default here have the
    experiment's value.

    A candidate is feasible if each of its clusters has at least the conductance Φ_min; among these the one
    of least score wins. If devices are known to differ, the prediction may overrule Φ_min where keeping to
    it would cost more than 10 %. `--partition paper --score stationarity` is the paper's formation,
    literally.
    """
    if diff is not None:
        show_difference(diff, network, html, as_json)
        return
    from ssdfl.cli.plan_inputs import gather_inputs
    from ssdfl.clusters import explain, export_plan, form_clusters, write_plan
    from ssdfl.records import load_experiment

    keys = {
        "network.spec": network,
        "network.mixing": mixing,
        "schedule.tau_a": tau_a,
        "schedule.tau_r": tau_r,
        "training.local_steps": local_steps,
        "training.learning_rate": learning_rate,
        "clusters.gradient_bound": gradient_bound,
        "clusters.tolerance": tolerance,
        "clusters.partition": partition,
        "clusters.score": score,
        "clusters.mode": mode,
        "clusters.strict": strict,
        "clusters.threshold_step": threshold_step,
    }
    chosen = load_experiment(experiment, settings or [], _without_none(keys))
    if experiment is not None:
        find_modules_in(experiment.parent)
    only_network = network is not None and experiment is None and not settings
    inputs = gather_inputs(chosen, measure=not (quick or only_network), data=data)
    if devices is not None:
        inputs = inputs.with_devices(devices)
    inputs = inputs.with_constants(_without_none({"smoothness": smoothness, "initial_loss": initial_loss}))
    inputs = inputs.with_settings(_without_none({"message_bytes": message_bytes, "with_tau_a": with_tau_a}))
    formed = form_clusters(inputs.network, inputs.devices, inputs.settings)
    if out is not None:
        write_plan(formed, out)
    if html is not None:
        from ssdfl.report import write_plan_page

        write_plan_page(inputs.network, formed, html)
    for path in export or []:
        export_plan(inputs.network, formed, path)
    found = explain(inputs.network, formed)
    if as_json:
        typer.echo(json.dumps({**formed.to_json(), "explanation": found.to_json()}, indent=1))
    else:
        _print(formed, inputs.network.names, found)
    for text in (inputs.explain(), _given_clusters(chosen), formed.remark):
        if text:
            say(Console(stderr=True), f"ssdfl: {text}")


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _given_clusters(experiment: Experiment) -> str:
    """A note if ``ssdfl run`` forms no clusters, since the experiment gives them."""
    config = experiment.clusters
    given = f"clusters.plan = {config.plan}" if config.plan else f"clusters.number = {config.number}"
    if not config.plan and not config.number:
        return ""
    return f"note: ssdfl run forms no clusters here, since the experiment has {given}."


def _print(formed: Plan, names: tuple[str, ...], found: Explanation) -> None:
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
