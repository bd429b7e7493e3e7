"""Measure the paper's constants on a task, and the facts that devices share about themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.clusters import Device
from ssdfl.errors import check_range
from ssdfl.learning.batches import draw_batches
from ssdfl.learning.inputs import Inputs, parts_of
from ssdfl.learning.optimizers import Optimizer
from ssdfl.learning.task import Task
from ssdfl.rng import generator

SKETCH = 32
"""The number of values in the sketch of a device's gradient."""
_OF_LABELS = 1.2
"""Drift by label frequencies over drift by sketches: 1.21 to 1.26 in the formation study.

Sketches are in units of samples' gradients, which also differ within a label. This is the square
root of the ratio of squares.
"""
_NORMED = 8


@dataclass(frozen=True, eq=False)
class MeasuredConstants:
    """Constants measured at a parameter vector.

    Attributes:
        devices: the devices that were measured.
        gradient_bound: B of Assumption 2 (`ass:bounded_grad`, `eq:ass_bound_grad`): the largest
            observed norm of a mini-batch gradient.
        smoothness: γ_i of Assumption 1 (`ass:smoothness`, `eq:ass_smoothness`), one per device: the
            largest curvature, by absolute value.
        initial_loss: the mean over devices of L_i.
        gradient_variance: the largest mean square distance of a device's mini-batch gradients from
            its full one: the noise α of Assumption 4 (`ass:grad_var`, `eq:ass_bound_grad_var`), per
            device.
    """

    devices: tuple[int, ...]
    gradient_bound: float
    smoothness: FloatArray
    initial_loss: float
    gradient_variance: float = 0.0


@dataclass(frozen=True)
class DeviceConstants:
    """One device's constants at θ⁰: B, L and γ, or 0 for a constant that it did not measure."""

    gradient_bound: float
    initial_loss: float
    smoothness: float


def measure_constants(
    task: Task,
    *,
    devices: Sequence[int] | None = None,
    theta: Tensor | None = None,
    batch_size: int = 32,
    batches: int = 4,
    iterations: int = 20,
    samples: int = 256,
    seed: int = 0,
) -> MeasuredConstants:
    """Measure B, γ_i and L at a parameter vector, θ⁰ by default.

    B is the largest norm over ``batches`` mini-batches of each device. γ_i is found by
    ``iterations`` of the power method on Hessian-vector products. These are lower bounds of the
    true constants, which hold for all parameters.

    Args:
        devices: the devices to measure; all by default.
        batch_size: samples of a mini-batch; 0 is the whole shard.
        samples: the number of samples of each device for the loss and its curvature.
        iterations: steps of the power method; 0 leaves γ_i at 0.
    """
    chosen = tuple(range(task.num_devices)) if devices is None else tuple(devices)
    check_range("batches", batches, 1)
    check_range("samples", samples, 1)
    check_range("iterations", iterations, 0)
    θ = (task.initial_parameters if theta is None else theta).detach()
    norms, curvatures, losses, variances = [], [], [], []
    for device in chosen:
        positions = _batch_positions(task, device, batches, batch_size, seed)
        gradients = [_gradient(task, θ, device, where) for where in positions]
        norms += [float(gradient.norm()) for gradient in gradients]
        whole = _random_positions(task, device, samples, seed)
        full = _gradient(task, θ, device, whole)
        variances.append(float(np.mean([float((g - full).square().sum()) for g in gradients])))
        losses.append(float(_loss(task, θ, device, whole)))
        curvatures.append(_curvature(task, θ, device, whole, iterations, seed))
    return MeasuredConstants(
        chosen, max(norms), np.array(curvatures), float(np.mean(losses)), max(variances)
    )


def spread_devices(num_devices: int, count: int) -> list[int]:
    """At most this many devices, evenly spread over their ids.

    Examples:
        >>> spread_devices(9, 3)
        [0, 4, 8]
    """
    return sorted({int(device) for device in np.linspace(0, num_devices - 1, count)})


def _random_positions(task: Task, device: int, samples: int, seed: int) -> IntArray:
    """Positions of some of a device's samples, drawn at random since shards are sorted by label."""
    size = int(task.shards.sizes[device])
    if size <= samples:
        return np.arange(size)
    drawn: IntArray = generator(seed, "samples", device).permutation(size)[:samples]
    return np.sort(drawn)


def _batch_positions(task: Task, device: int, batches: int, batch_size: int, seed: int) -> IntArray:
    if batch_size == 0:
        return np.arange(task.shards.sizes[device])[None]
    shape, size = (batches, batch_size), task.shards.sizes[device]
    positions: IntArray = draw_batches(seed, 0, [device], shape, size)[0]
    return positions


def _loss(task: Task, θ: Tensor, device: int, positions: IntArray) -> Tensor:
    inputs, targets = task.batch(task.shards[device][positions])
    return task.loss(task.scores(θ, inputs), targets)


def _gradient(
    task: Task, θ: Tensor, device: int, positions: IntArray, differentiable: bool = False
) -> Tensor:
    leaf = θ if differentiable else θ.clone().requires_grad_()
    (g,) = torch.autograd.grad(
        _loss(task, leaf, device, positions), leaf, create_graph=differentiable
    )
    return g


def _curvature(
    task: Task, θ: Tensor, device: int, positions: IntArray, iterations: int, seed: int
) -> float:
    """The largest |eigenvalue| of the Hessian, by the power method."""
    rng = generator(seed, "curvature", device)
    v = torch.from_numpy(rng.standard_normal(len(θ))).to(θ.dtype)
    λ = 0.0
    for _ in range(iterations):
        v = v / v.norm()
        leaf = θ.clone().requires_grad_()
        g = _gradient(task, leaf, device, positions, differentiable=True)
        (v,) = torch.autograd.grad(
            g @ v, leaf
        )  # grad_outputs=v would import sympy, which takes seconds
        λ = float(v.norm())
        if λ == 0:
            break
    return λ


def _flat_numbers(inputs: Inputs) -> FloatArray | None:
    """(n, features) samples as numbers; None for tokens, which have no distances."""
    numbers = [part.flatten(1).double() for part in parts_of(inputs) if part.is_floating_point()]
    return torch.cat(numbers, dim=1).numpy() if numbers else None


def label_counts(task: Task, samples: Tensor) -> list[int]:
    """The number of given samples in each class; empty if samples have no class."""
    if not has_labels(task):
        return []
    counts: list[int] = torch.bincount(task.targets[samples], minlength=task.num_classes).tolist()
    return counts


def label_table(task: Task) -> IntArray:
    """(N, C) each device's number of samples in each class; C is 0 if samples have no class."""
    if not has_labels(task):
        return np.zeros((task.num_devices, 0), dtype=np.int64)
    labels = task.targets[task.shards.samples].cpu().numpy()
    owner = np.repeat(np.arange(task.num_devices), task.shards.sizes)
    shape = task.num_devices, task.num_classes
    counts = np.bincount(owner * task.num_classes + labels, minlength=shape[0] * shape[1])
    return counts.reshape(shape)


def has_labels(task: Task) -> bool:
    """Whether every sample has one class."""
    return task.num_classes > 0 and task.targets.dim() == 1


class Sketches(NamedTuple):
    """Devices' sketches (n, k), if any, and (n,) root mean square norms of sample gradients."""

    rows: FloatArray | None
    scales: FloatArray

    def of(self, place: int) -> FloatArray | None:
        """(k,) the sketch at a position."""
        return None if self.rows is None else self.rows[place]


def sketch_gradients(task: Task, devices: Sequence[int], seed: int, samples: int = 256) -> Sketches:
    """Devices' mean gradients at θ⁰, projected onto the same `SKETCH` random directions.

    Inner products are kept up to an error of about 1 / √`SKETCH` (Johnson and Lindenstrauss).

    Args:
        samples: the number of samples of a device for its gradient.
    """
    θ = task.initial_parameters.detach()
    chosen = [_random_positions(task, device, samples, seed) for device in devices]
    means = torch.stack([_gradient(task, θ, *one) for one in zip(devices, chosen, strict=True)])
    scales = [_typical_norm(task, θ, *one) for one in zip(devices, chosen, strict=True)]
    return Sketches(_projected(means, seed), np.array(scales))


def _typical_norm(task: Task, θ: Tensor, device: int, positions: IntArray) -> float:
    """The root mean square norm of the gradients of a few single samples."""
    norms = [float(_gradient(task, θ, device, one[None]).norm()) for one in positions[:_NORMED]]
    return float(np.sqrt(np.mean(np.square(norms))))


def _projected(rows: Tensor, seed: int) -> FloatArray:
    """(n, `SKETCH`) rows times a random matrix, computed column by column."""
    rng = generator(seed, "sketch")
    columns = []
    for _ in range(SKETCH):
        direction = torch.from_numpy(rng.standard_normal(rows.shape[1], dtype=np.float32))
        columns.append((rows.cpu().float() @ direction).double().numpy())
    projected: FloatArray = np.stack(columns, axis=1) / np.sqrt(SKETCH)
    return projected


def describe_devices(
    task: Task,
    optimizers: Sequence[Optimizer],
    samples: int = 0,
    seed: int = 0,
    sketch: bool | None = None,
    devices: Sequence[int] | None = None,
) -> tuple[Device, ...]:
    """The facts that formation may use: label counts, optimizers, and a few raw samples on request.

    Args:
        samples: the number of raw samples.
        sketch: describe devices by their gradients instead of their labels; by default if there are
            no labels.
        devices: the devices to describe; all by default.
    """
    sketched = not has_labels(task) if sketch is None else sketch
    chosen = range(task.num_devices) if devices is None else devices
    found = (
        sketch_gradients(task, chosen, seed) if sketched else Sketches(None, np.ones(len(chosen)))
    )
    labels = label_table(task).astype(float) if has_labels(task) else np.ones((task.num_devices, 1))
    shown = _few_samples(task, chosen, samples, seed)
    return tuple(
        Device(
            labels[device],
            optimizers[device].rho,
            optimizers[device].mu,
            shown[place],
            found.of(place),
            float(found.scales[place]) / _OF_LABELS,
        )
        for place, device in enumerate(chosen)
    )


def _few_samples(
    task: Task, devices: Sequence[int], samples: int, seed: int
) -> list[FloatArray] | list[None]:
    """(samples, features) some of each device's samples, if any are wanted and they are numbers."""
    if not samples:
        return [None] * len(devices)
    chosen = [
        task.shards[device][_random_positions(task, device, samples, seed)] for device in devices
    ]
    numbers = _flat_numbers(task.batch(torch.cat(chosen))[0])
    if numbers is None:
        return [None] * len(devices)
    return np.split(numbers, np.cumsum([len(one) for one in chosen])[:-1])
