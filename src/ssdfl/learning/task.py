"""The task: a model with its parameters as one vector, a loss, and everybody's data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from ssdfl.arrays import IntArray
from ssdfl.errors import InputError
from ssdfl.learning.datasets import Dataset
from ssdfl.learning.facts import ModelFacts
from ssdfl.learning.layout import Buffers, Home, Layout, frozen_modules, make_layout
from ssdfl.learning.shards import Shards
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


@dataclass(frozen=True, eq=False)
class Task:
    """What the devices learn.

    Attributes:
        model: gives the shapes and the initial parameters; its own parameters are never trained.
        loss: of class scores and labels, averaged over a batch.
        inputs: (n, …) training samples of all devices.
        labels: (n,).
        shards: which samples each device holds.
        test_inputs, test_labels: what every device is tested on.
        buffers: whether the model's float buffers are mixed or stay with their devices.
        facts: what the model takes and gives, if its files are to say so.
    """

    model: nn.Module
    loss: Loss
    inputs: Tensor
    labels: Tensor
    shards: Shards
    test_inputs: Tensor
    test_labels: Tensor
    buffers: Buffers = "mix"
    facts: ModelFacts | None = None

    @property
    def num_devices(self) -> int:
        """N."""
        return len(self.shards)

    @cached_property
    def layout(self) -> Layout:
        """Where every tensor of the model's state lies."""
        return make_layout(self.model, self.buffers)

    @cached_property
    def initial_parameters(self) -> Tensor:
        """(d,) θ⁰, the same for every device; mixed buffers lie behind the parameters."""
        return self.layout.packed(dict(self.model.named_parameters()) | dict(self.model.named_buffers()))

    @cached_property
    def initial_home(self) -> Home:
        """(1, k) each: the buffers that stay with a device, before it trains."""
        return {
            name: self.model.get_buffer(name).detach().clone().reshape(1, -1) for name in self.layout.home
        }

    def shared_state(self) -> dict[str, Tensor]:
        """What of the model's ``state_dict`` all devices share, such as frozen parameters."""
        own = self.layout.slots.keys() | self.layout.home.keys()
        aliases = {id(p) for name, p in self.model.named_parameters() if name in own}
        state = self.model.state_dict(keep_vars=True)
        shared = {name: tensor for name, tensor in state.items() if name not in own}
        return {name: tensor.detach() for name, tensor in shared.items() if id(tensor) not in aliases}

    def trained(self, rows: Tensor) -> Tensor:
        """(…, P) the numbers of rows (…, d) that train: all but the buffers."""
        return rows if not self.layout.buffers else rows[..., : self.layout.num_trained]

    @property
    def num_parameters(self) -> int:
        """d."""
        return len(self.initial_parameters)

    @cached_property
    def has_convolutions(self) -> bool:
        """Whether stacking devices with vmap gains nothing and costs much memory."""
        return any(isinstance(module, nn.modules.conv._ConvNd) for module in self.model.modules())

    @cached_property
    def has_recurrence(self) -> bool:
        """Whether there are layers such as LSTMs, which vmap takes one device at a time."""
        return any(isinstance(module, nn.RNNBase) for module in self.model.modules())

    @cached_property
    def stackable(self) -> bool:
        """Whether many devices' gradients can be computed as one: tried on a sample.

        Not so for models that draw random numbers (dropout), and for layers that vmap does not know.
        """
        if self.has_convolutions or self.has_recurrence or self.layout.keeps_state:
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
            buffers = self.layout.buffers_of(self.initial_parameters, self.initial_home)
            trained = self.trained(self.initial_parameters)
            self.batch_loss(trained, self.inputs[:2], self.labels[:2], buffers)
            return not torch.equal(before, _generator_state(self.inputs.device))

    def twin(self) -> Task:
        """The same task with a model object of its own, for another thread."""
        return replace(self, model=deepcopy(self.model))

    def to(self, device: torch.device | str) -> Task:
        """The task with its model and data on a device of torch's."""
        tensors = ("inputs", "labels", "shards", "test_inputs", "test_labels")
        moved = {name: getattr(self, name).to(device) for name in tensors}
        return replace(self, model=deepcopy(self.model).to(device), **moved)

    def scores(self, theta: Tensor, inputs: Tensor, home: Home | None = None) -> Tensor:
        """Class scores of samples under a (d,) row, as when the model is used.

        Args:
            home: (1, k) the device's buffers that are not in its row; as before training by default.
        """
        if not self.layout.keeps_state:
            return self._forward(self.layout.trained(theta), inputs, training=False)
        buffers = self.layout.buffers_of(theta, home or self.initial_home)
        return self._forward(self.layout.trained(self.trained(theta)) | buffers, inputs, training=False)

    def batch_loss(
        self, theta: Tensor, inputs: Tensor, labels: Tensor, buffers: dict[str, Tensor] | None = None
    ) -> Tensor:
        """The training loss of a mini-batch, whose gradient is `eq:stochastic_local_grad`.

        Args:
            theta: (P,) the parameters that train.
            buffers: what the model keeps besides, if it does; renewed in place.
        """
        tensors = self.layout.trained(theta) | (buffers or {})
        loss = self.loss(self._forward(tensors, inputs, training=True), labels)
        if buffers:
            buffers.update({name: tensors[name].detach() for name in buffers})
        return loss

    def _forward(self, tensors: dict[str, Tensor], inputs: Tensor, training: bool) -> Tensor:
        """The model's outputs; buffers that it renews are renewed in ``tensors``."""
        if self.model.training != training:
            self.model.train(training)
        for module in self._frozen:
            module.eval()
        result: Tensor = functional_call(self.model, tensors, (inputs,))
        return result

    @cached_property
    def _frozen(self) -> list[nn.Module]:
        return frozen_modules(self.model)

    def batch(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        """(…, image) inputs and (…) labels of samples (…)."""
        shape = (*samples.shape, *self.inputs.shape[1:])
        inputs = self.inputs.index_select(0, samples.reshape(-1)).view(shape)
        return inputs, self.labels[samples]


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
    shards: Iterable[ArrayLike],
    test_samples: int = 0,
    seed: int = 0,
    loss: Loss = cross_entropy,
    buffers: Buffers = "mix",
    facts: ModelFacts | None = None,
) -> Task:
    """A task from a model, a data set and its partition.

    Args:
        shards: the samples of each device.
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
        shards=Shards.of(shards),
        test_inputs=torch.from_numpy(data.test_images[tested]),
        test_labels=torch.from_numpy(data.test_labels[tested]),
        buffers=buffers,
        facts=facts,
    )
