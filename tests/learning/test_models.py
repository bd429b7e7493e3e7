import pytest
import torch
from torch import nn

from ssdfl.errors import InputError
from ssdfl.learning import MODELS, build_model


def batch_norm(image_shape, num_classes):
    return nn.Sequential(nn.BatchNorm2d(image_shape[0]), nn.Flatten(), nn.LazyLinear(num_classes))


def nothing_to_train(image_shape, num_classes):
    return nn.Flatten()


def wrong_output(image_shape, num_classes):
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(num_classes + 1))


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28), (3, 32, 32)])
def test_every_model_scores_every_shape(name, shape):
    assert build_model(name, shape, 10, seed=0)(torch.zeros(3, *shape)).shape == (3, 10)


def test_the_papers_cnn():
    model = build_model("cnn", (1, 28, 28), 10, seed=0)
    convolutions = [layer.out_channels for layer in model if isinstance(layer, nn.Conv2d)]
    assert convolutions == [32, 64, 128, 128, 256]
    assert sum(isinstance(layer, nn.Linear) for layer in model) == 1
    assert count(model) == 558_474


def test_options_and_seeds():
    assert count(build_model("mlp", (1, 8, 8), 10, 0, {"hidden": 5})) == 65 * 5 + 6 * 10
    first, same, other = (build_model("mlp", (1, 8, 8), 10, seed) for seed in (0, 0, 1))
    weights = [next(model.parameters()) for model in (first, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_the_global_generator_is_left_alone():
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    build_model("mlp", (1, 8, 8), 10, 0)
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize(
    ("name", "shape", "options", "message"),
    [
        ("resnet", (1, 8, 8), {}, "model.name = resnet: expected one of cnn, mlp, logreg"),
        ("mlp", (1, 8, 8), {"width": 3}, "width"),
        ("cnn", (1, 4, 4), {}, "at least 8 × 8 pixels"),
        ("helpers:TOPOLOGY_SPECS", (1, 8, 8), {}, "expected a function"),
        (f"{__name__}:batch_norm", (1, 8, 8), {}, "Use GroupNorm"),
        ("builtins:list", (1, 8, 8), {}, "model = builtins:list"),
        (f"{__name__}:nothing_to_train", (1, 8, 8), {}, "no torch module with parameters"),
        (":x", (1, 8, 8), {}, "model.name = :x"),
        (f"{__name__}:wrong_output", (1, 8, 8), {}, r"model output = \(2, 11\)"),
    ],
)
def test_bad_models(name, shape, options, message):
    with pytest.raises(InputError, match=message):
        build_model(name, shape, 10, 0, options)


@pytest.mark.parametrize("size", [8, 14, 16, 28])
def test_every_weight_of_the_papers_cnn_trains(size):
    """On images of 14 pixels three poolings once left 78 % of the weights without any gradient."""
    torch.manual_seed(0)
    model = build_model("cnn", (1, size, size), 10, 0, {"initial": "he"})
    images, labels = torch.randn(64, 1, size, size), torch.arange(64) % 10
    nn.functional.cross_entropy(model(images), labels).backward()
    gradients = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    assert float((gradients == 0).double().mean()) < 1 / 3  # of units that are off for these images
    kernels = [parameter.grad for parameter in model.parameters() if parameter.dim() == 4]
    never_used = [int((kernel.abs().sum((0, 1)) == 0).sum()) for kernel in kernels]
    assert never_used == [0] * 5
