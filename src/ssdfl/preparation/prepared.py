"""A prepared seed of an experiment, which all its methods share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.clusters import (
    Plan,
)
from ssdfl.engine.ranks import own_device
from ssdfl.graph import Network
from ssdfl.learning import (
    Dataset,
    Optimizer,
    Task,
    available_device,
)
from ssdfl.methods import Method
from ssdfl.preparation.data_warnings import warn_of_data
from ssdfl.preparation.draw import draw
from ssdfl.preparation.planning import exchange_of, make_plans
from ssdfl.records.config import Experiment


@dataclass(frozen=True, eq=False)
class Prepared:
    """The inputs of one seed of an experiment, which all its methods share.

    Attributes:
        plans: one for each kind of messages; the plan of the first method that needs one comes
            first.
        sizes: (N,) the number of samples of all devices, if the task holds only one device's data.
    """

    seed: int
    network: Network
    plans: tuple[Plan, ...]
    task: Task
    optimizers: tuple[Optimizer, ...]
    device: str = "cpu"
    sizes: IntArray | None = None

    @property
    def plan(self) -> Plan:
        """The plan of the first method that needs one."""
        return self.plans[0]

    def plan_of(self, method: Method) -> Plan:
        """The plan for a method's exchange: its messages, and whether it corrects drift."""
        if len(self.plans) == 1:
            return self.plan
        kind = exchange_of(method.rule, self.task)
        fitting = [plan for plan in self.plans if plan.exchange == kind]
        return fitting[0] if fitting else self.plan

    @property
    def weights(self) -> FloatArray:
        """(N,) each device's number of samples, divided by the mean."""
        if self.sizes is None:
            return self.task.shards.weights
        return np.asarray(self.sizes / self.sizes.mean(), dtype=float)

    @cached_property
    def placed_task(self) -> Task:
        """The task, with its tensors on the experiment's device."""
        return self.task if self.device == "cpu" else self.task.to(self.device)


def prepare(
    experiment: Experiment, seed: int, data: Dataset, formed: Sequence[Plan] = ()
) -> Prepared:
    """Draw everything that a seed determines.

    Args:
        formed: plans that formation made for this seed earlier; they are reused.

    Raises:
        InputError: the values contradict each other, such as more clusters than devices.
    """
    network, task, optimizers = draw(experiment, seed, data)
    warn_of_data(experiment, task, data)
    plans = make_plans(experiment, network, task, optimizers, seed, formed)
    return _prepared(experiment, seed, plans, network, task, optimizers)


def prepare_planned(
    experiment: Experiment, seed: int, data: Dataset, network: Network, plans: Sequence[Plan]
) -> Prepared:
    """Prepare a seed whose network and plans are known."""
    return _prepared(experiment, seed, tuple(plans), *draw(experiment, seed, data, network))


def _prepared(
    experiment: Experiment,
    seed: int,
    plans: tuple[Plan, ...],
    network: Network,
    task: Task,
    optimizers: tuple[Optimizer, ...],
) -> Prepared:
    device = available_device(own_device(experiment.engine.device))
    return Prepared(seed, network, plans, task, optimizers, device)
