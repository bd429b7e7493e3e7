"""When and to whom a rule is applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ssdfl.arrays import IntArray

Rows = Any
"""(n, k) a tensor, one row per device. Only its methods are used: torch is not imported."""


@dataclass(frozen=True, eq=False)
class Moment:
    """When a rule is applied, and to whom: all that it may depend on besides rows.

    Attributes:
        t: the step.
        devices: (n,) whose rows they are.
        seed: of the run; with ``t`` and ``devices`` the only source of randomness.
        rate: η of the step.
        local_steps: E, mini-batch steps of a training step.
        trains: these devices train in this step; engines call rules with devices that do alike.
        training: somebody trains in this step. Otherwise it is a step that only mixes.
        training_steps: τ_a, how many steps of a cycle somebody trains in.
        ends_cycle: it is the last step of a cycle.
        matrix: which of the schedule's distinct matrices mixes, counted from 0.
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
