import math

import numpy as np
import pytest
import torch
from torch import nn

from helpers import tiny_data, tiny_task
from ssdfl.learning import build_model, iid, make_task
from ssdfl.learning.losses import cross_entropy


def test_parameters_as_one_vector_score_like_the_model():
    task = tiny_task(3, model="mlp")
    task.model.eval()
    expected = task.model(task.test_inputs)
    assert torch.allclose(task.scores(task.initial_parameters, task.test_inputs), expected)
    assert task.num_parameters == sum(math.prod(slot.shape) for slot in task.layout.slots.values())


def test_batches_come_from_the_devices_own_shard():
    task = tiny_task(4)
    positions = np.array([[0, 5], [1, 1], [2, 0], [3, 3]])
    inputs, labels = task.batch(task.shards.at(range(4), positions))
    assert inputs.shape == (4, 2, 1, 4, 4)
    for device in range(4):
        alone = task.batch(task.shards[device][positions[device]])
        assert torch.equal(alone[0], inputs[device])
        assert torch.equal(alone[1], task.targets[task.shards[device][positions[device]]])
        assert torch.equal(alone[1], labels[device])


def test_test_samples_are_drawn_from_the_seed():
    data = tiny_data()
    shards = iid(data.train_targets, 2, np.random.default_rng(0))
    model = build_model("logreg", data.input_shape, 4, 0)
    tasks = [make_task(model, data, shards, test_samples=20, seed=seed) for seed in (0, 0, 1)]
    assert [len(task.test_targets) for task in tasks] == [20, 20, 20]
    assert torch.equal(tasks[0].test_inputs, tasks[1].test_inputs)
    assert not torch.equal(tasks[0].test_inputs, tasks[2].test_inputs)
    assert len(make_task(model, data, shards).test_targets) == len(data.test_targets)


@pytest.mark.parametrize(
    ("model", "convolutions"),
    [("mlp", False), ("logreg", False), (f"{__name__}:convolution", True)],
)
def test_convolutions_are_not_stacked(model, convolutions):
    task = tiny_task(2, model)
    assert task.has_convolutions is convolutions
    assert task.stackable is not convolutions


def convolution(image_shape, num_classes):
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, num_classes))


@pytest.mark.parametrize(
    ("factory", "stackable"),
    [("functional_dropout", False), ("recurrent", False), ("own_class", True)],
)
def test_what_cannot_be_stacked_is_found_out(factory, stackable):
    assert tiny_task(2, f"{__name__}:{factory}").stackable is stackable


class OwnClass(nn.Module):
    def __init__(self, classes, dropout=0.0):
        super().__init__()
        self.layer, self.dropout = nn.Linear(16, classes), dropout

    def forward(self, x):
        return self.layer(
            nn.functional.dropout(x.flatten(1), self.dropout, self.training and self.dropout > 0)
        )


class Recurrent(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.cell, self.head = nn.GRU(4, 5, batch_first=True), nn.Linear(5, classes)

    def forward(self, x):
        return self.head(self.cell(x[:, 0])[0][:, -1])


def functional_dropout(image_shape, num_classes):
    return OwnClass(num_classes, dropout=0.5)


def own_class(image_shape, num_classes):
    return OwnClass(num_classes)


def recurrent(image_shape, num_classes):
    return Recurrent(num_classes)


def partly_frozen(image_shape, num_classes):
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, num_classes))
    model[1].requires_grad_(False)
    return model


def test_frozen_parameters_are_not_part_of_the_vector():
    task = tiny_task(2, f"{__name__}:partly_frozen")
    assert list(task.layout.slots) == ["3.weight", "3.bias"]
    assert task.num_parameters == 8 * 4 + 4


def test_cross_entropy_is_torchs_for_one_batch_and_for_many():
    scores, labels = torch.randn(3, 7, 5), torch.randint(0, 5, (3, 7))
    expected = torch.stack(
        [nn.functional.cross_entropy(s, y) for s, y in zip(scores, labels, strict=True)]
    )
    assert torch.allclose(torch.func.vmap(cross_entropy)(scores, labels), expected)
    assert torch.allclose(cross_entropy(scores[0], labels[0]), expected[0])


def test_kernels_lie_with_channels_last_and_are_the_models():
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.Conv2d(3, 2, (2, 1)), nn.Flatten(), nn.Linear(4, 4)
    )
    data = tiny_data()
    task = make_task(model, data, iid(data.train_targets, 2, np.random.default_rng(0)))
    for name, slot in task.layout.slots.items():
        laid = torch.as_strided(task.initial_parameters, slot.shape, slot.stride, slot.offset)
        assert torch.equal(laid, model.get_parameter(name))
        assert laid.dim() != 4 or laid.is_contiguous(memory_format=torch.channels_last)
    expected = model(task.test_inputs)
    assert torch.allclose(
        task.scores(task.initial_parameters, task.test_inputs), expected, atol=1e-6
    )


@pytest.mark.parametrize(("factory", "draws"), [("functional_dropout", True), ("own_class", False)])
def test_drawing_random_numbers_is_found_out(factory, draws):
    before = torch.get_rng_state()
    assert tiny_task(2, f"{__name__}:{factory}").draws_random_numbers is draws
    assert torch.equal(before, torch.get_rng_state())
