"""Refuse a user's own method whose first cycle cannot be run."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ssdfl.errors import InputError
from ssdfl.graph import check_mixing
from ssdfl.methods import Step

REMEDY = "Return setting.cycle(…), or a function of t that returns Step(train, csr_array(W))."


def check_schedule(method: str, schedule: object, num_devices: int, steps: int) -> None:
    """Check the first steps of a method's schedule.

    Args:
        method: its name in the experiment, for the errors.
        schedule: the return value of the method.
        steps: the number of steps to check: one cycle.

    Raises:
        InputError: it is not a schedule, or a step is not a `Step` of a training mask and a mixing
            matrix.
    """
    if not callable(schedule):
        expected = "a schedule: a function from the number of a step to a Step"
        raise InputError(f"what {method} returned", schedule, expected, REMEDY)
    for t in range(steps):
        _check_step(f"step {t} of {method}", schedule(t), num_devices)


def _check_step(what: str, step: object, num_devices: int) -> None:
    if not isinstance(step, Step):
        raise InputError(what, step, "a Step", REMEDY)
    _check_training(f"{what}: train", step.train, num_devices)
    _check_mixing(f"{what}: W", step.W, num_devices)


def _check_training(what: str, train: object, num_devices: int) -> None:
    is_mask = (
        isinstance(train, np.ndarray) and train.dtype == bool and train.shape == (num_devices,)
    )
    if not is_mask:
        expected = f"a bool array of shape ({num_devices},): which devices train"
        raise InputError(
            what, _short(train), expected, "Write np.full(num_devices, True) if all do."
        )


def _check_mixing(what: str, W: object, num_devices: int) -> None:
    shape = (num_devices, num_devices)
    if not isinstance(W, csr_array) or W.shape != shape:
        expected = f"a csr_array of shape {shape}: symmetric, doubly stochastic"
        raise InputError(what, _short(W), expected, REMEDY)
    try:
        check_mixing(W)
    except InputError as error:
        raise InputError(f"{what}: {error.what}", error.got, error.expected, error.remedy) from None


def _short(value: object) -> object:
    """Arrays by their type and shape, anything else as it is."""
    if not hasattr(value, "shape"):
        return value
    return f"{type(value).__name__} of {getattr(value, 'dtype', '')} {value.shape}"
