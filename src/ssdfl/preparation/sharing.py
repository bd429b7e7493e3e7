"""What devices disclose about their data, according to the experiment's section ``share``.

Simulated and real devices use the same functions, so both form plans from the same facts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.clusters import Device
from ssdfl.learning import Optimizer, Task, describe_devices, has_device_files
from ssdfl.records.config import Experiment
from ssdfl.records.engines import engine_traits
from ssdfl.rng import generator

DESCRIBED_SAMPLES = 16
"""The number of samples of a device that are compared with its neighbours'."""
SKETCHED = 32
"""The largest number of values in the sketch of a sample."""


def shared_devices(
    experiment: Experiment,
    task: Task,
    optimizers: Sequence[Optimizer],
    seed: int,
    devices: Sequence[int] | None = None,
) -> tuple[Device, ...]:
    """The facts about devices for formation: only those that the experiment lets them share."""
    share = experiment.share
    how = sample_sharing(experiment)
    found = describe_devices(
        task,
        optimizers,
        samples=0 if how == "none" else DESCRIBED_SAMPLES,
        seed=seed,
        sketch=None if share.gradient_sketch == "auto" else share.gradient_sketch == "yes",
        devices=devices,
    )
    return tuple(
        replace(
            device,
            labels=LABELS[share.labels](device.labels),
            samples=None if device.samples is None else SAMPLES[how](device.samples, seed),
        )
        for device in found
    )


def sample_sharing(experiment: Experiment) -> str:
    """``none``, ``sketch`` or ``raw``; ``auto`` is raw, but none for real devices or own data."""
    chosen = experiment.share.samples
    if chosen != "auto":
        return chosen
    real = engine_traits(experiment.engine.name).process_per_device
    own = bool(experiment.data.train) or has_device_files(experiment.data)
    return "none" if real or own else "raw"


def rounded_counts(counts: FloatArray) -> FloatArray:
    """Counts rounded to the nearest power of two on a logarithmic scale; 0 stays 0.

    Examples:
        >>> rounded_counts(np.array([0.0, 1.0, 5.0, 6.0, 100.0])).tolist()
        [0.0, 1.0, 4.0, 8.0, 128.0]
    """
    powers = np.exp2(np.round(np.log2(np.maximum(counts, 1))))
    return np.where(counts > 0, powers, 0.0)


def _no_counts(counts: FloatArray) -> FloatArray:
    """Equal counts, whatever a device holds."""
    return np.ones_like(counts)


LABELS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "counts": lambda counts: counts,
    "rounded": rounded_counts,
    "none": _no_counts,
}
"""How a device discloses its number of samples of each label."""


def sketched_samples(samples: FloatArray, seed: int) -> FloatArray:
    """(b, k) random projections of samples (b, d), to estimate their energy distance.

    All devices use the same projection matrix, drawn from the seed. A sketch has at most d / 2
    values, so the sample cannot be computed from it. The estimate of a distance is unbiased, with a
    relative deviation of about 1 / √(2 k): 12 % with k = 32.

    Examples:
        >>> sketched_samples(np.eye(8), seed=0).shape
        (8, 4)
    """
    features = samples.shape[1]
    kept = max(1, min(SKETCHED, features // 2))
    projection = generator(seed, "sample sketch").standard_normal((features, kept))
    # Normal projections scale lengths on average by the mean of the χ distribution. The comparison
    # uses the energy distance per value; a sample has d values, a sketch k.
    shrinks = math.sqrt(2) * math.exp(math.lgamma((kept + 1) / 2) - math.lgamma(kept / 2))
    sketched: FloatArray = samples @ projection * (kept / (features * shrinks))
    return sketched


SAMPLES: dict[str, Callable[[FloatArray, int], FloatArray]] = {
    "sketch": sketched_samples,
    "raw": lambda samples, seed: samples,
}
"""How a device discloses a few samples to its neighbours."""
