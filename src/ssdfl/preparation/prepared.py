"""One seed of an experiment, prepared: what all its methods share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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
from ssdfl.preparation.data_warnings import warn_of_data
from ssdfl.preparation.draw import draw
from ssdfl.preparation.planning import make_plan
from ssdfl.records.config import Experiment


@dataclass(frozen=True, eq=False)
class Prepared:
    """One seed of an experiment: what all its methods share."""

    seed: int
    network: Network
    plan: Plan
    task: Task
    optimizers: tuple[Optimizer, ...]
    device: str = "cpu"

    @cached_property
    def placed_task(self) -> Task:
        """The task where the experiment wants its tensors."""
        return self.task if self.device == "cpu" else self.task.to(self.device)


def prepare(experiment: Experiment, seed: int, data: Dataset, formed: Plan | None = None) -> Prepared:
    """Draw everything that a seed determines.

    Args:
        formed: the plan that formation made for this seed earlier, so that it is not made again.

    Raises:
        InputError: values that do not fit each other, such as more clusters than devices.
    """
    network, task, optimizers = draw(experiment, seed, data)
    warn_of_data(experiment, task, data)
    plan = make_plan(experiment, network, task, optimizers, seed, formed)
    return _prepared(experiment, seed, plan, network, task, optimizers)


def prepare_planned(
    experiment: Experiment, seed: int, data: Dataset, network: Network, plan: Plan
) -> Prepared:
    """What a seed determines besides a network and a plan that are known."""
    return _prepared(experiment, seed, plan, *draw(experiment, seed, data, network))


def _prepared(
    experiment: Experiment,
    seed: int,
    plan: Plan,
    network: Network,
    task: Task,
    optimizers: tuple[Optimizer, ...],
) -> Prepared:
    device = available_device(own_device(experiment.engine.device))
    return Prepared(seed, network, plan, task, optimizers, device)
