"""Gradients of stacks of linear layers, derived by hand and batched over devices.

Recorded operations of torch's own gradients (`engine.tracing`) keep samples in rows and classes in
columns, as models do. Here features are rows and samples columns, so that products read weights in
the order in which they lie in a device's row, and the softmax runs along rows. That takes about
half as many operations, and each is faster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ssdfl.learning import Inputs, Task, map_inputs
from ssdfl.learning.losses import Loss, cross_entropy, mse

PartGradients = Callable[[Tensor, Tensor], list[Tensor]]
"""Gradients at parameters (n, d) on samples (n, M): (n, k) each, the parts of rows in order."""


@dataclass(frozen=True)
class Activation:
    """An elementwise function of a layer's outputs.

    Attributes:
        of: its values, written over the outputs.
        back: the error of the outputs from that of the values, and the values; overwrites the
            error.
    """

    of: Callable[[Tensor], Tensor]
    back: Callable[[Tensor, Tensor], Tensor]


def _relu_back(error: Tensor, values: Tensor) -> Tensor:
    torch.ops.aten.threshold_backward.grad_input(error, values, 0, grad_input=error)
    return error


def _tanh_back(error: Tensor, values: Tensor) -> Tensor:
    torch.ops.aten.tanh_backward.grad_input(error, values, grad_input=error)
    return error


def _sigmoid_back(error: Tensor, values: Tensor) -> Tensor:
    torch.ops.aten.sigmoid_backward.grad_input(error, values, grad_input=error)
    return error


NONE = Activation(lambda outputs: outputs, lambda error, values: error)
ACTIVATIONS: dict[type[nn.Module], Activation] = {
    nn.Identity: NONE,
    nn.ReLU: Activation(torch.relu_, _relu_back),
    nn.Tanh: Activation(torch.tanh_, _tanh_back),
    nn.Sigmoid: Activation(torch.sigmoid_, _sigmoid_back),
}
"""The activations that are known here."""


def _cross_entropy_error(outputs: Tensor, labels: Tensor) -> Tensor:
    """(n, C, M) the gradient of the mean over a batch: (softmax − 1 at the label) / M."""
    error = outputs.softmax(1).scatter_(1, labels.unsqueeze(1), -1, reduce="add")
    return error.div_(labels.shape[1])


def _mse_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """(n, C, M) the gradient of the mean square."""
    error = outputs - (targets.unsqueeze(1) if targets.dim() == 2 else targets.transpose(1, 2))
    return error.mul_(2 / (error.shape[1] * error.shape[2]))


def _are_labels(targets: Tensor, outputs: Tensor) -> bool:
    return targets.dim() == 1 and targets.dtype == torch.int64


def _are_numbers(targets: Tensor, outputs: Tensor) -> bool:
    shapes = (outputs.shape, outputs.shape[:1] if outputs.shape[1] == 1 else None)
    return targets[:1].shape in shapes and targets.dtype == outputs.dtype


@dataclass(frozen=True)
class KnownLoss:
    """A loss whose gradient is known here.

    Attributes:
        function: the loss.
        error: its gradient with respect to a model's outputs (n, C, M), given targets (n, M, …).
        fits: whether it is so for all targets (samples, …), given a model's outputs (1, C).
    """

    function: Loss
    error: Callable[[Tensor, Tensor], Tensor]
    fits: Callable[[Tensor, Tensor], bool]


LOSSES = (
    KnownLoss(cross_entropy, _cross_entropy_error, _are_labels),
    KnownLoss(mse, _mse_error, _are_numbers),
)


@dataclass(frozen=True)
class Layer:
    """A linear layer and what follows it.

    Attributes:
        inputs: how many numbers it takes.
        has_bias: whether it adds some; they follow the weights in a device's row.
        activation: of its outputs.
    """

    inputs: int
    has_bias: bool
    activation: Activation = NONE

    def forward(self, weights: Tensor, biases: Tensor | None, values: Tensor) -> Tensor:
        """(n, outputs, M) its values for (n, inputs, M) those of the layer before."""
        if biases is None:
            return self.activation.of(torch.bmm(weights, values))
        return self.activation.of(torch.baddbmm(biases.unsqueeze(2), weights, values))

    def gradients(self, error: Tensor, values: Tensor) -> list[Tensor]:
        """(n, …) the gradients of its parameters, in the order of a device's row."""
        weights = torch.bmm(error, values.transpose(1, 2)).flatten(1)
        return [weights, error.sum(2)] if self.has_bias else [weights]


def linear_gradients(task: Task) -> PartGradients | None:
    """The gradients of a task whose model and loss are known here; None for others."""
    layers = layers_of(task.model)
    suits = layers and task.precision == "float32" and takes_rows(task, task.inputs)
    loss = _loss_of(task) if suits else None
    if loss is None:
        return None
    sizes, error_of = [slot.size for slot in task.layout.parameters.values()], loss.error

    def gradients(Θ: Tensor, samples: Tensor) -> list[Tensor]:
        inputs, targets = task.batch(samples)
        assert isinstance(inputs, Tensor)
        first = inputs.flatten(2).transpose(1, 2)
        weights, values = stacked_values(layers, Θ.split(sizes, dim=1), first)
        error, found = error_of(values[-1], targets), list[Tensor]()
        for layer, own in zip(reversed(layers), reversed(weights), strict=True):
            error = layer.activation.back(error, values.pop())
            found = layer.gradients(error, values[-1]) + found
            if len(values) > 1:
                error = torch.bmm(own.transpose(1, 2), error)
        return found

    return gradients


def stacked_values(
    layers: Sequence[Layer], parameters: Iterable[Tensor], inputs: Tensor
) -> tuple[list[Tensor], list[Tensor]]:
    """The weights of all layers, and their values, of which the first are the inputs (n, …, M).

    Args:
        parameters: (n, k) each, the parts of devices' rows in order.
    """
    rest, weights, values = iter(parameters), list[Tensor](), [inputs]
    for layer in layers:
        weights.append(next(rest).unflatten(1, (-1, layer.inputs)))
        biases = next(rest) if layer.has_bias else None
        values.append(layer.forward(weights[-1], biases, values[-1]))
    return weights, values


_LETTERS: dict[type[nn.Module], str] = {
    nn.Sequential: "",
    nn.Flatten: "F",
    nn.Linear: "L",
    **dict.fromkeys(ACTIVATIONS, "A"),
}
_CHANGED = ("forward", "_forward_hooks", "_forward_pre_hooks", "_backward_hooks")


def layers_of(model: nn.Module) -> list[Layer]:
    """The layers of a plain sequence of linear ones and known activations; none of other models.

    Examples:
        >>> [layer.inputs for layer in layers_of(nn.Sequential(nn.Linear(2, 3), nn.Tanh()))]
        [2]
        >>> layers_of(nn.Sequential(nn.Linear(2, 3), nn.Dropout()))
        []
    """
    modules = [module for _, module in model.named_modules(remove_duplicate=False)]
    letters = "".join(_LETTERS.get(type(module), "?") for module in modules)
    if not re.fullmatch("F?(LA?)+", letters) or _is_changed(model):
        return []
    layers: list[Layer] = []
    for module in modules:
        if isinstance(module, nn.Linear):
            layers.append(Layer(module.in_features, module.bias is not None))
        elif type(module) in ACTIVATIONS:
            layers[-1] = replace(layers[-1], activation=ACTIVATIONS[type(module)])
    return layers if _all_train(model, layers) else []


def _is_changed(model: nn.Module) -> bool:
    """Whether a module computes or returns something else than its type says."""
    return any(vars(module).get(name) for module in model.modules() for name in _CHANGED)


def _all_train(model: nn.Module, layers: list[Layer]) -> bool:
    """Whether no parameter is frozen or belongs to two layers."""
    trained = [one for one in model.parameters() if one.requires_grad]
    return len(trained) == sum(1 + layer.has_bias for layer in layers)


def _loss_of(task: Task) -> KnownLoss | None:
    outputs = task.scores(task.initial_parameters, map_inputs(lambda part: part[:1], task.inputs))
    for known in LOSSES:
        if known.function is task.loss and known.fits(task.targets, outputs):
            return known
    return None


def takes_rows(task: Task, inputs: Inputs) -> bool:
    """Whether a sample is one array that the first layer sees as a row of numbers."""
    if not isinstance(inputs, Tensor):
        return False
    flattened = any(isinstance(module, nn.Flatten) for module in task.model.modules())
    return inputs.dtype == task.initial_parameters.dtype and (flattened or inputs.dim() == 2)
