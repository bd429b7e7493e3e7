"""The task: a model with its parameters as one vector, a loss, and everybody's data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from ssdfl.arrays import IntArray
from ssdfl.learning.datasets import Dataset
from ssdfl.rng import generator

Loss = Callable[[Tensor, Tensor], Tensor]


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
    """

    model: nn.Module
    loss: Loss
    inputs: Tensor
    labels: Tensor
    shards: Tensor
    test_inputs: Tensor
    test_labels: Tensor

    @property
    def num_devices(self) -> int:
        """N."""
        return self.shards.shape[0]

    @property
    def shard_size(self) -> int:
        """How many samples a device holds."""
        return self.shards.shape[1]

    @cached_property
    def layout(self) -> dict[str, torch.Size]:
        """Name and shape of every trainable parameter, in the order of the parameter vector."""
        return {name: p.shape for name, p in self.model.named_parameters() if p.requires_grad}

    @cached_property
    def initial_parameters(self) -> Tensor:
        """(d,) θ⁰, the same for every device."""
        return torch.cat([p.detach().reshape(-1) for p in self.model.parameters() if p.requires_grad])

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

    def scores(self, theta: Tensor, inputs: Tensor) -> Tensor:
        """Class scores of samples under the parameter vector ``theta``, as when the model is used."""
        return self._forward(theta, inputs, training=False)

    def batch_loss(self, theta: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
        """The training loss of a mini-batch, whose gradient is `eq:stochastic_local_grad`."""
        return self.loss(self._forward(theta, inputs, training=True), labels)

    def _forward(self, theta: Tensor, inputs: Tensor, training: bool) -> Tensor:
        if self.model.training != training:
            self.model.train(training)
        parts = theta.split([shape.numel() for shape in self.layout.values()])
        named = zip(self.layout.items(), parts, strict=True)
        parameters = {name: part.view(shape) for (name, shape), part in named}
        result: Tensor = functional_call(self.model, parameters, (inputs,))
        return result

    def batch(self, devices: int | Tensor, positions: IntArray) -> tuple[Tensor, Tensor]:
        """Samples and labels at positions in shards: (B,) of one device, or (n, B) of n devices."""
        index = self.shards[devices].gather(-1, torch.from_numpy(positions))
        return self.inputs[index], self.labels[index]


def make_task(
    model: nn.Module,
    data: Dataset,
    shards: IntArray,
    test_samples: int = 0,
    seed: int = 0,
    loss: Loss = nn.functional.cross_entropy,
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
