"""Plans for experiments: given, or formed with constants measured on the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.clusters import (
    Exchange,
    FormationSettings,
    Plan,
    fitting_plan,
    form_clusters,
    plan_clusters,
    read_plan,
)
from ssdfl.clusters.scores import SIMULATED
from ssdfl.engine.job import first_message
from ssdfl.graph import MIXINGS, Network
from ssdfl.learning import (
    DeviceConstants,
    Optimizer,
    Task,
    measure_constants,
    spread_devices,
)
from ssdfl.methods import Rule
from ssdfl.preparation.sharing import shared_devices
from ssdfl.records.config import Experiment
from ssdfl.records.formation import TaskFacts, formation_settings, planned_rules

MEASURED_DEVICES = 8
CURVED_DEVICES = 2


def make_plans(
    experiment: Experiment,
    network: Network,
    task: Task,
    optimizers: Sequence[Optimizer],
    seed: int,
    formed: Sequence[Plan],
) -> tuple[Plan, ...]:
    """The plans of a seed: a given one, or one per kind of exchange, reusing earlier ones."""
    given = given_plan(experiment, network)
    if given is not None:
        return (given,)
    earlier = {plan.exchange: fitting_plan(plan, network) for plan in formed}
    missing = [kind for kind in exchanges(experiment, task) if kind not in earlier]
    if missing:
        devices = shared_devices(experiment, task, optimizers, seed)
        settings = measured_settings(experiment, task, seed)
        for kind in missing:
            earlier[kind] = form_clusters(network, devices, replace(settings, **kind._asdict()))
    return tuple(earlier.values())


def exchanges(experiment: Experiment, task: Task) -> list[Exchange]:
    """The kinds of exchange that need a plan.

    Formation weighs the cost of a cycle and drift, so a method that compresses, sends after
    training, or corrects drift may get other clusters. If no method needs a plan, the only kind is
    that of `cta`.
    """
    return list(dict.fromkeys(exchange_of(rule, task) for rule in planned_rules(experiment)))


def exchange_of(rule: Rule, task: Task) -> Exchange:
    """What formation asks of a rule; it sees corrections only if it may simulate learning."""
    corrects = rule.corrects and task.num_devices <= SIMULATED
    return Exchange(first_message(rule, task).size_bytes, rule.early, corrects)


def given_plan(experiment: Experiment, network: Network) -> Plan | None:
    """The plan that follows from the experiment's plan file or number of clusters, or None."""
    if experiment.clusters.plan:
        return fitting_plan(read_plan(Path(experiment.clusters.plan)), network)
    if experiment.clusters.number or network.num_devices < 2:
        return plan_clusters(
            network, experiment.clusters.number or 1, MIXINGS[experiment.network.mixing]
        )
    return None


def measured_settings(experiment: Experiment, task: Task, seed: int) -> FormationSettings:
    """Formation's settings for an experiment; missing constants are measured at θ⁰."""
    return settings_of(experiment, task, measure_devices(experiment, task, seed))


def measure_devices(experiment: Experiment, task: Task, seed: int) -> dict[int, DeviceConstants]:
    """The constants of the devices that measure them; they do not depend on the schedule."""
    return {
        device: measure_device(experiment, task, device, seed)
        for device in measuring(task.num_devices)
    }


def measuring(num_devices: int) -> list[int]:
    """The devices that measure constants for formation."""
    return spread_devices(num_devices, MEASURED_DEVICES)


def measure_device(experiment: Experiment, task: Task, device: int, seed: int) -> DeviceConstants:
    """B and L of one device at θ⁰, and γ if it is one of the first two that measure."""
    batch_size = experiment.training.batch_size
    found = measure_constants(
        task, devices=[device], batch_size=batch_size, iterations=0, seed=seed
    )
    smoothness = 0.0
    if device in measuring(task.num_devices)[:CURVED_DEVICES]:
        curved = measure_constants(
            task, devices=[device], batches=1, iterations=8, samples=64, seed=seed
        )
        smoothness = float(curved.smoothness[0])
    return DeviceConstants(found.gradient_bound, found.initial_loss, smoothness)


def settings_of(
    experiment: Experiment,
    task: Task,
    measured: Mapping[int, DeviceConstants],
    data_distance: FloatArray | None = None,
) -> FormationSettings:
    """Formation's settings from devices' measurements, for the first method's messages."""
    in_order = [measured[device] for device in sorted(measured)]
    first = exchanges(experiment, task)[0]
    facts = TaskFacts(
        gradient_bound=max(one.gradient_bound for one in in_order),
        smoothness=max(1e-12, *(one.smoothness for one in in_order)),
        initial_loss=float(np.mean([one.initial_loss for one in in_order])),
    )
    settings = formation_settings(experiment, facts)
    return replace(settings, data_distance=data_distance, **first._asdict())
