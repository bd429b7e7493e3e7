"""The step and the devices to which a rule is applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ssdfl.arrays import IntArray

Rows = Any
"""(n, k) a tensor, one row per device. Only its methods are used: torch is not imported."""


@dataclass(frozen=True, eq=False)
class Moment:
    """The step and the devices of a rule's application: all that it may depend on besides rows.

    Attributes:
        t: the step.
        devices: (n,) the devices of the rows.
        seed: the run's seed; with ``t`` and ``devices`` the only source of randomness.
        rate: η of the step.
        local_steps: E, mini-batch steps of a training step.
        trains: whether these devices train in this step; it is the same for all of them.
        training: whether any device trains in this step. Otherwise the step only mixes.
        training_steps: τ_a, the number of steps of a cycle in which devices train.
        ends_cycle: it is the last step of a cycle.
        matrix: the index of the mixing matrix among the schedule's distinct ones, from 0.
    """

    t: int
    devices: IntArray
    seed: int
    rate: float
    local_steps: int = 1
    trains: bool = True
    training: bool = True
    training_steps: int = 1
    ends_cycle: bool = False
    matrix: int = 0
