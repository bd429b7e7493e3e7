"""Mini-batch gradients: of one device, or of many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.func import grad, vmap

from ssdfl.arrays import IntArray
from ssdfl.engine.job import Job
from ssdfl.engine.linear_gradients import PartGradients, linear_gradients
from ssdfl.engine.tracing import kept_with, traced
from ssdfl.learning import Task, parts_of
from ssdfl.learning.inputs import like
from ssdfl.learning.torch_generator import seeded
from ssdfl.rng import generator

Gradients = Callable[[Tensor, IntArray, Tensor, tuple[int, int]], Tensor]
"""(n, d) gradients at parameters (n, d) of devices (n,) on samples (n, M), at time (t, e)."""


def gradient(
    job: Job,
    task: Task,
    θ: Tensor,
    samples: Tensor,
    at: tuple[int, int, int],
    buffers: dict[str, Tensor] | None = None,
) -> Tensor:
    """(P,) the gradient g_i(θ) of `eq:stochastic_local_grad` ``at`` step t, device i, local step e.

    Args:
        task: the job's, or its twin in another thread.
        buffers: what the model keeps besides parameters, if anything; updated in place.
    """
    inputs, targets = task.batch(samples)
    leaf = θ.detach().requires_grad_()
    with _random_numbers(job, task, at):
        (g,) = torch.autograd.grad(task.batch_loss(leaf, inputs, targets, buffers), leaf)
    return g


def _random_numbers(job: Job, task: Task, at: tuple[int, int, int]) -> AbstractContextManager[None]:
    """Those of a device's local step, if its model draws any."""
    if not task.draws_random_numbers:
        return nullcontext()
    seed = int(generator(job.seed, "model", *at).integers(2**62))
    return seeded(seed, task.device)


def looped(job: Job, task: Task) -> Gradients:
    """One device after the other: best for convolutions."""

    def gradients(Θ: Tensor, devices: IntArray, samples: Tensor, when: tuple[int, int]) -> Tensor:
        t, e = when
        rows = zip(Θ, samples, devices.tolist(), strict=True)
        found = [gradient(job, task, θ, some, at=(t, i, e)) for θ, some, i in rows]
        return found[0][None] if len(found) == 1 else torch.stack(found)

    return gradients


def stacked(job: Job, task: Task) -> Gradients:
    """All devices in one batched computation: best for models of linear layers."""
    by_parts = linear_gradients(task)
    return recorded(task) if by_parts is None else joined(by_parts)


def joined(by_parts: PartGradients) -> Gradients:
    """Gradients that come in parts, as rows."""

    def gradients(Θ: Tensor, devices: IntArray, samples: Tensor, when: tuple[int, int]) -> Tensor:
        return torch.cat(by_parts(Θ, samples), dim=1)

    return gradients


def recorded(task: Task) -> Gradients:
    """Torch's own batched gradients, for any model that it can batch."""

    def loss(θ: Tensor, targets: Tensor, *parts: Tensor) -> Tensor:
        return task.batch_loss(θ, like(task.inputs, parts), targets)

    per_device = kept_with(task, "_gradients", lambda: traced(vmap(grad(loss))))

    def gradients(Θ: Tensor, devices: IntArray, samples: Tensor, when: tuple[int, int]) -> Tensor:
        inputs, targets = task.batch(samples)
        result: Tensor = per_device(Θ, targets, *parts_of(inputs))
        return result

    return gradients


def choose_gradients(job: Job, tasks: Sequence[Task]) -> list[Gradients]:
    """Gradients for each of several threads, given a twin of the task for each.

    Stacked where the model allows it and has no convolutions, looped elsewhere. The model decides,
    not a stopwatch, so that a resumed run computes the same bits.
    """
    if job.task.stackable:
        return [stacked(job, job.task)] * len(tasks)
    return [looped(job, task) for task in tasks]
