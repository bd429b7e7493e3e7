"""Faults, as functions from schedule to schedule."""

from __future__ import annotations

import numpy as np

from ssdfl.errors import check_range
from ssdfl.graph import without_links
from ssdfl.methods.step import Schedule, Step
from ssdfl.rng import generator


def drop_links(schedule: Schedule, probability: float, seed: int) -> Schedule:
    """Let every link fail at every step with a probability; its two ends keep its weight."""
    check_range("faults.link_loss", probability, 0, 1)

    def faulty(t: int) -> Step:
        step = schedule(t)
        rng = generator(seed, "lost links", t)
        return Step(
            step.train, without_links(step.W, lambda i, j: rng.random(len(i)) < probability)
        )

    return faulty


def drop_devices(schedule: Schedule, probability: float, seed: int) -> Schedule:
    """Let every device miss a step with a probability: it does not train, send or receive."""
    check_range("faults.device_loss", probability, 0, 1)

    def faulty(t: int) -> Step:
        step = schedule(t)
        away = generator(seed, "lost devices", t).random(len(step.train)) < probability
        return Step(
            step.train & ~away, without_links(step.W, lambda i, j: np.asarray(away[i] | away[j]))
        )

    return faulty
