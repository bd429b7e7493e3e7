import dataclasses
import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from helpers import tiny_job
from ssdfl.engine import load_state, run, save_state
from ssdfl.errors import InputError


@pytest.fixture
def job():
    return tiny_job("ssdfl", optimizers="momentum")


def test_a_state_is_read_back(job, tmp_path):
    for _, state in run(job):
        save_state(state, job, tmp_path / "c.safetensors")
        again = load_state(tmp_path / "c.safetensors", job)
        assert torch.equal(again.X, state.X)
        assert (again.cycle, again.transmissions) == (state.cycle, state.transmissions)
        assert again.ready_s.tolist() == state.ready_s.tolist()
        assert [r for r, _ in run(job, state=again)] == [r for r, _ in run(job, state=state)]


def test_a_state_in_the_middle_of_a_regime_keeps_momentum_and_anchor(job, tmp_path):
    never_pauses = dataclasses.replace(job, schedule=lambda t: job.schedule(0))
    whole = [record for record, _ in run(never_pauses)]
    _, state = next(run(never_pauses))
    assert state.trained.all()
    save_state(state, job, tmp_path / "c.safetensors")
    again = load_state(tmp_path / "c.safetensors", job)
    assert torch.equal(again.V, state.V)
    assert torch.equal(again.anchor, state.anchor)
    assert [record for record, _ in run(never_pauses, state=again)] == whole[1:]


def test_models_can_be_rebuilt_without_the_library(job, tmp_path):
    *_, (_, state) = run(job)
    save_state(state, job, tmp_path / "c.safetensors")
    with safe_open(tmp_path / "c.safetensors", framework="pt") as file:
        layout = json.loads(file.metadata()["ssdfl"])["layout"]
        assert sum(torch.Size(shape).numel() for shape in layout.values()) == file.get_tensor("X").shape[1]


def test_damaged_and_foreign_checkpoints(job, tmp_path):
    *_, (_, state) = run(job)
    path = tmp_path / "c.safetensors"
    save_state(state, job, path)
    with pytest.raises(InputError, match="shape in"):
        load_state(path, tiny_job("ssdfl", "barbell:size=4"))
    save_file({"X": state.X}, path, metadata={"ssdfl": "{}"})
    with pytest.raises(InputError, match="expected a whole file"):
        load_state(path, job)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="expected a whole file"):
        load_state(path, job)
