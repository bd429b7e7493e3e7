"""Measured beside predicted: what a run recorded against the paper's bounds, cycle by cycle."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np

from ssdfl.clusters import ScoreInputs
from ssdfl.engine import Job, load_state
from ssdfl.errors import InputError
from ssdfl.graph import MIXINGS, Weights
from ssdfl.learning import (
    MeasuredConstants,
    describe_devices,
    load_dataset,
    measure_constants,
    spread_devices,
)
from ssdfl.preparation import MEASURED_DEVICES, Prepared, clusters_of_method, make_job, prepare
from ssdfl.records.bounds import BoundRow
from ssdfl.records.config import Experiment
from ssdfl.records.folder import Row, RunFolder
from ssdfl.theory import ClusterTerms, Constants, published, rigorous

THEORIES: dict[str, ModuleType] = {"published": published, "rigorous": rigorous}


def compare_bounds(folder: RunFolder, data: Path | None = None) -> Iterator[BoundRow]:
    """Every recorded quantity of a run beside its bounds, with constants measured at θ⁰ and at the end.

    Raises:
        InputError: the run was a mesh, recorded no gaps, or took several local steps, of which the paper does
            not speak.
    """
    experiment = folder.experiment()
    if experiment.engine.name == "mesh":
        remedy = "No device of a mesh sees gaps. Run it with --engine local."
        raise InputError("engine.name", "mesh", "a run that recorded gaps", remedy)
    if not experiment.evaluate.gaps:
        remedy = "Run it again with --set evaluate.gaps=true."
        raise InputError("evaluate.gaps", False, "a run that recorded gaps", remedy)
    if experiment.training.local_steps > 1:
        remedy = "Run it with --set training.local_steps=1."
        raise InputError(
            "training.local_steps", experiment.training.local_steps, "1, as in the paper", remedy
        )
    dataset = load_dataset(experiment.data.name, data)
    for seed in experiment.seeds:
        instance = prepare(experiment, seed, dataset, formed=folder.plan(seed))
        for method in experiment.methods:
            if method in ("ssdfl", "sdfl", "pdfl"):
                job = make_job(experiment, instance, method)
                rows = folder.read_rows(seed, method)
                checkpoint = folder.method_folder(seed, method) / "checkpoint.safetensors"
                measured = _constants_along(job, checkpoint)
                situation = _situation(instance, job, measured, MIXINGS[experiment.network.mixing])
                yield from _compare(situation, measured, method, instance, rows)


def can_compare(experiment: Experiment) -> bool:
    """Whether `compare_bounds` has something to say of a run of this experiment."""
    one_step = experiment.training.local_steps == 1
    return experiment.evaluate.gaps and one_step and experiment.engine.name != "mesh"


def _constants_along(job: Job, checkpoint: Path) -> MeasuredConstants:
    """B, γ, the losses and variances at θ⁰ and at the devices' last parameters: the larger of both."""
    some = spread_devices(job.task.num_devices, MEASURED_DEVICES)
    points = [job.task.initial_parameters]
    if checkpoint.exists():
        points += list(load_state(checkpoint, job).X[some[:2]])
    found = [
        measure_constants(job.task, devices=some, theta=θ, batch_size=job.batch_size, seed=job.seed)
        for θ in points
    ]
    return replace(
        found[0],
        gradient_bound=max(one.gradient_bound for one in found),
        smoothness=np.max([one.smoothness for one in found], axis=0),
        gradient_variance=max(one.gradient_variance for one in found),
    )


def _situation(instance: Prepared, job: Job, measured: MeasuredConstants, weights: Weights) -> ScoreInputs:
    steps = [job.schedule(t) for t in range(job.steps_per_cycle)]
    τ_a = sum(bool(step.train.any()) for step in steps)
    constants = Constants(
        learning_rate=job.learning_rate,
        tau_a=τ_a,
        tau_r=job.steps_per_cycle - τ_a,
        gradient_bound=measured.gradient_bound,
        smoothness=max(float(measured.smoothness.max()), 1e-12),
        initial_loss=measured.initial_loss,
        variance_floor=measured.gradient_variance,
    )
    devices = describe_devices(instance.task, instance.optimizers)
    return ScoreInputs(instance.network, devices, constants, weights)


def _compare(
    situation: ScoreInputs, measured: MeasuredConstants, method: str, instance: Prepared, rows: list[Row]
) -> Iterator[BoundRow]:
    clusters = clusters_of_method(method, instance.plan)
    terms = [replace(situation.terms(cluster), amplification=0.0) for cluster in clusters]
    network = situation.terms(tuple(range(situation.network.num_devices)))
    for row in rows:
        place = (instance.seed, method, row["cycle"])
        for s, term in enumerate(terms):
            constants = replace(situation.constants, variance_floor=measured.gradient_variance * term.size)
            gap = row["cluster_gaps_before"][s]
            bounds = [theory.intra_consensus(constants, term, gap) for theory in THEORIES.values()]
            yield BoundRow(*place, "Lemma 1", s, row["cluster_gaps"][s], *bounds)
            squares = [_theorem_1(theory, constants, term, row, s) for theory in THEORIES.values()]
            yield BoundRow(*place, "Theorem 1", s, row["cluster_gradients"][s], *squares)
        after = row["consensus_distance"] * math.sqrt(situation.network.num_devices)
        gaps = [
            theory.inter_consensus(situation.constants, network, row["training_gap"])
            for theory in THEORIES.values()
        ]
        yield BoundRow(*place, "Lemma 2", -1, after, *gaps)


def _theorem_1(theory: ModuleType, constants: Constants, term: ClusterTerms, row: Row, s: int) -> float:
    """The bound on stochastic gradients: Assumption 4 adds α per step to that on full ones."""
    gap = row["cluster_gaps_before"][s]
    pull = (1 - term.lambda_min) / (2 * constants.learning_rate) * gap**2
    bound = theory.intra_convergence(constants, term, row["cluster_losses"][s] + pull)
    return float(bound + constants.tau_a * constants.variance_floor)
