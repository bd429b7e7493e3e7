"""Draw the inputs of a seed that come before the plan: network, data, model and optimizers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ssdfl.arrays import IntArray
from ssdfl.errors import InputError
from ssdfl.graph import Network, load_network
from ssdfl.learning import (
    Dataset,
    Dealing,
    Optimizer,
    Task,
    build_model,
    deal,
    draw_optimizers,
    make_task,
    num_outputs,
    parse_optimizer,
)
from ssdfl.learning.facts import ModelFacts, sample_of
from ssdfl.learning.task import suited
from ssdfl.records.config import Experiment
from ssdfl.rng import generator


def draw(
    experiment: Experiment, seed: int, data: Dataset, network: Network | None = None
) -> tuple[Network, Task, tuple[Optimizer, ...]]:
    """Draw a seed's network (if not given), data, model and optimizers."""
    network = network or load_network(experiment.network.spec, default_seed=seed)
    task = dealt_task(experiment, seed, data, network)
    return network, task, draw_optimizers_of(experiment, network.num_devices, seed)


def dealt_task(experiment: Experiment, seed: int, data: Dataset, network: Network) -> Task:
    """The task whose data are dealt out to the devices of a network."""
    return _task(experiment, data, dealt_shards(experiment, seed, data, network), seed)


def own_task(
    experiment: Experiment, seed: int, data: Dataset, device: int, num_devices: int
) -> Task:
    """The task as seen by a device that has only its own data: all others hold nothing."""
    return _task(experiment, data, own_shards(data, device, num_devices), seed)


def own_shards(data: Dataset, device: int, num_devices: int) -> list[IntArray]:
    """All samples for one device, none for the others."""
    held = len(data.train_targets)
    return [np.arange(held if one == device else 0) for one in range(num_devices)]


def _task(experiment: Experiment, data: Dataset, shards: list[IntArray], seed: int) -> Task:
    config, goal = experiment.model, experiment.task
    data = suited(data, goal.loss)
    facts = ModelFacts(
        inputs=sample_of(data.train_inputs),
        outputs=num_outputs(data, goal.loss),
        encoding=data.encoding,
        notes=data.notes,
    )
    model = build_model(
        config.name,
        facts.input_shape,
        facts.outputs,
        seed,
        config.options,
        example=facts.example(),
        initial=config.initial,
    )
    task = make_task(
        model, data, shards, experiment.evaluate.samples, seed, goal.loss, goal.metrics
    )
    return replace(task, buffers=config.buffers, facts=facts)


def dealt_shards(
    experiment: Experiment, seed: int, data: Dataset, network: Network
) -> list[IntArray]:
    """The samples that are dealt out to each device of a network."""
    config, rng = experiment.data, generator(seed, "partition")
    shards = deal(Dealing(data, network.names, config, rng))
    if config.samples_per_device == 0:
        return shards
    most = max(map(len, shards))
    if config.samples_per_device > most:
        raise InputError(
            "data.samples_per_device",
            config.samples_per_device,
            f"at most {most} with {network.num_devices} devices",
            "Lower it, or set 0 for all.",
        )
    return [rng.permutation(shard)[: config.samples_per_device] for shard in shards]


def draw_optimizers_of(
    experiment: Experiment, num_devices: int, seed: int
) -> tuple[Optimizer, ...]:
    """Each device's optimizer."""
    config = experiment.optimizers
    if config.devices:
        if len(config.devices) != num_devices:
            raise InputError(
                "optimizers.devices",
                len(config.devices),
                f"{num_devices}, one per device",
                "List them all.",
            )
        return tuple(parse_optimizer(text) for text in config.devices)
    rng = generator(seed, "optimizers")
    return draw_optimizers(config.kind, num_devices, rng, config.rho, config.mu, config.mix)
