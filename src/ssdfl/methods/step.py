"""A schedule says, for every step, who trains and how parameters mix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ssdfl.arrays import BoolArray
from ssdfl.graph import MixingMatrix


@dataclass(frozen=True, eq=False)
class Step:
    """One step of all devices.

    Attributes:
        train: (N,) which devices take local steps before this mixing.
        W: (N, N) symmetric and doubly stochastic, applied as ``X ← W X``.
    """

    train: BoolArray
    W: MixingMatrix


Schedule = Callable[[int], Step]
"""Step t of a run. Seekable: randomness comes from (seed, t) alone, so any step can be asked for."""

Mixer = Callable[[int], MixingMatrix]
"""The mixing matrix of step t."""


def always(W: MixingMatrix) -> Mixer:
    """The same matrix at every step."""
    return lambda t: W


def alternate(tau_a: int, tau_r: int, intra: Mixer, inter: Mixer) -> Schedule:
    """A global cycle of the paper: ``tau_a`` training steps mixed by ``intra``, then ``tau_r`` by ``inter``.

    Examples:
        >>> from ssdfl.graph import averaging
        >>> schedule = alternate(2, 1, always(averaging(3)), always(averaging(3)))
        >>> [bool(schedule(t).train.all()) for t in range(6)]
        [True, True, False, True, True, False]
    """

    def schedule(t: int) -> Step:
        training = t % (tau_a + tau_r) < tau_a
        W = intra(t) if training else inter(t)
        return Step(np.full(W.shape[0], training), W)

    return schedule
