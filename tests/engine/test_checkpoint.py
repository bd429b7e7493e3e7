import copy
import dataclasses

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from helpers import tiny_job, tiny_task
from ssdfl.engine import load_state, run, save_state
from ssdfl.engine.checkpoint import load_parameters
from ssdfl.errors import InputError


@pytest.fixture
def job():
    return tiny_job("ssdfl", optimizers="momentum")


def test_a_state_is_read_back(job, tmp_path):
    for _, state in run(job):
        save_state(state, job, tmp_path / "c.safetensors")
        again = load_state(tmp_path / "c.safetensors", job)
        assert torch.equal(again.X, state.X)
        assert (again.step, again.transmissions) == (state.step, state.transmissions)
        assert again.ready_s.tolist() == state.ready_s.tolist()
        assert [r for r, _ in run(job, state=again)] == [r for r, _ in run(job, state=state)]


def test_a_state_in_the_middle_of_a_regime_keeps_momentum_and_anchor(job, tmp_path):
    never_pauses = dataclasses.replace(job, schedule=lambda t: job.schedule(0))
    whole = [record for record, _ in run(never_pauses)]
    _, state = next(run(never_pauses))
    assert state.trained.all()
    save_state(state, job, tmp_path / "c.safetensors")
    again = load_state(tmp_path / "c.safetensors", job)
    assert again.memory.keys() == state.memory.keys()
    assert all(torch.equal(again.memory[name], state.memory[name]) for name in state.memory)
    assert [record for record, _ in run(never_pauses, state=again)] == whole[1:]


def two_convolutions(image_shape, num_classes):
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.Conv2d(3, 2, (2, 1)), nn.Flatten(), nn.Linear(4, num_classes), nn.Softmax(1)
    )


@pytest.mark.parametrize("model", ["mlp", f"{__name__}:two_convolutions"])
def test_models_can_be_rebuilt_without_the_library(model, tmp_path):
    job = tiny_job(task=tiny_task(6, model))
    *_, (_, state) = run(job)
    save_state(state, job, tmp_path / "c.safetensors")
    tensors = load_file(tmp_path / "c.safetensors")
    rebuilt = copy.deepcopy(job.task.model)
    for i, θ in enumerate(state.X):
        named = {name.removeprefix("model."): stack[i] for name, stack in tensors.items() if "model." in name}
        rebuilt.load_state_dict(named)
        expected = job.task.scores(θ, job.task.test_inputs)
        assert torch.allclose(rebuilt(job.task.test_inputs), expected, atol=1e-6)
    assert load_parameters(tmp_path / "c.safetensors") == pytest.approx(state.X.numpy())


def test_checkpoints_of_another_model_or_version_are_refused(job, tmp_path):
    *_, (_, state) = run(job)
    save_state(state, job, tmp_path / "c.safetensors")
    with pytest.raises(InputError, match="layout in .*expected this model's"):
        load_state(tmp_path / "c.safetensors", tiny_job("ssdfl", model="mlp", optimizers="momentum"))


def test_damaged_and_foreign_checkpoints(job, tmp_path):
    *_, (_, state) = run(job)
    path = tmp_path / "c.safetensors"
    save_state(state, job, path)
    with pytest.raises(InputError, match="shape of 1.weight in"):
        load_state(path, tiny_job("ssdfl", "barbell:size=4"))
    save_file({"X": state.X}, path, metadata={"ssdfl": "{}"})
    with pytest.raises(
        InputError, match="format 1: expected format 2, in which every parameter has its name"
    ):
        load_state(path, job)
    save_file({"X": state.X}, path)
    with pytest.raises(InputError, match="expected a whole file"):
        load_state(path, job)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="expected a whole file"):
        load_state(path, job)
