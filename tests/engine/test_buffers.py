"""Models that keep more than parameters: every engine treats their buffers alike."""

import dataclasses

import pytest
import torch
from torch import nn

from helpers import in_double, tiny_job, tiny_task
from ssdfl.engine import load_state, run, save_state
from ssdfl.engine.state import home_of, initial_state
from ssdfl.engine.training import keep_variances
from ssdfl.records.engines import ENGINES

FAST = [
    name
    for name, traits in ENGINES.items()
    if not traits.process_per_device and name != "reference"
]


class Counting(nn.Module):
    """Normalises by a mean that it replaces, not writes into, and counts its samples."""

    def __init__(self):
        super().__init__()
        self.register_buffer("centre", torch.zeros(8, dtype=torch.get_default_dtype()))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        if self.training:
            self.centre = 0.5 * self.centre + 0.5 * x.mean(0).detach()
            self.seen += len(x)
        return (x - self.centre) * (1 + self.seen.clamp(max=100) / 100)


def normalised(image_shape, num_classes):
    return nn.Sequential(
        nn.Conv2d(1, 2, 3),
        nn.BatchNorm2d(2),
        nn.ReLU(),
        nn.Flatten(),
        Counting(),
        nn.Linear(8, num_classes),
    )


def buffer_job(buffers, method="ssdfl", **changes):
    task = in_double(tiny_task(6, f"{__name__}:normalised"))
    task = dataclasses.replace(task, buffers=buffers)
    return tiny_job(method, task=task, cycles=2, local_steps=2, **changes)


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize(
    "method",
    ["ssdfl", "ssdfl+atc", "ssdfl+gt", "ssdfl+ed", "pdfl", "central", "ssdfl+helpers:HeavyBall"],
)
@pytest.mark.parametrize("buffers", ["mix", "local"])
def test_engines_agree(buffers, method, engine):
    job = buffer_job(buffers, method)
    for (expected, right), (record, state) in zip(
        run(job, "reference"), run(job, engine), strict=True
    ):
        assert torch.allclose(state.X, right.X, atol=1e-9)
        assert state.memory.keys() == right.memory.keys()
        for name, rows in home_of(right.memory).items():
            assert torch.allclose(home_of(state.memory)[name], rows, atol=1e-9), name
        assert record.device_score == pytest.approx(expected.device_score)
        assert record.loss == pytest.approx(expected.loss)
        assert record.average_model_score == pytest.approx(expected.average_model_score)
        assert record.consensus_distance == pytest.approx(expected.consensus_distance)
        assert record.effective_gradient == pytest.approx(expected.effective_gradient)


def test_a_lone_device_trains_as_torch_does():
    """One device, no neighbours: parameters and buffers as a plain PyTorch loop leaves them."""
    task = in_double(tiny_task(1, f"{__name__}:normalised"))
    job = tiny_job(spec="path:n=1", clusters=1, optimizers="sgd", task=task, cycles=1)
    ((_, state),) = run(job)
    model = in_double(tiny_task(1, f"{__name__}:normalised")).model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=job.learning_rate)
    for t in range(2):
        inputs, labels = task.batch(job.samples([0], t)[0, 0])
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    found = {name: stack[0] for name, stack in task.layout.stacked(state.X).items()}
    found |= {name: rows[0] for name, rows in home_of(state.memory).items()}
    assert found.keys() == model.state_dict().keys()
    for name, tensor in model.state_dict().items():
        assert torch.allclose(found[name].reshape(tensor.shape), tensor, atol=1e-12), name
    assert int(found["4.seen"]) == 2 * job.batch_size


def test_mixed_buffers_are_sent_and_local_ones_are_not():
    mixed, local = buffer_job("mix"), buffer_job("local")
    assert mixed.task.num_parameters == local.task.num_parameters + 2 + 2 + 8
    assert mixed.message_bytes - local.message_bytes == 8 * 12
    assert set(mixed.task.layout.home) == {"1.num_batches_tracked", "4.seen"}
    assert set(local.task.layout.home) - set(mixed.task.layout.home) == set(
        mixed.task.layout.buffers
    )


def test_averaging_everyone_makes_mixed_buffers_equal_and_leaves_local_ones():
    for buffers in ("mix", "local"):
        *_, (_, state) = run(buffer_job(buffers, "central"))
        task = buffer_job(buffers).task
        spread = state.X.std(dim=0)
        assert spread[: task.layout.num_trained].max() < 1e-12
        if buffers == "mix":
            assert len(spread) > task.layout.num_trained
            assert spread.max() < 1e-12
        else:
            assert home_of(state.memory)["4.centre"].std(dim=0).min() > 1e-3


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("buffers", ["mix", "local"])
def test_any_state_can_be_saved_and_gone_on_from(buffers, engine, tmp_path):
    job = buffer_job(buffers, optimizers="momentum")
    whole = list(run(job, engine))
    save_state(whole[0][1], job, tmp_path / "c.safetensors")
    again = load_state(tmp_path / "c.safetensors", job)
    assert torch.equal(again.X, whole[0][1].X)
    ((record, state),) = run(job, engine, again)
    assert record == whole[1][0]
    assert torch.equal(state.X, whole[1][1].X)
    assert all(torch.equal(state.memory[name], rows) for name, rows in whole[1][1].memory.items())


def test_variances_stay_variances():
    """A move added to mixed values can make a variance negative; then the own value stays."""
    task = buffer_job("mix").task
    rows, trained = (
        initial_state(buffer_job("mix")).X[:2].clone(),
        torch.full((2, task.num_parameters), 0.25),
    )
    (first, second) = task.layout.variances
    rows[0, first], rows[1, second] = -0.1, 0.5
    rows[:, 0] = -1
    keep_variances(task, rows, trained)
    assert rows[0, first] == 0.25
    assert rows[1, second] == 0.5
    assert rows[:, 0].tolist() == [-1, -1]


def frozen_trunk(image_shape, num_classes):
    trunk = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Dropout(0.5))
    return nn.Sequential(trunk.requires_grad_(False), nn.Linear(8, num_classes))


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_frozen_parts_are_neither_sent_nor_kept_nor_changed(engine, tmp_path):
    job = tiny_job(task=tiny_task(6, f"{__name__}:frozen_trunk"), cycles=2)
    assert job.message_bytes == 4 * (8 * 4 + 4)
    assert job.task.stackable  # its dropout is off, and its statistics stay
    before = {name: tensor.clone() for name, tensor in job.task.model.state_dict().items()}
    *_, (record, state) = run(job, engine)
    assert record.score > 0.4
    assert all(torch.equal(before[name], now) for name, now in job.task.model.state_dict().items())
    save_state(state, job, tmp_path / "c.safetensors")
    assert (tmp_path / "c.safetensors").stat().st_size < 6 * 36 * 4 + 8 * 16 * 4 + 5000
