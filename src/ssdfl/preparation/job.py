"""One method's job on a prepared seed."""

from __future__ import annotations

import math

from ssdfl.clusters import (
    Clusters,
    Plan,
)
from ssdfl.engine import Job
from ssdfl.graph import MIXINGS
from ssdfl.learning import Task, find_rate
from ssdfl.methods import (
    Method,
    Schedule,
    ScheduleInputs,
    among_liars,
    drop_devices,
    drop_links,
    find_attack,
    find_method,
)
from ssdfl.preparation.liars import liars_of
from ssdfl.preparation.prepared import Prepared
from ssdfl.records.config import Experiment


def make_job(experiment: Experiment, prepared: Prepared, method: str) -> Job:
    """The job of one method, given by its name and options, on a prepared seed."""
    found = find_method(method)
    liars = liars_of(experiment.faults, prepared.network, prepared.seed)
    plan = prepared.plan_of(found)
    return Job(
        task=prepared.placed_task.in_precision(experiment.engine.precision),
        network=prepared.network,
        schedule=_schedule(experiment, prepared, found),
        rule=among_liars(found.rule, liars, find_attack(experiment.faults.attack)),
        optimizers=prepared.optimizers,
        cycles=experiment.cycles,
        steps_per_cycle=experiment.schedule.tau_a + experiment.schedule.tau_r,
        learning_rate=experiment.training.learning_rate,
        batch_size=experiment.training.batch_size,
        local_steps=experiment.training.local_steps,
        evaluate_every=experiment.evaluate.every or testing_interval(experiment, prepared.task),
        seed=prepared.seed,
        gap_clusters=clusters_of_method(method, plan) if experiment.evaluate.gaps else (),
        rate_factor=find_rate(experiment.training.rate, experiment.cycles),
        reset=experiment.optimizers.reset,
        weights=prepared.weights if experiment.data.weights == "size" else None,
        tested_models=experiment.evaluate.models,
        liars=liars,
        method=method,
    )


def testing_interval(experiment: Experiment, task: Task) -> int:
    """The number of cycles between tests so that testing takes at most about 25 % of a run.

    Testing only the mean model costs as much as testing one device.

    The work is counted in samples, not in seconds, so the interval is the same on every machine. A
    sample costs a third as much to test as to train, and less if devices are stacked
    (``benchmarks/engine.py`` measures it).
    """
    training, schedule = experiment.training, experiment.schedule
    trained = (
        schedule.tau_a
        * training.local_steps
        * (training.batch_size or round(task.shards.sizes.mean()))
    )
    if experiment.evaluate.models == "mean":
        return math.ceil(len(task.test_targets) / (trained * task.num_devices))
    hidden_layers = len(task.layout.slots) > 2
    gain = 1.0 if not task.stackable else 2.5 if hidden_layers else 1.5
    return math.ceil(len(task.test_targets) / (trained * gain))


def clusters_of_method(method: str, plan: Plan) -> Clusters:
    """The clusters in which a method mixes while training: one, single devices, or the plan's."""
    return find_method(method).training_clusters(plan.clusters)


def _schedule(experiment: Experiment, prepared: Prepared, method: Method) -> Schedule:
    inputs = ScheduleInputs(
        network=prepared.network,
        clusters=prepared.plan_of(method).clusters,
        tau_a=experiment.schedule.tau_a,
        tau_r=experiment.schedule.tau_r,
        weights=MIXINGS[experiment.network.mixing],
        link_probability=experiment.schedule.link_probability,
        seed=prepared.seed,
    )
    schedule = method.schedule(inputs)
    if experiment.faults.link_loss:
        schedule = drop_links(schedule, experiment.faults.link_loss, prepared.seed)
    if experiment.faults.device_loss:
        schedule = drop_devices(schedule, experiment.faults.device_loss, prepared.seed)
    return schedule
