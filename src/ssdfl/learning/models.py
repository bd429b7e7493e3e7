"""Models: the paper's CNN, small ones for quick work, or a user's own factory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from ssdfl.errors import InputError, find_function
from ssdfl.learning.inputs import Inputs, call_model, count, map_inputs
from ssdfl.learning.parameters import start_from
from ssdfl.learning.state_check import check_state
from ssdfl.learning.torch_generator import seeded

ImageShape = tuple[int, ...]
Model = nn.Module
"""A model, for layers that do not import torch."""

_MOST_POOLINGS = 3


def paper_cnn(
    image_shape: ImageShape, num_classes: int, initial: str = "torch", norm: str = "none"
) -> nn.Module:
    """Five convolutions of 32, 64, 128, 128, 256 channels and one linear layer, as in the paper.

    The paper gives neither kernel sizes nor pooling, normalisation or initialisation. We use 3 × 3
    kernels with max-pooling after the first three, which makes 558,474 parameters on Fashion-MNIST.
    Images below 16 pixels are pooled less often: on maps of one pixel, eight of nine weights of a
    kernel would see only padding and never train.

    Args:
        initial: ``torch``, PyTorch's default, with which signals shrink from layer to layer and
            training starts slowly; or ``he``, which keeps their size.
        norm: ``batch`` normalises after each convolution; devices with one label each then learn
            together on sparse networks, as in the paper (docs/studies/cnn). ``current`` does so by
            the batch at hand in tests, too, as a model does that is never put into evaluation mode;
            a sample's output then depends on the others in its batch. Or ``none``.
    """
    _check_option("initial", initial, ("torch", "he"))
    _check_option("norm", norm, ("none", "batch", "current"))
    channels = [image_shape[0], 32, 64, 128, 128, 256]
    height, width = image_shape[1:]
    if min(height, width) < 8:
        raise InputError(
            "image shape", image_shape, "at least 8 × 8 pixels for cnn", "Use mlp or logreg."
        )
    poolings = _poolings(min(height, width))
    layers: list[nn.Module] = []
    for depth, (entering, leaving) in enumerate(pairwise(channels)):
        layers += _convolution(entering, leaving, norm)
        if depth < poolings:
            layers.append(nn.MaxPool2d(2))
        # Pool before the ReLU: the same values and gradients, on a quarter of the pixels.
        layers.append(nn.ReLU())
    if initial == "he":
        _initialise_as_he(layers)
    pixels = (height >> poolings) * (width >> poolings)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels[-1] * pixels, num_classes))


def _check_option(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        expected = " or ".join(allowed)
        raise InputError(f"model.options.{name}", value, expected, "Choose one of them.")


def _convolution(entering: int, leaving: int, norm: str) -> list[nn.Module]:
    """A 3 × 3 convolution; where its output is normalised, it needs no bias."""
    if norm == "none":
        return [nn.Conv2d(entering, leaving, kernel_size=3, padding=1)]
    return [*_normalised(entering, leaving, kernel=3, running=norm == "batch")]


def _poolings(pixels: int) -> int:
    """How often to halve an image: at most three times, and never to a single pixel.

    Examples:
        >>> [_poolings(pixels) for pixels in (8, 14, 16, 28, 32)]
        [2, 2, 3, 3, 3]
    """
    return min(_MOST_POOLINGS, pixels.bit_length() - 2)


def _initialise_as_he(layers: Iterable[nn.Module]) -> None:
    """Initialise convolutions so that signals keep their size (He et al. 2015)."""
    for layer in layers:
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def mlp(image_shape: ImageShape, num_classes: int, hidden: int = 64) -> nn.Module:
    """One hidden layer."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(image_shape), hidden),
        nn.ReLU(),
        nn.Linear(hidden, num_classes),
    )


def logistic_regression(image_shape: ImageShape, num_classes: int) -> nn.Module:
    """One linear layer; with cross-entropy, training is a convex problem."""
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(image_shape), num_classes))


class ResidualBlock(nn.Module):
    """Two convolutions with batch normalisation, and a skip connection (He et al. 2016)."""

    def __init__(self, entering: int, leaving: int, stride: int) -> None:
        super().__init__()
        self.first = _normalised(entering, leaving, 3, stride)
        self.second = _normalised(leaving, leaving, 3)
        same = entering == leaving and stride == 1
        # Pooled instead of strided: torch 2.13 corrupts memory in the gradient of strided 1 × 1
        # convolutions with few channels, stored channels-last.
        pool = nn.AvgPool2d(stride, ceil_mode=True)
        self.around = (
            nn.Identity() if same else nn.Sequential(pool, _normalised(entering, leaving, 1))
        )

    def forward(self, x: Tensor) -> Tensor:
        """(n, leaving, …) of images (n, entering, …)."""
        inner = self.second(self.first(x).relu())
        return torch.relu(inner + self.around(x))


def _normalised(
    entering: int, leaving: int, kernel: int, stride: int = 1, running: bool = True
) -> nn.Sequential:
    """A convolution and its normalisation, in tests by running statistics or by the batch's own."""
    convolution = nn.Conv2d(entering, leaving, kernel, stride, padding=kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(leaving, track_running_stats=running))


def resnet8(image_shape: ImageShape, num_classes: int, width: int = 16) -> nn.Module:
    """A residual network of eight layers for small images: one block at each of three resolutions.

    78,042 parameters and 672 running statistics on CIFAR-10.
    """
    widths = [width, width, 2 * width, 4 * width]
    blocks = [ResidualBlock(*pair, 1 + (k > 0)) for k, pair in enumerate(pairwise(widths))]
    return nn.Sequential(
        _normalised(image_shape[0], width, 3),
        nn.ReLU(),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(widths[-1], num_classes),
    )


class TokenLSTM(nn.Module):
    """Embedded tokens, an LSTM layer, and a linear layer that scores each next token."""

    def __init__(self, num_tokens: int, embedding: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_tokens, embedding)
        self.memory = nn.LSTM(embedding, hidden, batch_first=True)
        self.head = nn.Linear(hidden, num_tokens)

    def forward(self, tokens: Tensor) -> Tensor:
        """(n, length, tokens) scores of sequences (n, length)."""
        remembered, _ = self.memory(self.embedding(tokens))
        scores: Tensor = self.head(remembered)
        return scores


def lstm(
    input_shape: ImageShape, num_classes: int, embedding: int = 16, hidden: int = 48
) -> nn.Module:
    """A small LSTM that predicts the next token of sequences (length,)."""
    if len(input_shape) != 1:
        raise InputError(
            "input shape", input_shape, "(length,) tokens for lstm", "Use it for sequences."
        )
    return TokenLSTM(num_classes, embedding, hidden)


ModelFactory = Callable[..., nn.Module]

MODELS: dict[str, ModelFactory] = {
    "cnn": paper_cnn,
    "mlp": mlp,
    "logreg": logistic_regression,
    "resnet8": resnet8,
    "lstm": lstm,
}


def build_model(
    name: str,
    image_shape: ImageShape,
    num_classes: int,
    seed: int,
    options: Mapping[str, object] | None = None,
    example: Inputs | None = None,
    initial: str = "",
) -> nn.Module:
    """A model by name, or from ``package.module:factory``.

    A factory is called with ``(image_shape, num_classes, **options)``: the shape of one sample (a
    tuple or dict of shapes if a model takes several inputs), and the number of outputs. The same
    seed gives the same initial parameters. Torch's global generator is left unchanged.

    Args:
        initial: a safetensors file with initial parameters; missing ones come from the seed.

    Raises:
        InputError: a name or option is unknown, the image is too small, or some state is neither a
            parameter nor a buffer.
    """
    factory = find_function(MODELS, name, "model.name")
    options = dict(options or {})
    with seeded(seed):
        try:
            model = _trainable(factory(image_shape, num_classes, **options))
            tried = torch.zeros(2, *image_shape) if example is None else example
            outputs = call_model(model.eval(), tried)
            check_state(model, lambda copy: call_model(copy, _random_like(tried)))
        except InputError:
            raise
        except Exception as error:  # a user's factory may raise anything
            says = f"({type(error).__name__}: {error})"
            raise InputError(
                "model", f"{name} {options}", f"a model for images {image_shape}", says
            ) from error
    if len(outputs) != count(tried) or outputs.shape[-1] != num_classes:
        expected = f"(batch, …, {num_classes}) class scores or numbers"
        raise InputError("model output", tuple(outputs.shape), expected, f"Fix {name}.")
    if initial:
        start_from(model, initial)
    return model


def _random_like(inputs: Inputs) -> Inputs:
    """Inputs with random numbers instead of numbers; tokens are kept."""
    drawn: Inputs = map_inputs(
        lambda x: torch.randn_like(x) if x.is_floating_point() else x, inputs
    )
    return drawn


def _trainable(model: object) -> nn.Module:
    if not isinstance(model, nn.Module) or not any(p.requires_grad for p in model.parameters()):
        raise TypeError("it is not a torch module with parameters to train")
    return model
