"""The task: a model with its parameters as one vector, a loss, and everybody's data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from ssdfl.arrays import IntArray
from ssdfl.errors import InputError
from ssdfl.learning.datasets import Dataset
from ssdfl.learning.precision import Precision, computing_in
from ssdfl.rng import generator

Loss = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """The mean over a batch of −log of the probability given to the right class.

    The same as torch's, with classes along the last dimension but one: vectorized over the batch, that is
    five times faster on a CPU where classes are few.

    Examples:
        >>> scores, labels = torch.eye(3), torch.tensor([0, 1, 1])
        >>> torch.allclose(cross_entropy(scores, labels), nn.functional.cross_entropy(scores, labels))
        True
    """
    return -scores.transpose(-1, -2).log_softmax(-2).gather(-2, labels.unsqueeze(-2)).mean()


@dataclass(frozen=True)
class Slot:
    """Where a model's parameter lies in the parameter vector: as `torch.as_strided` wants it."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


@dataclass(frozen=True, eq=False)
class Task:
    """What the devices learn.

    Attributes:
        model: gives the shapes and the initial parameters; its own parameters are never trained.
        loss: of class scores and labels, averaged over a batch.
        inputs: (n, …) training samples of all devices.
        labels: (n,).
        shards: (N, m) which samples each device holds.
        test_inputs, test_labels: what every device is tested on.
        precision: what training computes with; parameters, gradients and tests have the model's own.
    """

    model: nn.Module
    loss: Loss
    inputs: Tensor
    labels: Tensor
    shards: Tensor
    test_inputs: Tensor
    test_labels: Tensor
    precision: Precision = "float32"

    @property
    def num_devices(self) -> int:
        """N."""
        return self.shards.shape[0]

    @property
    def shard_size(self) -> int:
        """How many samples a device holds."""
        return self.shards.shape[1]

    @cached_property
    def layout(self) -> dict[str, Slot]:
        """Where every trainable parameter lies in the parameter vector.

        Kernels of two-dimensional convolutions lie with their channels last, as the convolutions of CPUs
        want them: a device's parameters are views into its row, and nothing is copied or reordered.
        """
        slots, offset = {}, 0
        for name, p in self.model.named_parameters():
            if p.requires_grad:
                laid = _shaped(_flat(p.detach()), tuple(p.shape))
                slots[name] = Slot(tuple(p.shape), laid.stride(), offset)
                offset += p.numel()
        return slots

    @cached_property
    def initial_parameters(self) -> Tensor:
        """(d,) θ⁰, the same for every device."""
        return torch.cat([_flat(p.detach()) for p in self.model.parameters() if p.requires_grad])

    @property
    def num_parameters(self) -> int:
        """d."""
        return len(self.initial_parameters)

    @cached_property
    def has_convolutions(self) -> bool:
        """Whether stacking devices with vmap gains nothing and costs much memory."""
        return any(isinstance(module, nn.modules.conv._ConvNd) for module in self.model.modules())

    @cached_property
    def stackable(self) -> bool:
        """Whether many devices' gradients can be computed as one: tried on a sample.

        Not so for models that draw random numbers (dropout), and for layers that vmap does not know.
        """
        if self.has_convolutions:
            return False
        Θ = self.initial_parameters.repeat(2, 1)
        inputs, labels = self.inputs[: len(Θ), None], self.labels[: len(Θ), None]
        try:
            vmap(grad(self.batch_loss))(Θ, inputs.expand(2, *inputs.shape[1:]), labels.expand(2, 1))
            vmap(self.scores, in_dims=(0, None))(Θ, self.test_inputs[:1])
        except (RuntimeError, NotImplementedError, ValueError):
            return False
        return True

    @cached_property
    def draws_random_numbers(self) -> bool:
        """Whether training draws from torch's generator, as dropout does: tried on a sample."""
        with fork_generators(self.inputs.device):
            before = _generator_state(self.inputs.device)
            self.batch_loss(self.initial_parameters, self.inputs[:2], self.labels[:2])
            return not torch.equal(before, _generator_state(self.inputs.device))

    def twin(self) -> Task:
        """The same task with a model object of its own, for another thread."""
        return replace(self, model=deepcopy(self.model))

    def to(self, device: torch.device | str) -> Task:
        """The task with its model and data on a device of torch's."""
        tensors = ("inputs", "labels", "shards", "test_inputs", "test_labels")
        moved = {name: getattr(self, name).to(device) for name in tensors}
        return replace(self, model=deepcopy(self.model).to(device), **moved)

    def in_precision(self, precision: Precision) -> Task:
        """The task with training that computes in a precision.

        Raises:
            InputError: bf16 for a model of 64 bits, which torch would silently leave as it is.
        """
        dtype = self.initial_parameters.dtype
        if precision != "float32" and dtype != torch.float32:
            expected = f"float32 for a model of {dtype}"
            raise InputError(
                "engine.precision", precision, expected, "Or make the model's parameters float32."
            )
        return self if precision == self.precision else replace(self, precision=precision)

    def scores(self, theta: Tensor, inputs: Tensor) -> Tensor:
        """Class scores of samples under the parameter vector ``theta``, as when the model is used."""
        return self._forward(theta, inputs, training=False)

    def batch_loss(self, theta: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
        """The training loss of a mini-batch, whose gradient is `eq:stochastic_local_grad`.

        In mixed precision the model's layers compute in fewer bits; their gradients follow. The loss, whose
        sums need more, does not.
        """
        with computing_in(self.precision, theta.device):
            scores = self._forward(theta, inputs, training=True)
        return self.loss(scores.to(theta.dtype), labels)

    def _forward(self, theta: Tensor, inputs: Tensor, training: bool) -> Tensor:
        if self.model.training != training:
            self.model.train(training)
        parts = theta.split([math.prod(slot.shape) for slot in self.layout.values()])
        named = zip(self.layout.items(), parts, strict=True)
        parameters = {name: _shaped(part, slot.shape) for (name, slot), part in named}
        result: Tensor = functional_call(self.model, parameters, (inputs,))
        return result

    def samples(self, devices: Sequence[int] | IntArray, positions: IntArray) -> Tensor:
        """(n, …) which samples lie at positions (n, …) in the shards of n devices."""
        rows = np.asarray(devices).reshape(-1, *[1] * (positions.ndim - 1))
        place = torch.from_numpy(rows * self.shard_size + positions).to(self.shards.device)
        return self.shards.reshape(-1)[place]

    def batch(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        """(…, image) inputs and (…) labels of samples (…)."""
        shape = (*samples.shape, *self.inputs.shape[1:])
        inputs = self.inputs.index_select(0, samples.reshape(-1)).view(shape)
        return inputs, self.labels[samples]


def _flat(parameter: Tensor) -> Tensor:
    """A parameter as its stretch of the parameter vector."""
    return (parameter.permute(0, 2, 3, 1) if parameter.dim() == 4 else parameter).reshape(-1)


def _shaped(part: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A stretch of the parameter vector as a parameter: the inverse of `_flat`."""
    if len(shape) != 4:
        return part.view(shape)
    leaving, entering, height, width = shape
    return part.view(leaving, height, width, entering).permute(0, 3, 1, 2)


def available_device(name: str) -> str:
    """The name of a device of torch's, if this machine has it.

    Raises:
        InputError: no such device.
    """
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError("engine.device", name, "a device that torch can use here", f"({reason})") from None
    return name


def fork_generators(device: torch.device) -> AbstractContextManager[None]:
    """Leave torch's generators of the CPU and of a device as they were."""
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])


def _generator_state(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def make_task(
    model: nn.Module,
    data: Dataset,
    shards: IntArray,
    test_samples: int = 0,
    seed: int = 0,
    loss: Loss = cross_entropy,
) -> Task:
    """A task from a model, a data set and its partition.

    Args:
        test_samples: how many test samples to evaluate on, drawn from the seed; 0 is all.
    """
    count = len(data.test_labels)
    tested: slice | IntArray = slice(None)
    if 0 < test_samples < count:
        tested = np.sort(generator(seed, "test").choice(count, size=test_samples, replace=False))
    return Task(
        model=model,
        loss=loss,
        inputs=torch.from_numpy(data.train_images),
        labels=torch.from_numpy(data.train_labels),
        shards=torch.from_numpy(shards),
        test_inputs=torch.from_numpy(data.test_images[tested]),
        test_labels=torch.from_numpy(data.test_labels[tested]),
    )
