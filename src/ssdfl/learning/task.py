"""The task: a model with its parameters as one vector, a loss, and everybody's data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

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
        """Name and shape of every parameter, in the order of the parameter vector."""
        return {name: parameter.shape for name, parameter in self.model.named_parameters()}

    @cached_property
    def initial_parameters(self) -> Tensor:
        """(d,) θ⁰, the same for every device."""
        return torch.cat([p.detach().reshape(-1) for p in self.model.parameters()])

    @property
    def num_parameters(self) -> int:
        """d."""
        return len(self.initial_parameters)

    @cached_property
    def has_dropout(self) -> bool:
        """Whether training draws random numbers inside the model."""
        return any(isinstance(module, nn.modules.dropout._DropoutNd) for module in self.model.modules())

    @cached_property
    def has_convolutions(self) -> bool:
        """Whether stacking devices with vmap is slower than going through them one by one."""
        return any(isinstance(module, nn.modules.conv._ConvNd) for module in self.model.modules())

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
    tested = np.arange(len(data.test_labels))
    if 0 < test_samples < len(tested):
        tested = np.sort(generator(seed, "test").choice(tested, size=test_samples, replace=False))
    return Task(
        model=model,
        loss=loss,
        inputs=torch.from_numpy(data.train_images),
        labels=torch.from_numpy(data.train_labels),
        shards=torch.from_numpy(shards),
        test_inputs=torch.from_numpy(data.test_images[tested]),
        test_labels=torch.from_numpy(data.test_labels[tested]),
    )
