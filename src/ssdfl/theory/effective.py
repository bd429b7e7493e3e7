"""The effective loss that SSD-FL minimises, and its gradient, for real parameter vectors.

In an intra-cluster regime the update ``X ← Ã X − η G̃`` (`eq:cluster_2gether_update`) with
``G̃ = G + M + μ (X − X⁰)`` (`eq:tildeg_cluster_wide`, `eq:prf_intracons_1`) is a step of length η
along ``∇F̃ = G̃ + (I − Ã) X / η`` (`eq:expand_cluster_gd`): gradient descent on the effective loss.
Rows are devices; with a block-diagonal Ã the sums over all devices are those over clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.graph import MixingMatrix


@dataclass(frozen=True, eq=False)
class RegimeState:
    """The state of devices in an intra-cluster regime.

    Attributes:
        X: (N, d) parameters θ_i.
        start: (N, d) parameters at the start of the regime.
        history: (N, d) ``Σ_{p<q} ρ_i^{q−p} g_i(θ_i^p)``, the momentum of earlier steps.
        mu: (N,) proximal factors.
    """

    X: FloatArray
    start: FloatArray
    history: FloatArray
    mu: FloatArray


def effective_gradient(
    state: RegimeState, gradients: FloatArray, A_intra: MixingMatrix, learning_rate: float
) -> FloatArray:
    """(N, d) ``∇F̃`` of `eq:expand_cluster_gd`; with full gradients it is ``∇L̃`` of `eq:eff_g_loss`.

    Examples:
        >>> from scipy.sparse import csr_array
        >>> X, start, history = np.array([[2.0]]), np.array([[1.0]]), np.array([[0.5]])
        >>> alone = RegimeState(X, start, history, np.array([0.1]))
        >>> gradient, A = np.array([[3.0]]), csr_array([[1.0]])
        >>> effective_gradient(alone, gradient, A, learning_rate=0.1).tolist()
        [[3.6]]
    """
    proximal = state.mu[:, None] * (state.X - state.start)
    pull: FloatArray = (state.X - A_intra @ state.X) / learning_rate
    result: FloatArray = gradients + state.history + proximal + pull
    return result


def effective_loss(
    state: RegimeState,
    losses: FloatArray,
    A_intra: MixingMatrix,
    learning_rate: float,
    centred: bool = False,
) -> float:
    """``L̃`` of `eq:eff_g_loss`: losses, momentum, proximal terms and the graph regulariser.

    For the devices of one cluster and its Ã_s it is ``L̃_s`` of `eq:eff_c_loss`.

    Args:
        losses: (N,) L_i(θ_i).
        centred: count the momentum term from the start of the regime: ``(θ − θ⁰)ᵀ M`` instead of
            ``θᵀ M``. The gradient is the same, but the published term depends on the origin of θ.

    Examples:
        >>> from scipy.sparse import csr_array
        >>> X, start, history = np.array([[2.0]]), np.array([[1.0]]), np.array([[0.5]])
        >>> alone = RegimeState(X, start, history, np.array([0.1]))
        >>> loss, A = np.array([3.0]), csr_array([[1.0]])
        >>> effective_loss(alone, loss, A, learning_rate=0.1)  # 3 + 1 + 0.05
        4.05
    """
    moved = state.X - state.start
    momentum = float(((moved if centred else state.X) * state.history).sum())
    proximal = float((state.mu[:, None] * moved**2).sum()) / 2
    return (
        float(losses.sum())
        + momentum
        + proximal
        + regulariser(state.X, A_intra) / (2 * learning_rate)
    )


def regulariser(X: FloatArray, A: MixingMatrix) -> float:
    """``‖X‖²_{I−A} = ½ Σ_ij a_ij ‖θ_i − θ_j‖²`` (`eq:greg_full`, which lacks the ½).

    Examples:
        >>> from scipy.sparse import csr_array
        >>> regulariser(np.array([[0.0], [2.0]]), csr_array([[0.5, 0.5], [0.5, 0.5]]))
        2.0
    """
    return float((X * (X - A @ X)).sum())


def consensus_gaps(
    X: FloatArray, clusters: tuple[tuple[int, ...], ...]
) -> tuple[FloatArray, float]:
    """(S,) ``‖Δ_s‖`` within each cluster and ``‖Δ̂‖`` over all devices (`eq:prf_intracons_2`).

    Examples:
        >>> inside, across = consensus_gaps(np.array([[0.0], [2.0], [4.0]]), ((0, 1), (2,)))
        >>> inside.round(6).tolist(), round(across**2, 6)
        ([1.414214, 0.0], 8.0)
    """
    inside = [
        np.linalg.norm(X[list(cluster)] - X[list(cluster)].mean(axis=0)) for cluster in clusters
    ]
    return np.array(inside, dtype=float), float(np.linalg.norm(X - X.mean(axis=0)))
