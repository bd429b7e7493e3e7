"""Mini-batches that each device can draw at any step, independently of other devices' draws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssdfl.arrays import IntArray
from ssdfl.rng import generator


def draw_batches(
    seed: int,
    t: int,
    devices: Sequence[int] | IntArray,
    shape: tuple[int, int],
    sizes: int | Sequence[int] | IntArray,
) -> IntArray:
    """The samples that devices, in ascending order, use at step t, as positions in their shards.

    They are drawn uniformly with replacement (`eq:stochastic_local_grad`). Each device owns a
    section of one random stream per step, so a subset of devices can jump directly to theirs.

    Args:
        shape: (local steps, batch size).
        sizes: the number of samples of each of these devices, or one number for all.

    Returns:
        (len(devices), local steps, batch size).

    Examples:
        >>> everyone = draw_batches(seed=0, t=4, devices=range(3), shape=(1, 2), sizes=[50, 9, 70])
        >>> bool((draw_batches(0, 4, range(2, 3), (1, 2), 70)[0] == everyone[2]).all())
        True
    """
    rng = generator(seed, "batches", t)
    assert isinstance(rng.bit_generator, np.random.PCG64)
    numbers = np.asarray(devices)
    each, reached, drawn = shape[0] * shape[1], 0, []
    for run in np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1):
        rng.bit_generator.advance((int(run[0]) - reached) * each)
        drawn.append(rng.random((len(run), *shape)))
        reached = int(run[-1]) + 1
    uniform = drawn[0] if len(drawn) == 1 else np.concatenate(drawn)
    positions: IntArray = (uniform * np.reshape(sizes, (-1, 1, 1))).astype(np.int64)
    return positions
