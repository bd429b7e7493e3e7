import pytest
import torch
from torch import nn

from ssdfl.errors import InputError
from ssdfl.learning import MODELS, build_model


class Keeping(nn.Module):
    """A linear layer that keeps something of what it has seen, in one of several ways."""

    def __init__(self, way):
        super().__init__()
        self.way, self.layer = way, nn.LazyLinear(10)
        self.seen, self.mean, self.cache = 0, torch.zeros(1), None
        self.register_buffer("running", torch.zeros(1), persistent=False)

    def forward(self, x):
        if self.training and self.way == "number":
            self.seen += 1
        if self.training and self.way == "tensor":
            self.mean = 0.9 * self.mean + 0.1 * x.mean()
        if self.training and self.way == "buffer":
            self.running += x.mean()
        if self.way == "cache" and self.cache is None:
            self.cache = torch.arange(len(x))
        return self.layer(x.flatten(1))


def keeping(image_shape, num_classes, way):
    return nn.Sequential(nn.Identity(), Keeping(way))


class WithExtraState(nn.Linear):
    def get_extra_state(self):
        return {"anything": 1}


def extra_state(image_shape, num_classes):
    return nn.Sequential(nn.Flatten(), WithExtraState(64, num_classes))


def unused_layer(image_shape, num_classes):
    model = nn.Sequential(nn.Flatten(), nn.LazyLinear(num_classes))
    model.spare = nn.Identity()
    model.spare.layer = nn.LazyLinear(3)
    return model


def nothing_to_train(image_shape, num_classes):
    return nn.Flatten()


def wrong_output(image_shape, num_classes):
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(num_classes + 1))


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", [name for name in MODELS if name != "lstm"])
@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28), (3, 32, 32)])
def test_every_model_scores_every_shape(name, shape):
    assert build_model(name, shape, 10, seed=0)(torch.zeros(3, *shape)).shape == (3, 10)


def test_an_lstm_scores_the_next_token_and_knows_only_those_before():
    tokens = torch.arange(12).reshape(2, 6) % 5
    model = build_model("lstm", (6,), 5, seed=0, example=tokens)
    scores = model(tokens)
    assert scores.shape == (2, 6, 5)
    tokens[:, 4:] = 0
    assert torch.equal(model(tokens)[:, :4], scores[:, :4])
    assert not torch.equal(model(tokens)[:, 4:], scores[:, 4:])
    with pytest.raises(InputError, match="tokens for lstm"):
        build_model("lstm", (1, 8, 8), 10, seed=0)


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
        (f"{__name__}:keeping", (1, 8, 8), {"way": "number"}, "1 Keeping: seen: expected state in"),
        (f"{__name__}:keeping", (1, 8, 8), {"way": "tensor"}, "1 Keeping: mean: expected state in"),
        (
            f"{__name__}:keeping",
            (1, 8, 8),
            {"way": "buffer"},
            "1 Keeping: running: expected state in",
        ),
        (f"{__name__}:extra_state", (1, 8, 8), {}, "1 WithExtraState: extra state"),
        (f"{__name__}:unused_layer", (1, 8, 8), {}, "model parameter = spare.layer.weight"),
        ("builtins:list", (1, 8, 8), {}, "model = builtins:list"),
        (f"{__name__}:nothing_to_train", (1, 8, 8), {}, "not a torch module with parameters"),
        (":x", (1, 8, 8), {}, "model.name = :x"),
        (
            "cnn",
            (1, 28, 28),
            {"norm": "layer"},
            "model.options.norm = layer: expected none or batch or current",
        ),
        (f"{__name__}:wrong_output", (1, 8, 8), {}, r"model output = \(2, 11\)"),
    ],
)
def test_bad_models(name, shape, options, message):
    with pytest.raises(InputError, match=message):
        build_model(name, shape, 10, 0, options)


def test_what_is_computed_once_and_kept_is_no_state():
    build_model(f"{__name__}:keeping", (1, 8, 8), 10, 0, {"way": "cache"})


def test_the_papers_cnn_is_normalised_after_each_convolution():
    """Normalisation brings a scale and a shift, and makes the bias superfluous."""
    plain = build_model("cnn", (1, 28, 28), 10, seed=0)
    model = build_model("cnn", (1, 28, 28), 10, 0, {"norm": "batch"})
    channels = 32 + 64 + 128 + 128 + 256
    assert count(plain) == 558_474
    assert count(model) == count(plain) + channels
    kinds = [type(layer) for layer in model]
    followers = [kinds[k + 1] for k, kind in enumerate(kinds) if kind is nn.Conv2d]
    assert followers == [nn.BatchNorm2d] * 5
    assert all(layer.bias is None for layer in model if isinstance(layer, nn.Conv2d))


def test_the_papers_cnn_can_take_statistics_of_the_batch_at_hand_in_tests():
    torch.manual_seed(0)
    images = torch.rand(6, 1, 28, 28)
    own = build_model("cnn", (1, 28, 28), 10, 0, {"norm": "current"})
    running = build_model("cnn", (1, 28, 28), 10, 0, {"norm": "batch"})
    assert not list(own.buffers())
    assert torch.equal(own.train()(images), running.train()(images))
    assert torch.equal(own.eval()(images), own.train()(images))
    assert not torch.allclose(own.eval()(images[:3]), own(images)[:3])
    assert torch.allclose(running.eval()(images[:3]), running(images)[:3], atol=1e-6)


def test_resnet8():
    """He et al. 2016 with n = 1 has 6n + 2 layers; ours pools and projects where shapes change."""
    model = build_model("resnet8", (3, 32, 32), 10, seed=0)
    kernels = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    assert [layer.kernel_size[0] for layer in kernels].count(3) == 7
    assert count(model) == 78_042
    statistics = [buffer for name, buffer in model.named_buffers() if "running" in name]
    assert sum(buffer.numel() for buffer in statistics) == 672


@pytest.mark.parametrize("options", [{"initial": "he"}, {"norm": "batch"}, {"norm": "current"}])
@pytest.mark.parametrize("size", [8, 14, 16, 28])
def test_every_weight_of_the_papers_cnn_trains(size, options):
    """On images of 14 pixels three poolings once left 78 % of the weights without any gradient."""
    torch.manual_seed(0)
    model = build_model("cnn", (1, size, size), 10, 0, options)
    images, labels = torch.randn(64, 1, size, size), torch.arange(64) % 10
    nn.functional.cross_entropy(model(images), labels).backward()
    gradients = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    assert float((gradients == 0).double().mean()) < 1 / 3  # of units that are off for these images
    kernels = [parameter.grad for parameter in model.parameters() if parameter.dim() == 4]
    never_used = [int((kernel.abs().sum((0, 1)) == 0).sum()) for kernel in kernels]
    assert never_used == [0] * 5
