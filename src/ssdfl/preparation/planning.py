"""Plans for experiments: given, or formed with constants measured on the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.clusters import (
    Device,
    FormationSettings,
    Plan,
    fitting_plan,
    form_clusters,
    plan_clusters,
    read_plan,
)
from ssdfl.graph import MIXINGS, Network
from ssdfl.learning import (
    DeviceConstants,
    Optimizer,
    Task,
    describe_devices,
    measure_constants,
    spread_devices,
)
from ssdfl.methods import Message
from ssdfl.records.config import Experiment
from ssdfl.records.formation import TaskFacts, formation_settings

MEASURED_DEVICES = 8
CURVED_DEVICES = 2
DESCRIBED_SAMPLES = 16


def make_plan(
    experiment: Experiment,
    network: Network,
    task: Task,
    optimizers: Sequence[Optimizer],
    seed: int,
    formed: Plan | None,
) -> Plan:
    """The plan of a seed: given, formed earlier, or formed now."""
    given = given_plan(experiment, network)
    if given is not None:
        return given
    if formed is not None:
        return fitting_plan(formed, network)
    devices = described_devices(task, optimizers, seed)
    return form_clusters(network, devices, measured_settings(experiment, task, seed))


def given_plan(experiment: Experiment, network: Network) -> Plan | None:
    """The plan that the experiment names or its number of clusters makes; None if one is to be formed."""
    if experiment.clusters.plan:
        return fitting_plan(read_plan(Path(experiment.clusters.plan)), network)
    if experiment.clusters.number or network.num_devices < 2:
        return plan_clusters(network, experiment.clusters.number or 1, MIXINGS[experiment.network.mixing])
    return None


def described_devices(task: Task, optimizers: Sequence[Optimizer], seed: int) -> tuple[Device, ...]:
    """What formation is told of the devices: label counts, optimizers and a few samples."""
    return describe_devices(task, optimizers, samples=DESCRIBED_SAMPLES, seed=seed)


def measured_settings(experiment: Experiment, task: Task, seed: int) -> FormationSettings:
    """What formation is told of an experiment; constants are measured on the task at θ⁰ where not given."""
    measured = {
        device: measure_device(experiment, task, device, seed) for device in measuring(task.num_devices)
    }
    return settings_of(experiment, task, measured)


def measuring(num_devices: int) -> list[int]:
    """The devices that measure constants for formation."""
    return spread_devices(num_devices, MEASURED_DEVICES)


def measure_device(experiment: Experiment, task: Task, device: int, seed: int) -> DeviceConstants:
    """B, L and, of the first two that measure, γ of one device at θ⁰."""
    batch_size = experiment.training.batch_size
    found = measure_constants(task, devices=[device], batch_size=batch_size, iterations=0, seed=seed)
    smoothness = 0.0
    if device in measuring(task.num_devices)[:CURVED_DEVICES]:
        curved = measure_constants(task, devices=[device], batches=1, iterations=8, samples=64, seed=seed)
        smoothness = float(curved.smoothness[0])
    return DeviceConstants(found.gradient_bound, found.initial_loss, smoothness)


def settings_of(
    experiment: Experiment,
    task: Task,
    measured: Mapping[int, DeviceConstants],
    data_distance: FloatArray | None = None,
) -> FormationSettings:
    """What formation is told, given what some devices measured."""
    in_order = [measured[device] for device in sorted(measured)]
    facts = TaskFacts(
        gradient_bound=max(one.gradient_bound for one in in_order),
        smoothness=max(1e-12, *(one.smoothness for one in in_order)),
        initial_loss=float(np.mean([one.initial_loss for one in in_order])),
        message_bytes=Message(task.initial_parameters[None]).size_bytes,
    )
    return replace(formation_settings(experiment, facts), data_distance=data_distance)
