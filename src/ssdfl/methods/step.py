"""A schedule decides, for every step, who trains and how parameters mix."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from ssdfl.arrays import BoolArray
from ssdfl.graph import MixingMatrix

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Step:
    """One step of all devices.

    Attributes:
        train: (N,) which devices take local steps.
        W: (N, N) symmetric and doubly stochastic, applied as ``X ← W X``.
    """

    train: BoolArray
    W: MixingMatrix


Schedule = Callable[[int], Step]
"""A function that returns step t of a run. Steps may be requested in any order.

Randomness depends only on (seed, t).

A schedule may have an attribute ``period``: then step t is step ``t % period``, and engines reuse
their computations for these steps. `Periodic` makes such a schedule.
"""

Mixer = Callable[[int], MixingMatrix]
"""A function that returns the mixing matrix of step t; it may also have a ``period``."""


@dataclass(frozen=True, eq=False)
class Periodic(Generic[Value]):
    """A function of the step that repeats after ``period`` steps.

    Examples:
        >>> parity = Periodic(lambda t: "odd" if t % 2 else "even", period=2)
        >>> parity(7), parity.period
        ('odd', 2)
    """

    at: Callable[[int], Value]
    period: int

    def __call__(self, t: int) -> Value:
        """The value of step t."""
        return self.at(t % self.period)


def period_of(function: object) -> int | None:
    """The number of steps after which a schedule or mixer repeats; None if it has no ``period``."""
    return getattr(function, "period", None)


def always(W: MixingMatrix) -> Mixer:
    """The same matrix at every step."""
    return Periodic(lambda t: W, period=1)


def alternate(tau_a: int, tau_r: int, intra: Mixer, inter: Mixer) -> Schedule:
    """The paper's cycle: ``tau_a`` training steps mixed by ``intra``, ``tau_r`` by ``inter``.

    It has a period if both mixers have one.

    Examples:
        >>> from ssdfl.graph import averaging
        >>> schedule = alternate(2, 1, always(averaging(3)), always(averaging(3)))
        >>> [bool(schedule(t).train.all()) for t in range(6)]
        [True, True, False, True, True, False]
        >>> schedule.period
        3
    """
    cycle = tau_a + tau_r

    def schedule(t: int) -> Step:
        training = t % cycle < tau_a
        W = intra(t) if training else inter(t)
        return Step(np.full(W.shape[0], training), W)

    periods = [period_of(intra), period_of(inter)]
    known = [period for period in periods if period is not None]
    if len(known) < len(periods):
        return schedule
    return Periodic(schedule, math.lcm(cycle, *known))
