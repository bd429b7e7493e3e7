import numpy as np
import pytest
import torch

from helpers import tiny_data, tiny_task
from ssdfl.learning import build_model, iid, make_task


def test_parameters_as_one_vector_score_like_the_model():
    task = tiny_task(3, model="mlp")
    task.model.eval()
    expected = task.model(task.test_inputs)
    assert torch.allclose(task.scores(task.initial_parameters, task.test_inputs), expected)
    assert task.num_parameters == sum(shape.numel() for shape in task.layout.values())


def test_batches_come_from_the_devices_own_shard():
    task = tiny_task(4)
    positions = np.array([[0, 5], [1, 1], [2, 0], [3, 3]])
    inputs, labels = task.batch(torch.arange(4), positions)
    assert inputs.shape == (4, 2, 1, 4, 4)
    for device in range(4):
        alone = task.batch(device, positions[device])
        assert torch.equal(alone[0], inputs[device])
        assert torch.equal(alone[1], task.labels[task.shards[device][positions[device]]])
        assert torch.equal(alone[1], labels[device])


def test_test_samples_are_drawn_from_the_seed():
    data = tiny_data()
    shards = iid(data.train_labels, 2, np.random.default_rng(0))
    model = build_model("logreg", data.image_shape, 4, 0)
    tasks = [make_task(model, data, shards, test_samples=20, seed=seed) for seed in (0, 0, 1)]
    assert [len(task.test_labels) for task in tasks] == [20, 20, 20]
    assert torch.equal(tasks[0].test_inputs, tasks[1].test_inputs)
    assert not torch.equal(tasks[0].test_inputs, tasks[2].test_inputs)
    assert len(make_task(model, data, shards).test_labels) == len(data.test_labels)


@pytest.mark.parametrize(("model", "convolutions"), [("cnn", True), ("mlp", False)])
def test_kinds_of_models(model, convolutions):
    task = make_task(build_model(model, (1, 8, 8), 4, 0), tiny_data(), np.zeros((1, 1), dtype=np.int64))
    assert task.has_convolutions is convolutions
    assert task.has_dropout is False
