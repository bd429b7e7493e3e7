"""The quantities in the paper's bounds, measured in a run: clusters' gaps, gradients, losses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.clusters import labels_of
from ssdfl.engine.job import Job
from ssdfl.engine.shares import Shares
from ssdfl.learning import Home, Inputs, map_inputs
from ssdfl.rng import generator

LOSS_SAMPLES = 16


class GapRecorder:
    """Records gaps cycle by cycle; computes nothing if the job does not ask for them."""

    def __init__(self, job: Job, shares: Shares) -> None:
        self.wanted, self._shares, self._task = bool(job.gap_clusters), shares, job.task
        if self.wanted:
            self._labels = torch.from_numpy(labels_of(job.gap_clusters, job.network.num_devices))
            self._sizes = self._labels.bincount()
            self._losses_at = training_losses(job, shares.devices)

    def start(self, X: Tensor, home: Home) -> None:
        """Note the start of a cycle."""
        if self.wanted:
            self._before, self._across = self._gaps(X)
            self._after = self._before
            self._losses = self._sums(self._shares.everyone(self._losses_at(X, home)))

    def trained(self, squares: Tensor) -> None:
        """Note the cycle's (N, steps) squared effective gradients, after its training steps."""
        if self.wanted:
            self._squares = squares.sum(dim=1)

    def paused(self, X: Tensor) -> None:
        """Note the parameters after the last training step."""
        if self.wanted:
            self._after, self._across = self._gaps(X)

    def record(self) -> dict[str, float | tuple[float, ...]]:
        """The fields of the record."""
        if not self.wanted:
            return {}
        return {
            "training_gap": self._across,
            "cluster_gaps_before": tuple(self._before.tolist()),
            "cluster_gaps": tuple(self._after.tolist()),
            "cluster_gradients": tuple(self._sums(self._squares).tolist()),
            "cluster_losses": tuple(self._losses.tolist()),
        }

    def _sums(self, values: Tensor) -> FloatArray:
        total = torch.zeros(len(self._sizes), dtype=torch.float64)
        return np.asarray(total.index_add_(0, self._labels, values.double().cpu()).numpy())

    def _gaps(self, X: Tensor) -> tuple[FloatArray, float]:
        """(S,) ‖Δ_s‖ and ‖Δ̂‖ from sums of squares about the means, in one pass."""
        X = self._task.trained(X)
        centred = X - self._shares.mean(X)
        squares = self._sums(self._shares.everyone(centred.square().sum(dim=1)))
        sums = torch.zeros(len(self._sizes), X.shape[1], dtype=X.dtype, device=X.device)
        sums.index_add_(
            0, self._labels[torch.from_numpy(self._shares.devices)].to(X.device), centred
        )
        of_means = (
            self._shares.total(sums).square().sum(dim=1).double().cpu().numpy()
            / self._sizes.numpy()
        )
        return np.sqrt(np.maximum(squares - of_means, 0.0)), float(np.sqrt(squares.sum()))


def training_losses(
    job: Job, devices: IntArray, samples: int = LOSS_SAMPLES
) -> Callable[[Tensor, Home], Tensor]:
    """A function of (n, d) rows and buffers at home that returns (n,) losses on a few samples.

    The samples are each device's own, and always the same.
    """
    task = job.task
    rng = generator(job.seed, "losses")
    few = min(samples, int(task.shards.sizes.min()))
    positions = np.stack([rng.permutation(size)[:few] for size in task.shards.sizes.tolist()])
    inputs, targets = task.batch(task.shards.at(devices, positions[devices]))

    def loss(theta: Tensor, inputs: Inputs, targets: Tensor, home: Home | None = None) -> Tensor:
        return task.loss(task.scores(theta, inputs, home), targets)

    def of_device(k: int, θ: Tensor, home: Home) -> Tensor:
        return loss(θ, map_inputs(lambda part: part[k], inputs), targets[k], home)

    def stacked(X: Tensor, home: Home) -> Tensor:
        with torch.no_grad():
            return torch.as_tensor(vmap(loss)(X, inputs, targets))

    def looped(X: Tensor, home: Home) -> Tensor:
        homes = [{name: rows[[i]] for name, rows in home.items()} for i in range(len(X))]
        with torch.no_grad():
            return torch.stack([of_device(k, θ, homes[k]) for k, θ in enumerate(X)])

    return stacked if task.stackable else looped
