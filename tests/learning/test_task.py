import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from helpers import tiny_data, tiny_task
from ssdfl.learning import build_model, find_metrics, iid, make_task
from ssdfl.learning.losses import cross_entropy
from ssdfl.learning.readers import arrays_dataset
from ssdfl.learning.task import Units, suited
from ssdfl.learning.task import tested as score_of


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


def test_outputs_are_converted_back_to_the_targets_own_units():
    units = Units(torch.tensor([50.0, 0.0]), torch.tensor([10.0, 1.0]))
    assert units.of(torch.tensor([[1.0, 2.0], [-2.0, 0.5]])).tolist() == [[60.0, 2.0], [30.0, 0.5]]


def test_a_model_is_tested_in_the_units_that_targets_had():
    inputs = np.random.default_rng(0).normal(size=(40, 2))
    data = arrays_dataset(inputs, 100 + 3 * inputs[:, 0])
    mean = nn.Linear(2, 1)
    nn.init.zeros_(mean.weight)
    nn.init.zeros_(mean.bias)
    (mae,) = find_metrics(["mae"])
    scaled, deviation = np.abs(data.test_targets).mean(), data.encoding.target.deviation
    assert score_of(mean, data, mae) == pytest.approx(scaled * deviation)
    as_they_are = replace(data, encoding=replace(data.encoding, target=None))
    assert score_of(mean, as_they_are, mae) == pytest.approx(scaled)


def test_labels_that_were_standardised_as_numbers_are_restored_for_losses_that_need_them():
    labels = (np.arange(40) % 4 == 0).astype(np.float32)
    data = arrays_dataset(np.random.default_rng(0).normal(size=(40, 2)), labels)
    assert data.train_targets.min() < 0
    restored = suited(data, "binary")
    for targets in (restored.train_targets, restored.test_targets):
        assert np.unique(targets.round(6)).tolist() == [0.0, 1.0]
    assert restored.encoding.target is None
    assert suited(restored, "binary") is restored
    assert suited(data, "mse") is data
