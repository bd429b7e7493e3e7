"""The state of a run between steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ssdfl.arrays import BoolArray, FloatArray, IntArray
from ssdfl.engine.job import Job
from ssdfl.engine.shares import Shares
from ssdfl.learning import Home, OptimizerKind

RULE, MODEL = "rule", "model"
"""Owners of memory besides optimizers: the rule, and the model, for buffers at home."""


@dataclass(frozen=True, eq=False)
class State:
    """The state of a run between two steps; enough to continue bit for bit.

    Attributes:
        step: the number of steps done.
        X: (n, d) parameters of the devices here.
        memory: the memory of optimizers, rules and models, by name: (k, w) rows of the devices that
            keep it, in ascending order (`memory_keepers`).
        trained: (N,) which devices trained in the last step; the others start a new regime when
            they train next.
        ready_s: (N,) simulated seconds at which each device can start its next step; in ranks, only
            valid for the devices here.
        transmissions: directed messages so far.
        real_s: seconds that a real device took so far; NaN in a simulation.
        shares: the devices here, if not all are.
    """

    step: int
    X: Tensor
    memory: dict[str, Tensor]
    trained: BoolArray
    ready_s: FloatArray
    transmissions: int
    real_s: float = math.nan
    shares: Shares | None = None

    def part(self, job: Job, devices: IntArray) -> State:
        """The state of some of the devices here."""
        if len(devices) == len(self.X):
            return self
        own = torch.from_numpy(devices).to(self.X.device)
        return replace(self, X=self.X[own], memory=own_rows(job, self.memory, devices))

    def clone(self) -> State:
        """A copy of the state in new memory."""
        memory = {name: rows.clone() for name, rows in self.memory.items()}
        return replace(self, X=self.X.clone(), memory=memory)


class Start(Protocol):
    """The start of a run: a state, or a checkpoint with one."""

    def part(self, job: Job, devices: IntArray) -> State:
        """The state of some devices."""


def kinds_of(job: Job) -> dict[OptimizerKind, IntArray]:
    """The devices with each kind of optimizer, in ascending order."""
    found: dict[OptimizerKind, list[int]] = {}
    for device, optimizer in enumerate(job.optimizers):
        found.setdefault(optimizer.kind, []).append(device)
    return {kind: np.array(devices, dtype=np.int64) for kind, devices in found.items()}


def memory_name(owner: str, name: str) -> str:
    """The name of a tensor in memory, such as ``momentum.velocity``."""
    return f"{owner}.{name}"


def memory_keepers(job: Job) -> dict[str, IntArray]:
    """The devices that keep each memory, by its name, in ascending order."""
    theta = job.task.initial_parameters[None]
    everyone = np.arange(job.network.num_devices)
    names = {memory_name(RULE, name): everyone for name in job.rule.init(theta)}
    names |= {memory_name(MODEL, name): everyone for name in job.task.layout.home}
    for kind, devices in kinds_of(job).items():
        names |= {
            memory_name(kind.name, name): devices for name in kind.init(job.task.trained(theta))
        }
    return names


def lasting(job: Job, state: State) -> bool:
    """Whether later steps need all memory: a device is in a regime, or momenta are kept."""
    return job.reset == "never" or bool(state.trained.any())


def lasting_memory(memory: dict[str, Tensor]) -> dict[str, Tensor]:
    """The memory that lasts between regimes: the rule's and the model's."""
    owners = (memory_name(RULE, ""), memory_name(MODEL, ""))
    return {name: rows for name, rows in memory.items() if name.startswith(owners)}


def home_of(memory: dict[str, Tensor]) -> Home:
    """The buffers that stay with the devices here, by their names in the model."""
    prefix = memory_name(MODEL, "")
    return {
        name.removeprefix(prefix): rows for name, rows in memory.items() if name.startswith(prefix)
    }


def initial_state(job: Job) -> State:
    """All devices at θ⁰, no messages sent, at time zero."""
    N = job.network.num_devices
    X = job.task.initial_parameters.expand(N, -1)
    return State(0, X, initial_memory(job), np.zeros(N, dtype=bool), np.zeros(N), 0)


def initial_memory(job: Job) -> dict[str, Tensor]:
    """The memory before training. Rows are views of a single row, so they take no space."""
    theta = job.task.initial_parameters[None]
    named = partial(memory_name, RULE)
    memory = {
        named(name): rows.expand(job.network.num_devices, -1)
        for name, rows in job.rule.init(theta).items()
    }
    for name, rows in job.task.initial_home.items():
        memory[memory_name(MODEL, name)] = rows.expand(job.network.num_devices, -1)
    for kind, devices in kinds_of(job).items():
        for name, rows in kind.init(job.task.trained(theta)).items():
            memory[memory_name(kind.name, name)] = rows.expand(len(devices), -1)
    return memory


def own_rows(job: Job, memory: dict[str, Tensor], devices: IntArray) -> dict[str, Tensor]:
    """The rows of some devices, from the memory of all."""
    own = {}
    for name, keepers in memory_keepers(job).items():
        here = np.flatnonzero(np.isin(keepers, devices))
        own[name] = memory[name][torch.from_numpy(here).to(memory[name].device)]
    return own
