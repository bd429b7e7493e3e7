"""From an experiment to jobs: the same network, plan, data, optimizers and initial model for all methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.sparse.csgraph import connected_components

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.clusters import (
    Clusters,
    FormationSettings,
    Plan,
    form_clusters,
    labels_of,
    plan_clusters,
    read_plan,
)
from ssdfl.clusters.formation import PRICE
from ssdfl.engine import Job
from ssdfl.engine.ranks import own_device
from ssdfl.errors import InputError
from ssdfl.experiments.config import Experiment
from ssdfl.graph import MIXINGS, Network, links_within, load_network
from ssdfl.learning import (
    Dataset,
    DeviceConstants,
    LocalOptimizer,
    Task,
    available_device,
    build_model,
    by_labels,
    describe_devices,
    dirichlet,
    draw_optimizers,
    iid,
    make_task,
    measure_constants,
    parse_optimizer,
    spread_devices,
)
from ssdfl.rng import generator
from ssdfl.schedule import Schedule, Setting, drop_devices, drop_links, find_method
from ssdfl.theory import Constants

MEASURED_DEVICES = 8
CURVED_DEVICES = 2
DESCRIBED_SAMPLES = 16


@dataclass(frozen=True, eq=False)
class Instance:
    """One seed of an experiment: what all its methods share."""

    seed: int
    network: Network
    plan: Plan
    task: Task
    optimizers: tuple[LocalOptimizer, ...]
    device: str = "cpu"

    @cached_property
    def placed_task(self) -> Task:
        """The task where the experiment wants its tensors."""
        return self.task if self.device == "cpu" else self.task.to(self.device)


def prepare(experiment: Experiment, seed: int, data: Dataset, formed: Plan | None = None) -> Instance:
    """Draw everything that a seed determines.

    Args:
        formed: the plan that formation made for this seed earlier, so that it is not made again.

    Raises:
        InputError: values that do not fit each other, such as more clusters than devices.
    """
    network, task, optimizers = draw(experiment, seed, data)
    plan = _plan(experiment, network, task, optimizers, seed, formed)
    return _instance(experiment, seed, plan, network, task, optimizers)


def prepare_planned(
    experiment: Experiment, seed: int, data: Dataset, network: Network, plan: Plan
) -> Instance:
    """What a seed determines besides a network and a plan that are known."""
    return _instance(experiment, seed, plan, *draw(experiment, seed, data, network))


def _instance(
    experiment: Experiment,
    seed: int,
    plan: Plan,
    network: Network,
    task: Task,
    optimizers: tuple[LocalOptimizer, ...],
) -> Instance:
    device = available_device(own_device(experiment.engine.device))
    return Instance(seed, network, plan, task, optimizers, device)


def draw(
    experiment: Experiment, seed: int, data: Dataset, network: Network | None = None
) -> tuple[Network, Task, tuple[LocalOptimizer, ...]]:
    """What a seed determines before there is a plan: network, if it is not known, data, model, optimizers."""
    network = network or load_network(experiment.network.spec, default_seed=seed)
    model = build_model(
        experiment.model.name, data.image_shape, data.num_classes, seed, experiment.model.options
    )
    shards = _deal(experiment, data, network.num_devices, seed)
    task = make_task(model, data, shards, experiment.evaluate.samples, seed)
    return network, task, _optimizers(experiment, network.num_devices, seed)


def formation_settings(experiment: Experiment, task: Task, seed: int) -> FormationSettings:
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
    config = experiment.clusters
    in_order = [measured[device] for device in sorted(measured)]
    constants = Constants(
        learning_rate=experiment.training.learning_rate,
        local_steps=experiment.training.local_steps,
        tau_a=experiment.schedule.tau_a,
        tau_r=experiment.schedule.tau_r,
        gradient_bound=config.gradient_bound or max(one.gradient_bound for one in in_order),
        smoothness=max(1e-12, *(one.smoothness for one in in_order)),
        initial_loss=float(np.mean([one.initial_loss for one in in_order])),
        tolerance=config.tolerance,
    )
    return FormationSettings(
        constants=constants,
        partition=config.partition,
        score=config.score,
        mode=config.mode,
        price=math.inf if config.strict else PRICE,
        message_bytes=4 * task.num_parameters,
        weights=MIXINGS[experiment.network.mixing],
        data_distance=data_distance,
    )


def _plan(
    experiment: Experiment,
    network: Network,
    task: Task,
    optimizers: Sequence[LocalOptimizer],
    seed: int,
    formed: Plan | None,
) -> Plan:
    given = given_plan(experiment, network)
    if given is not None:
        return given
    if formed is not None:
        return fitting_plan(formed, network)
    devices = describe_devices(task, optimizers, samples=DESCRIBED_SAMPLES, seed=seed)
    return form_clusters(network, devices, formation_settings(experiment, task, seed))


def given_plan(experiment: Experiment, network: Network) -> Plan | None:
    """The plan that the experiment names or its number of clusters makes; None if one is to be formed."""
    if experiment.clusters.plan:
        return fitting_plan(read_plan(Path(experiment.clusters.plan)), network)
    if experiment.clusters.number or network.num_devices < 2:
        return plan_clusters(network, experiment.clusters.number or 1, MIXINGS[experiment.network.mixing])
    return None


def fitting_plan(plan: Plan, network: Network) -> Plan:
    """The plan, if it is one for this network."""
    if plan.num_devices != network.num_devices:
        expected = f"{network.num_devices}, as the network has"
        raise InputError("devices of clusters.plan", plan.num_devices, expected, "Plan for this network.")
    labels = labels_of(plan.clusters, network.num_devices)
    parts = connected_components(links_within(network.adjacency, labels), directed=False)[0]
    if parts != plan.num_clusters:
        expected = f"{plan.num_clusters}, its clusters connected in this network"
        raise InputError("connected parts of clusters.plan", parts, expected, "Plan for this network.")
    return plan


def _deal(experiment: Experiment, data: Dataset, num_devices: int, seed: int) -> IntArray:
    config, rng = experiment.data, generator(seed, "partition")
    shards = {
        "labels": lambda: by_labels(data.train_labels, num_devices, config.labels_per_device, rng),
        "dirichlet": lambda: dirichlet(data.train_labels, num_devices, config.alpha, rng),
        "iid": lambda: iid(data.train_labels, num_devices, rng),
    }[config.partition]()
    if config.samples_per_device == 0:
        return shards
    if config.samples_per_device > shards.shape[1]:
        raise InputError(
            "data.samples_per_device",
            config.samples_per_device,
            f"at most {shards.shape[1]} with {num_devices} devices",
            "Lower it, or set 0 for all.",
        )
    return np.stack([rng.permutation(shard)[: config.samples_per_device] for shard in shards])


def _optimizers(experiment: Experiment, num_devices: int, seed: int) -> tuple[LocalOptimizer, ...]:
    config = experiment.optimizers
    if config.devices:
        if len(config.devices) != num_devices:
            raise InputError(
                "optimizers.devices", len(config.devices), f"{num_devices}, one per device", "List them all."
            )
        return tuple(parse_optimizer(text) for text in config.devices)
    return draw_optimizers(config.kind, num_devices, generator(seed, "optimizers"), config.rho, config.mu)


def make_job(experiment: Experiment, instance: Instance, method: str) -> Job:
    """One method's job on an instance."""
    return Job(
        task=instance.placed_task,
        network=instance.network,
        schedule=_schedule(experiment, instance, method),
        optimizers=instance.optimizers,
        cycles=experiment.cycles,
        steps_per_cycle=experiment.schedule.tau_a + experiment.schedule.tau_r,
        learning_rate=experiment.training.learning_rate,
        batch_size=experiment.training.batch_size,
        local_steps=experiment.training.local_steps,
        evaluate_every=experiment.evaluate.every or testing_interval(experiment, instance.task),
        seed=instance.seed,
        gap_clusters=clusters_of_method(method, instance.plan) if experiment.evaluate.gaps else (),
    )


def testing_interval(experiment: Experiment, task: Task) -> int:
    """After how many cycles testing takes no more than a quarter of a run.

    Counted in samples and not in seconds, so that it is the same on every machine. A sample costs a third as
    much to test as to train, and less where devices are stacked (``benchmarks/engine.py`` measures it).
    """
    training, schedule = experiment.training, experiment.schedule
    trained = schedule.tau_a * training.local_steps * (training.batch_size or task.shard_size)
    hidden_layers = len(task.layout) > 2
    gain = 1.0 if not task.stackable else 2.5 if hidden_layers else 1.5
    return math.ceil(len(task.test_labels) / (trained * gain))


def clusters_of_method(method: str, plan: Plan) -> Clusters:
    """Inside which clusters a method mixes while training: one, each device alone, or the plan's."""
    everyone = range(plan.num_devices)
    ends: dict[str, Clusters] = {
        "sdfl": (tuple(everyone),),
        "pdfl": tuple((device,) for device in everyone),
    }
    return ends.get(method, plan.clusters)


def _schedule(experiment: Experiment, instance: Instance, method: str) -> Schedule:
    setting = Setting(
        network=instance.network,
        clusters=instance.plan.clusters,
        tau_a=experiment.schedule.tau_a,
        tau_r=experiment.schedule.tau_r,
        weights=MIXINGS[experiment.network.mixing],
        link_probability=experiment.schedule.link_probability,
        seed=instance.seed,
    )
    schedule = find_method(method)(setting)
    if experiment.faults.link_loss:
        schedule = drop_links(schedule, experiment.faults.link_loss, instance.seed)
    if experiment.faults.device_loss:
        schedule = drop_devices(schedule, experiment.faults.device_loss, instance.seed)
    return schedule
