"""Predict how far devices drift apart in training, exactly for a linear model, and its slowdown.

Device i's gradients differ from the mean by a row of ``G``. In steps of length η E, training
changes the differences by ``X ← Ã X − δ X + G``, where δ is the pull of the loss back to a common
optimum, and mixing by ``X ← A X``. So the differences at the end of training sum to
``Σ_k (B^τ_a A^τ_r)^k Σ_{q < τ_a} B^q G`` over cycles k, with ``B = Ã − δ I``.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from scipy.sparse import csr_array, eye_array

from ssdfl.arrays import FloatArray
from ssdfl.graph import MixingMatrix, component_labels
from ssdfl.lazy import LazyModule
from ssdfl.machine import cores

if TYPE_CHECKING:
    import scipy.sparse.linalg as linalg
else:
    linalg = LazyModule("scipy.sparse.linalg")

PULL = 0.03
SLOWDOWN = 0.15
_TWENTY = 20
_DOUBLINGS = 5
_CYCLES = 1 << _DOUBLINGS
_DENSE_LIMIT = 256
_THREADS_FROM = 5000  # devices


@dataclass(frozen=True)
class Disagreement:
    """Mean square distances from the mean after training and mixing, in units of ``(η E)²``."""

    trained: float
    mixed: float


def disagreement(
    A: MixingMatrix,
    A_intra: MixingMatrix,
    differences: FloatArray,
    tau_a: int,
    tau_r: int,
    pull: float = PULL,
) -> Disagreement:
    """The mean square distance of devices from their mean in cycle 32, before and after mixing.

    Args:
        A: the mixing matrix of the whole network.
        A_intra: Ã, the mixing matrix inside clusters.
        differences: (N, k) the difference of each device's gradient (or label distribution) from
            the mean.
        pull: δ.

    Examples:
        >>> from ssdfl.graph import averaging
        >>> mean, apart = averaging(2), np.array([[1.0], [-1.0]])
        >>> disagreement(mean, mean, apart, tau_a=1, tau_r=1)  # averaging undoes all drift
        Disagreement(trained=1.0, mixed=0.0)
    """
    if not differences.any():
        return Disagreement(0.0, 0.0)
    if _is_better_dense(A, differences.shape[1], tau_a + tau_r):
        X = _by_doubling(A.toarray(), A_intra.toarray(), differences, tau_a, tau_r, pull)
    else:
        X = _by_iteration(A, A_intra, differences, tau_a, tau_r, pull)
    mixed = X
    for _ in range(tau_r):
        mixed = _mix(A, mixed)
    return Disagreement(*(float(np.square(Y).sum() / len(Y)) for Y in (X, mixed)))


def _is_better_dense(A: MixingMatrix, num_columns: int, num_steps: int) -> bool:
    """Whether a few dense N × N products are faster than many sparse ones."""
    n = A.shape[0]
    by_iteration = _CYCLES * num_steps * A.nnz * num_columns
    return n <= _DENSE_LIMIT and n**3 <= by_iteration


def _by_doubling(
    A: FloatArray, A_intra: FloatArray, G: FloatArray, tau_a: int, tau_r: int, pull: float
) -> FloatArray:
    """Σ_{k < 32} M^k Y in five products, since Σ_{k < 2h} = Σ_{k < h} + M^h Σ_{k < h}."""
    B = A_intra - pull * np.eye(len(A))
    X = np.zeros_like(G)
    for _ in range(tau_a):
        X = B @ X + G
    M: FloatArray = np.linalg.matrix_power(B, tau_a) @ np.linalg.matrix_power(A, tau_r)
    for _ in range(_DOUBLINGS - 1):
        X = X + M @ X
        M = M @ M
    total: FloatArray = X + M @ X
    return total


def _by_iteration(
    A: MixingMatrix, A_intra: MixingMatrix, G: FloatArray, tau_a: int, tau_r: int, pull: float
) -> FloatArray:
    """The sum cycle by cycle, many columns at a time, since columns are independent."""
    B: MixingMatrix = csr_array(A_intra - pull * eye_array(A.shape[0]))
    training = _repeated(B, tau_a)

    def of_columns(drift: FloatArray) -> FloatArray:
        drift = np.ascontiguousarray(drift)
        trained = drift
        for _ in range(tau_a - 1):
            trained = _mix(B, trained) + drift
        x = trained
        for _ in range(_CYCLES - 1):
            for W in (*[A] * tau_r, *training):
                x = _mix(W, x)
            x += trained
        return x

    if len(G) < _THREADS_FROM:
        return of_columns(G)
    with ThreadPoolExecutor(cores()) as threads:
        parts = np.array_split(G, min(cores(), G.shape[1]), axis=1)
        return np.concatenate(list(threads.map(of_columns, parts)), axis=1)


def _repeated(B: MixingMatrix, times: int) -> list[MixingMatrix]:
    """Matrices whose product is a power of B: the power itself if small clusters keep it sparse."""
    sizes = np.bincount(component_labels(B))
    if np.square(sizes).sum() > times * B.nnz:
        return [B] * times
    return [csr_array(linalg.matrix_power(B, times))]


def _mix(W: MixingMatrix, X: FloatArray) -> FloatArray:
    """W X as a dense array; SciPy's stubs do not type the product with an array of any rank."""
    return cast(FloatArray, W @ X)


def slowdown(disagreement: Disagreement, num_devices: int) -> float:
    """The factor by which disagreement multiplies the cycles to reach an accuracy.

    ``1 + κ (D_mixed + √(20 / N) (D_trained − D_mixed))``. The loss of a device at distance Δ from
    the mean is higher by about ½ γ ‖Δ‖², so D enters linearly. The part of D that mixing removes
    within the cycle only distorts the gradients in between, which averages out over devices. The
    progress of devices is also counted in steps, so η cancels. The constants were measured: see
    `docs/studies/formation`.

    Examples:
        >>> slowdown(Disagreement(0.0, 0.0), num_devices=5)
        1.0
    """
    undone = disagreement.trained - disagreement.mixed
    return 1.0 + SLOWDOWN * (disagreement.mixed + math.sqrt(_TWENTY / num_devices) * undone)
