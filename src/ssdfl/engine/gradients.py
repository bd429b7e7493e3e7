"""Mini-batch gradients: of one device, or of many at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import grad, vmap

from ssdfl.arrays import IntArray
from ssdfl.engine.job import Job
from ssdfl.rng import generator

Gradients = Callable[[Tensor, Tensor, IntArray, tuple[int, int]], Tensor]
"""(n, d) gradients at parameters (n, d) of devices (n,) on samples at positions (n, M), at time (t, e)."""


def gradient(job: Job, θ: Tensor, positions: IntArray, at: tuple[int, int, int]) -> Tensor:
    """(d,) the gradient g_i(θ) of `eq:stochastic_local_grad`, ``at`` step t, device i, local step e."""
    task = job.task
    t, i, e = at
    torch.default_generator.manual_seed(int(generator(job.seed, "model", t, i, e).integers(2**62)))
    inputs, labels = task.batch(i, positions)
    leaf = θ.detach().requires_grad_()
    (g,) = torch.autograd.grad(task.batch_loss(leaf, inputs, labels), leaf)
    return g


def looped(job: Job) -> Gradients:
    """One device after the other: best for convolutions."""

    def gradients(Θ: Tensor, devices: Tensor, positions: IntArray, when: tuple[int, int]) -> Tensor:
        t, e = when
        rows = zip(Θ, positions, devices.tolist(), strict=True)
        return torch.stack([gradient(job, θ, where, at=(t, i, e)) for θ, where, i in rows])

    return gradients


def stacked(job: Job) -> Gradients:
    """All devices in one batched computation: best for models of linear layers."""
    task = job.task
    per_device = vmap(grad(task.batch_loss))

    def gradients(Θ: Tensor, devices: Tensor, positions: IntArray, when: tuple[int, int]) -> Tensor:
        result: Tensor = per_device(Θ, *task.batch(devices, positions))
        return result

    return gradients


GRADIENTS: dict[str, Callable[[Job], Gradients]] = {"looped": looped, "stacked": stacked}


def choose_gradients(job: Job) -> Gradients:
    """Stacked where the model allows it and has no convolutions, looped elsewhere.

    By the model and not by a stopwatch, so that a run and its resumption compute the same bits;
    ``benchmarks/engine.py`` measures both.
    """
    return GRADIENTS["stacked" if job.task.stackable else "looped"](job)
