"""The task: a model with its parameters as one vector, a loss, and the data of all devices."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.func import grad, vmap

from ssdfl.arrays import IntArray
from ssdfl.errors import InputError
from ssdfl.learning.dataset import Dataset, taken
from ssdfl.learning.facts import ModelFacts
from ssdfl.learning.inputs import Inputs, call_model, map_inputs
from ssdfl.learning.layout import Buffers, Home, Layout, frozen_modules, make_layout
from ssdfl.learning.losses import Loss, LossKind, find_loss
from ssdfl.learning.metrics import METRICS, TaskMetric, find_metrics
from ssdfl.learning.precision import Precision, check_bf16, computing_in
from ssdfl.learning.shards import Shards
from ssdfl.learning.torch_generator import seeded
from ssdfl.learning.trials import check_own_functions
from ssdfl.mappings import without
from ssdfl.records.scores import Score
from ssdfl.rng import generator


class Units(NamedTuple):
    """The mean and deviation of targets before they were standardised, one per value."""

    mean: Tensor
    deviation: Tensor

    def of(self, scaled: Tensor) -> Tensor:
        """Outputs or targets in their own units; in 64 bits, as means may far exceed deviations."""
        return scaled.double() * self.deviation + self.mean

    def to(self, device: torch.device | str) -> Units:
        """The same units on a torch device."""
        return Units(self.mean.to(device), self.deviation.to(device))


@dataclass(frozen=True, eq=False)
class Task:
    """The learning task of all devices.

    Attributes:
        model: defines the shapes and the initial parameters; its own parameters are never trained.
        loss: a function of the model's outputs and targets, averaged over a batch.
        inputs: (n, …) training samples of all devices, or a tuple or dict of such arrays.
        targets: (n, …) the targets of the training samples.
        shards: the samples of each device.
        test_inputs, test_targets: the test samples, the same for all devices.
        metrics: the metrics of tests; the first one ranks.
        num_classes: the number of classes; 0 if targets are numbers.
        buffers: whether the model's float buffers are mixed or stay with their devices.
        facts: the model's inputs and outputs, to be stored in its files.
        precision: the precision of training; parameters, gradients and tests keep the model's own.
        units: the scale of standardised targets, so that metrics are in the original units.
    """

    model: nn.Module
    loss: Loss
    inputs: Inputs
    targets: Tensor
    shards: Shards
    test_inputs: Inputs
    test_targets: Tensor
    metrics: tuple[TaskMetric, ...] = (METRICS["accuracy"],)
    num_classes: int = 0
    buffers: Buffers = "mix"
    facts: ModelFacts | None = None
    precision: Precision = "float32"
    units: Units | None = None

    @property
    def device(self) -> torch.device:
        """The torch device of its tensors."""
        return self.targets.device

    @property
    def goal_score(self) -> Score:
        """The score that ranks."""
        return self.metrics[0].score

    @property
    def num_devices(self) -> int:
        """N."""
        return len(self.shards)

    @cached_property
    def layout(self) -> Layout:
        """The layout of the model's state."""
        return make_layout(self.model, self.buffers)

    @cached_property
    def initial_parameters(self) -> Tensor:
        """(d,) θ⁰, the same for every device; mixed buffers come after the parameters."""
        return self.layout.packed(
            dict(self.model.named_parameters()) | dict(self.model.named_buffers())
        )

    @cached_property
    def initial_home(self) -> Home:
        """The buffers that stay with a device, before it trains; (1, k) each."""
        return {
            name: self.model.get_buffer(name).detach().clone().reshape(1, -1)
            for name in self.layout.home
        }

    def shared_state(self) -> dict[str, Tensor]:
        """The part of the model's ``state_dict`` that all devices share: frozen parameters etc."""
        own = self.layout.slots.keys() | self.layout.home.keys()
        aliases = {id(p) for name, p in self.model.named_parameters() if name in own}
        state = self.model.state_dict(keep_vars=True)
        return {
            name: tensor.detach()
            for name, tensor in without(state, own).items()
            if id(tensor) not in aliases
        }

    def trained(self, rows: Tensor) -> Tensor:
        """(…, P) the trainable part of rows (…, d): all but the buffers."""
        return rows if not self.layout.buffers else rows[..., : self.layout.num_trained]

    @property
    def num_parameters(self) -> int:
        """d."""
        return len(self.initial_parameters)

    @cached_property
    def has_convolutions(self) -> bool:
        """Whether the model has convolutions: for them vmap gains nothing and takes much memory."""
        return any(isinstance(module, nn.modules.conv._ConvNd) for module in self.model.modules())

    @cached_property
    def has_recurrence(self) -> bool:
        """Whether there are layers such as LSTMs, which vmap processes one device at a time."""
        return any(isinstance(module, nn.RNNBase) for module in self.model.modules())

    @cached_property
    def stackable(self) -> bool:
        """Whether many devices' gradients can be computed at once, as tried on a sample.

        They cannot for models that draw random numbers (dropout), and for layers that vmap does not
        support.
        """
        if self.has_convolutions or self.has_recurrence or self.layout.keeps_state:
            return False
        Θ = self.initial_parameters.repeat(2, 1)
        inputs, targets = self.batch(self.shards.samples[:1].expand(2, 1))
        tested = map_inputs(lambda part: part[:2], self.test_inputs), self.test_targets[:2]
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*performance drop")  # vmap would loop slowly
            try:
                vmap(grad(self.batch_loss))(Θ, inputs, targets)
                vmap(self.test, in_dims=(0, None, None))(Θ, *tested)
            except (RuntimeError, NotImplementedError, ValueError, UserWarning):
                return False
        return True

    @cached_property
    def draws_random_numbers(self) -> bool:
        """Whether training uses torch's generator, as dropout does; tried on a sample."""
        with seeded(None, self.device):
            before = _generator_state(self.device)
            buffers = self.layout.buffers_of(self.initial_parameters, self.initial_home)
            trained = self.trained(self.initial_parameters)
            self.batch_loss(trained, *self.batch(self.shards.samples[:2]), buffers)
            return not torch.equal(before, _generator_state(self.device))

    def twin(self) -> Task:
        """The same task with its own copy of the model, for another thread."""
        return replace(self, model=deepcopy(self.model))

    def to(self, device: torch.device | str) -> Task:
        """The task with its model and data on a torch device."""
        tensors = ("inputs", "targets", "shards", "test_inputs", "test_targets")
        moved = {
            name: map_inputs(lambda part: part.to(device), getattr(self, name)) for name in tensors
        }
        units = None if self.units is None else self.units.to(device)
        return replace(self, model=deepcopy(self.model).to(device), units=units, **moved)

    def in_precision(self, precision: Precision) -> Task:
        """The task with training that computes in a precision.

        Raises:
            InputError: bf16 for a 64-bit model, which torch would silently not cast, or on a CPU on
                which bf16 ends the process.
        """
        dtype = self.initial_parameters.dtype
        if precision != "float32" and dtype != torch.float32:
            expected = f"float32 for a model of {dtype}"
            raise InputError(
                "engine.precision", precision, expected, "Or make the model's parameters float32."
            )
        if precision == self.precision:
            return self
        if precision == "bf16" and self.device.type == "cpu":
            check_bf16()
        return replace(self, precision=precision)

    def scores(self, theta: Tensor, inputs: Inputs, home: Home | None = None) -> Tensor:
        """The model's outputs for samples with the parameters of a (d,) row, in evaluation mode.

        Args:
            home: (1, k) the device's buffers that are not in its row; by default the initial ones.
        """
        if not self.layout.keeps_state:
            return self._forward(self.layout.trained(theta), inputs, training=False)
        buffers = self.layout.buffers_of(theta, home or self.initial_home)
        return self._forward(
            self.layout.trained(self.trained(theta)) | buffers, inputs, training=False
        )

    def batch_loss(
        self,
        theta: Tensor,
        inputs: Inputs,
        targets: Tensor,
        buffers: dict[str, Tensor] | None = None,
    ) -> Tensor:
        """The training loss of a mini-batch, whose gradient is `eq:stochastic_local_grad`.

        Over all samples of a device it is ``L_i`` (`eq:local_loss_def`), its gradient ``∇L_i``
        (`eq:full_loss_grad`): ``training.batch_size = 0``.

        In mixed precision the model's layers and their gradients compute in fewer bits. The loss
        does not, since its sums need more.

        Args:
            theta: (P,) the parameters that train.
            buffers: the model's buffers, if it has any; updated in place.
        """
        tensors = self.layout.trained(theta) | (buffers or {})
        with computing_in(self.precision, theta.device):
            outputs = self._forward(tensors, inputs, training=True)
        loss = self.loss(outputs.to(theta.dtype), targets)
        if buffers:
            buffers.update({name: tensors[name].detach() for name in buffers})
        return loss

    def test(
        self, theta: Tensor, inputs: Inputs, targets: Tensor, home: Home | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The sum of the losses of test samples, and the sums of each metric."""
        outputs = self.scores(theta, inputs, home)
        scored = self.in_units(outputs), self.in_units(targets)
        return self.loss(outputs, targets) * len(targets), tuple(
            metric.sums(*scored) for metric in self.metrics
        )

    def in_units(self, values: Tensor) -> Tensor:
        """Outputs or targets in their own units, for metrics."""
        return values if self.units is None else self.units.of(values)

    def _forward(self, tensors: dict[str, Tensor], inputs: Inputs, training: bool) -> Tensor:
        """The model's outputs; it updates its buffers in ``tensors``."""
        if self.model.training != training:
            self.model.train(training)
        for module in self._frozen:
            module.eval()
        result: Tensor = call_model(self.model, inputs, tensors)
        return result

    @cached_property
    def _frozen(self) -> list[nn.Module]:
        return frozen_modules(self.model)

    def batch(self, samples: Tensor) -> tuple[Inputs, Tensor]:
        """Inputs and targets of samples (…), each of shape (…, shape of one)."""
        flat = samples.reshape(-1)

        def gathered(part: Tensor) -> Tensor:
            return part.index_select(0, flat).view(*samples.shape, *part.shape[1:])

        inputs: Inputs = map_inputs(gathered, self.inputs)
        return inputs, gathered(self.targets)


def available_device(name: str) -> str:
    """The name of a torch device, if this machine has it.

    Raises:
        InputError: there is no such device.
    """
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            "engine.device", name, "a device that torch can use here", f"({reason})"
        ) from None
    return name


def _generator_state(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def make_task(
    model: nn.Module,
    data: Dataset,
    shards: Iterable[ArrayLike],
    test_samples: int = 0,
    seed: int = 0,
    loss: str = "auto",
    metrics: Sequence[str] = (),
) -> Task:
    """A task from a model, a data set and its partition.

    Args:
        shards: the samples of each device.
        test_samples: the number of test samples, drawn from the seed; 0 is all.
        loss: a name in `LOSSES`, or ``package.module:function``; ``auto`` fits the data.
        metrics: the metrics of tests; by default those of the loss.

    Raises:
        InputError: there is no such loss or metric, or one of one's own cannot be used.
    """
    count = len(data.test_targets)
    tested: slice | IntArray = slice(None)
    if 0 < test_samples < count:
        tested = np.sort(generator(seed, "test").choice(count, size=test_samples, replace=False))
    data, kind = suited(data, loss), task_loss(data, loss)
    names = metrics or kind.metrics
    task = Task(
        model=model,
        loss=kind.function,
        inputs=map_inputs(torch.from_numpy, data.train_inputs),
        targets=torch.from_numpy(data.train_targets),
        shards=Shards.of(shards),
        test_inputs=map_inputs(torch.from_numpy, taken(data.test_inputs, tested)),
        test_targets=torch.from_numpy(data.test_targets[tested]),
        metrics=find_metrics(names),
        num_classes=data.num_classes,
        units=_units(data),
    )
    check_own_functions(task, loss, names)
    return task


@torch.inference_mode()
def tested(model: nn.Module, data: Dataset, metric: TaskMetric) -> float:
    """The score of a model in evaluation mode on the test samples, in their own units."""
    units = _units(data)
    outputs = call_model(model, map_inputs(torch.from_numpy, data.test_inputs))
    targets = torch.from_numpy(data.test_targets)
    return float(
        metric(outputs, targets) if units is None else metric(units.of(outputs), units.of(targets))
    )


def _units(data: Dataset) -> Units | None:
    scale = data.encoding.target
    if scale is None:
        return None
    return Units(torch.from_numpy(scale.mean), torch.from_numpy(scale.deviation))


def suited(data: Dataset, loss: str = "auto") -> Dataset:
    """The data set for a loss: 0/1 targets that were standardised as numbers are restored."""
    scale = data.encoding.target
    if scale is None or not task_loss(data, loss).labels:
        return data
    train, test = (
        scale.undone(targets).astype(np.float32)
        for targets in (data.train_targets, data.test_targets)
    )
    encoding = replace(data.encoding, target=None)
    return replace(data, train_targets=train, test_targets=test, encoding=encoding)


def task_loss(data: Dataset, loss: str = "auto") -> LossKind:
    """The loss for a data set: the named one, or one that fits its targets."""
    return find_loss(data.default_loss if loss == "auto" else loss, data.num_classes > 0)


def num_outputs(data: Dataset, loss: str = "auto") -> int:
    """The number of outputs of a model: one per class, or one per value of a target."""
    return data.num_classes if task_loss(data, loss).classes else data.target_size
