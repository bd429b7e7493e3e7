"""Compare the quantities that a run recorded with the paper's bounds, cycle by cycle."""

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
    load_data,
    measure_constants,
    spread_devices,
)
from ssdfl.methods import find_method
from ssdfl.preparation import MEASURED_DEVICES, Prepared, clusters_of_method, make_job, prepare
from ssdfl.records.bounds import BoundRow
from ssdfl.records.config import Experiment
from ssdfl.records.engines import engine_traits, engines_that
from ssdfl.records.folder import Row, RunFolder
from ssdfl.theory import ClusterTerms, Constants, published, rigorous

THEORIES: dict[str, ModuleType] = {"published": published, "rigorous": rigorous}


def compare_bounds(folder: RunFolder, data: Path | None = None) -> Iterator[BoundRow]:
    """Compare every recorded quantity of a run with its bounds, using measured constants.

    Raises:
        InputError: the run recorded no gaps, or its engine cannot, or it took several local steps,
            which the paper's bounds do not cover.
    """
    experiment = folder.experiment()
    if (obstacle := _obstacle(experiment)) is not None:
        raise obstacle
    dataset = load_data(experiment.data, data)
    methods = [method for method in experiment.methods if find_method(method).bounded]
    for seed in experiment.seeds:
        instance = prepare(experiment, seed, dataset, formed=folder.plans(seed))
        for method in methods:
            job = make_job(experiment, instance, method)
            rows = folder.read_rows(seed, method)
            checkpoint = folder.checkpoint(seed, method)
            measured = _constants_along(job, checkpoint)
            inputs = _score_inputs(instance, job, measured, MIXINGS[experiment.network.mixing])
            yield from _compare(inputs, measured, method, instance, rows)


def can_compare(experiment: Experiment) -> bool:
    """Whether `compare_bounds` can compare a run of this experiment."""
    return _obstacle(experiment) is None


def _obstacle(experiment: Experiment) -> InputError | None:
    """Why a run cannot be compared with the bounds; None if it can."""
    engine, local_steps = experiment.engine.name, experiment.training.local_steps
    gaps = "a run that recorded gaps"
    if not engine_traits(engine).records_gaps:
        able = engines_that(lambda traits: traits.records_gaps)[0]
        return InputError(
            "engine.name", engine, gaps, f"It records none. Run it with --engine {able}."
        )
    if not experiment.evaluate.gaps:
        return InputError(
            "evaluate.gaps", False, gaps, "Run it again with --set evaluate.gaps=true."
        )
    if local_steps > 1:
        remedy = "Run it with --set training.local_steps=1."
        return InputError("training.local_steps", local_steps, "1, as in the paper", remedy)
    return None


def _constants_along(job: Job, checkpoint: Path) -> MeasuredConstants:
    """Constants of a run: the maxima of B, γ and variance over θ⁰ and the last parameters.

    Losses are those at θ⁰.
    """
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


def _score_inputs(
    instance: Prepared, job: Job, measured: MeasuredConstants, weights: Weights
) -> ScoreInputs:
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
    inputs: ScoreInputs,
    measured: MeasuredConstants,
    method: str,
    instance: Prepared,
    rows: list[Row],
) -> Iterator[BoundRow]:
    clusters = clusters_of_method(method, instance.plan)
    terms = [replace(inputs.terms(cluster), amplification=0.0) for cluster in clusters]
    network = inputs.terms(tuple(range(inputs.network.num_devices)))
    theories = THEORIES.values()
    for row in rows:
        place = (instance.seed, method, row["cycle"])
        for s, term in enumerate(terms):
            constants = replace(
                inputs.constants, variance_floor=measured.gradient_variance * term.size
            )
            gap = row["cluster_gaps_before"][s]
            bounds = [theory.intra_consensus(constants, term, gap) for theory in theories]
            yield BoundRow(*place, "Lemma 1", s, row["cluster_gaps"][s], *bounds)
            squares = [_theorem_1(theory, constants, term, row, s) for theory in theories]
            yield BoundRow(*place, "Theorem 1", s, row["cluster_gradients"][s], *squares)
        after = row["consensus_distance"] * math.sqrt(inputs.network.num_devices)
        before = row["training_gap"]
        gaps = [theory.inter_consensus(inputs.constants, network, before) for theory in theories]
        yield BoundRow(*place, "Lemma 2", -1, after, *gaps)


def _theorem_1(
    theory: ModuleType, constants: Constants, term: ClusterTerms, row: Row, s: int
) -> float:
    """The bound on stochastic gradients: Assumption 4 adds α per step to the one on full ones."""
    gap = row["cluster_gaps_before"][s]
    pull = (1 - term.lambda_min) / (2 * constants.learning_rate) * gap**2
    bound = theory.intra_convergence(constants, term, row["cluster_losses"][s] + pull)
    return float(bound + constants.tau_a * constants.variance_floor)
