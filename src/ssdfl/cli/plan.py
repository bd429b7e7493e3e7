"""``ssdfl plan``: form the clusters of a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ssdfl.cli.options import experiment_file
from ssdfl.cli.plan_diff import show_difference
from ssdfl.cli.plan_output import PlanOutput, show_formed, show_repair
from ssdfl.cli.plan_source import Source
from ssdfl.mappings import without_none

if TYPE_CHECKING:
    from ssdfl.records import Experiment


def plan(
    network: Annotated[
        str | None,
        typer.Argument(
            help="A spec such as er:n=30,p=0.1,seed=0, or a network file; else the experiment's."
        ),
    ] = None,
    experiment: Annotated[
        Path | None,
        typer.Option(
            help="Experiment (TOML) to plan for: its training, model and data. "
            "Without it and NETWORK, ./ssdfl.toml, else the default one."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="A.B=C", help="Set one of the experiment's values. Repeatable."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Measure nothing: do not load the experiment's data and model."
        ),
    ] = False,
    devices: Annotated[
        Path | None,
        typer.Option(
            help="CSV: device[,label_0,label_1,…][,rho][,mu][,uplink_Mbps,…]; replaces the "
            "experiment's devices, or only their costs."
        ),
    ] = None,
    tau_a: Annotated[int | None, typer.Option(help="τ_a, training steps of a cycle.")] = None,
    tau_r: Annotated[int | None, typer.Option(help="τ_r, mixing-only steps of a cycle.")] = None,
    local_steps: Annotated[
        int | None, typer.Option(help="E, mini-batch steps of a training step.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="η.")] = None,
    gradient_bound: Annotated[
        float | None, typer.Option(help="B, a bound on gradients' norms.")
    ] = None,
    smoothness: Annotated[
        float | None, typer.Option(help="γ̂, the largest curvature of a device's loss.")
    ] = None,
    initial_loss: Annotated[float | None, typer.Option(help="L(θ⁰).")] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Δ_tol, the tolerated consensus gap.")
    ] = None,
    message_bytes: Annotated[int | None, typer.Option(help="Size of a model on the wire.")] = None,
    partition: Annotated[
        str | None,
        typer.Option(
            help="cost (sees slow links), balanced (also sees data), or paper (Algorithm 2)."
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            help="time, bytes, drift, stationarity (the paper's), integrated, or module:function."
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(help="literal tries everything, fast skips the slowest steps, auto decides."),
    ] = None,
    mixing: Annotated[
        str | None, typer.Option(help="Weights: metropolis, lazy or fastest.")
    ] = None,
    with_tau_a: Annotated[
        bool,
        typer.Option("--with-tau-a", help="Keep Lemma 1's τ_a in Φ_min, which the paper drops."),
    ] = False,
    threshold_step: Annotated[
        str | None, typer.Option(help="Step size in Φ_min: eta (as printed), or eta_E (η times E).")
    ] = None,
    liars: Annotated[
        int | None, typer.Option(help="Number of lying neighbours each cluster must tolerate.")
    ] = None,
    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict/--no-strict", help="Keep to the conductance threshold, whatever it costs."
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder with data sets, as SSDFL_DATA.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write plan.json here, for ssdfl run --plan.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page that shows the plan.")] = None,
    export: Annotated[
        list[Path] | None,
        typer.Option(help="Write the clusters of all devices as .csv or .graphml. Repeatable."),
    ] = None,
    diff: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="OLD NEW",
            help="Compare two plans, on NETWORK if it is given, instead of making one.",
        ),
    ] = None,
    repair: Annotated[
        Path | None,
        typer.Option(
            metavar="OLD",
            help="Fit an earlier plan to NETWORK as it is now, and print who moves.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Form the clusters of a network and show every candidate.

    - `ssdfl plan NETWORK` plans for the default experiment's training, and measures nothing.

    - `ssdfl plan --experiment my.toml` shows the plan that `ssdfl run my.toml` forms for its first
      seed: devices' data, constants and the model's size are measured.

    One line says which values are given, measured or assumed. Options without a default here take
    the experiment's value.

    A candidate is feasible if each of its clusters has at least the conductance Φ_min. The feasible
    candidate with the lowest score wins. If devices are known to differ, the prediction may
    overrule Φ_min where keeping to it would cost more than 10 %. `--partition paper --score
    stationarity` is the paper's formation, literally.

    `ssdfl plan NETWORK --repair OLD` quickly fits an earlier plan to a changed network, and
    says whether a new plan is worth forming. Without options it plans for the training of OLD.
    """
    if diff is not None:
        show_difference(diff, network, html, as_json)
        return
    from ssdfl.cli.plan_inputs import with_given
    from ssdfl.records import load_experiment

    keys = without_none(
        {
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
            "clusters.liars": liars,
        }
    )
    constants = without_none({"smoothness": smoothness, "initial_loss": initial_loss})
    sizes = without_none({"message_bytes": message_bytes, "with_tau_a": with_tau_a or None})
    experiment = experiment_file(experiment, search=network is None)
    chosen = load_experiment(
        experiment, settings or [], without_none({"network.spec": network}) | keys
    )
    source = Source(network, experiment, tuple(settings or ()), quick, data)
    inputs = with_given(source.inputs(chosen), devices, constants, sizes)
    output = PlanOutput(out, html, tuple(export or ()), as_json)
    if repair is not None:
        is_given = source.is_experiment or bool(keys or constants or sizes)
        show_repair(repair, inputs, is_given, output)
        return
    show_formed(inputs, _given_clusters(chosen), output)


def _given_clusters(experiment: Experiment) -> str:
    """A note if ``ssdfl run`` forms no clusters because the experiment gives them."""
    config = experiment.clusters
    given = (
        f"clusters.plan = {config.plan}" if config.plan else f"clusters.number = {config.number}"
    )
    if not config.plan and not config.number:
        return ""
    return f"note: ssdfl run forms no clusters here, since the experiment has {given}."
