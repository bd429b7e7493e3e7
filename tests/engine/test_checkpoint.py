import copy
import dataclasses
import json
import math
import re

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from helpers import tiny_job, tiny_task
from ssdfl.engine import checkpoint_file, load_state, run, save_state
from ssdfl.engine.checkpoint import load_moved_state, load_parameters, saved_step
from ssdfl.engine.checkpoint_file import write_tensors
from ssdfl.engine.saved_models import read_model
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
        nn.Conv2d(1, 3, 3),
        nn.Conv2d(3, 2, (2, 1)),
        nn.Flatten(),
        nn.Linear(4, num_classes),
        nn.Softmax(1),
    )


@pytest.mark.parametrize("model", ["mlp", f"{__name__}:two_convolutions"])
def test_models_can_be_rebuilt_without_the_library(model, tmp_path):
    job = tiny_job(task=tiny_task(6, model))
    *_, (_, state) = run(job)
    save_state(state, job, tmp_path / "c.safetensors")
    tensors = load_file(tmp_path / "c.safetensors")
    rebuilt = copy.deepcopy(job.task.model)
    for i, θ in enumerate(state.X):
        named = {
            name.removeprefix("model."): stack[i]
            for name, stack in tensors.items()
            if "model." in name
        }
        rebuilt.load_state_dict(named)
        expected = job.task.scores(θ, job.task.test_inputs)
        assert torch.allclose(rebuilt(job.task.test_inputs), expected, atol=1e-6)
    assert load_parameters(tmp_path / "c.safetensors") == pytest.approx(state.X.numpy())


def test_checkpoints_of_another_model_or_version_are_refused(job, tmp_path):
    *_, (_, state) = run(job)
    save_state(state, job, tmp_path / "c.safetensors")
    with pytest.raises(InputError, match="layout in .*expected this model's"):
        load_state(
            tmp_path / "c.safetensors", tiny_job("ssdfl", model="mlp", optimizers="momentum")
        )


@pytest.fixture
def saved(job, tmp_path):
    *_, (_, state) = run(job)
    path = tmp_path / "c.safetensors"
    save_state(state, job, path)
    return path


def rewritten(path, checksum=True, tensors=(), **facts):
    """The same checkpoint with other facts and tensors, its checksum made anew or left out."""
    with safe_open(path, framework="pt") as file:
        said = json.loads(file.metadata()["ssdfl"])
    there = load_file(path) | dict(tensors)
    said = {
        name: value
        for name, value in (said | facts).items()
        if value is not ... and name != "checksum"
    }
    if checksum:
        write_tensors(there, path, said)
    else:
        save_file(there, path, metadata={"ssdfl": json.dumps(said)})


def test_one_flipped_bit_is_refused(job, saved):
    """Some bits of all parts of the file: lengths, names, shapes, facts, and numbers."""
    whole = saved.read_bytes()
    for bit in range(0, 8 * len(whole), 211):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        saved.write_bytes(flipped)
        for read in (lambda: load_state(saved, job), lambda: read_model([saved], "mean")):
            with pytest.raises(InputError, match=re.escape(str(saved))):
                read()


def test_files_without_a_checksum_are_read_if_they_are_of_the_format_that_had_none(job, saved):
    expected = load_state(saved, job)
    rewritten(saved, checksum=False)
    with pytest.raises(InputError, match="its checksum says that it is damaged"):
        load_state(saved, job)
    rewritten(saved, checksum=False, format=2, method=...)
    assert torch.equal(load_state(saved, job).X, expected.X)
    assert read_model([saved], "mean").cycle == job.cycles


def test_another_methods_checkpoint_is_refused(job, saved):
    mine, other = (dataclasses.replace(job, method=name) for name in ("ssdfl", "sdfl"))
    save_state(load_state(saved, job), mine, saved)
    assert load_state(saved, mine).step == job.last_step
    with pytest.raises(InputError, match="method in .* = ssdfl: expected sdfl"):
        load_state(saved, other)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"step": "4"}, "step in .* = 4: expected a valid integer"),
        ({"step": -1}, "step in .* = -1: expected greater than or equal to 0"),
        ({"step": True}, "step in .* = True"),
        ({"step": 10**6}, "step in .* = 1000000: expected at most"),
        ({"cycle": 1}, "cycle in .* = 1: expected 3"),
        ({"cycle": 2.5}, "cycle in .* = 2.5"),
        ({"transmissions": 10**30}, "transmissions in"),
        ({"real_s": -1.0}, "real_s in"),
        ({"real_s": math.inf}, "real_s in"),
        ({"devices": {}}, "devices in"),
        ({"devices": {"a": 0}}, "devices in .* = a: expected 0, 1"),
        ({"layout": ...}, "layout in .* = missing"),
        ({"state": 3}, "state in"),
        ({"method": 3}, "method in"),
        ({"format": "3"}, "format '3': expected format 3"),
    ],
)
def test_facts_that_cannot_be_are_refused(job, saved, facts, message):
    rewritten(saved, **facts)
    with pytest.raises(InputError, match=message):
        load_state(saved, job)


@pytest.mark.parametrize(
    ("name", "tensor", "message"),
    [
        ("trained", torch.zeros(6), "type of trained in .* = torch.float32: expected torch.bool"),
        (
            "trained",
            torch.zeros(5, dtype=torch.bool),
            r"shape of trained in .* = \(5,\): expected \(6,\)",
        ),
        ("ready_s", torch.zeros(6), "type of ready_s in"),
        ("ready_s", torch.full((6,), math.nan, dtype=torch.double), "ready_s in .* = not finite"),
        (
            "ready_s",
            torch.full((6,), -1.0, dtype=torch.double),
            "ready_s in .* = -1.0: expected seconds",
        ),
        ("model.1.bias", torch.full((6, 4), math.inf), "1.bias in .* = not finite"),
        ("model.1.bias", torch.zeros(6, 4, dtype=torch.double), "type of 1.bias in"),
        ("model.1.bias", torch.zeros(6, 5), "shape of 1.bias in"),
    ],
)
def test_tensors_that_cannot_be_are_refused(job, saved, name, tensor, message):
    rewritten(saved, tensors={name: tensor})
    with pytest.raises(InputError, match=message):
        load_state(saved, job)


def test_damaged_and_foreign_checkpoints(job, tmp_path):
    *_, (_, state) = run(job)
    path = tmp_path / "c.safetensors"
    save_state(state, job, path)
    with pytest.raises(InputError, match="devices in .* = 0, 1, 2, 3, 4, 5: expected 0"):
        load_state(path, tiny_job("ssdfl", "barbell:size=4"))
    save_file({"X": state.X}, path, metadata={"ssdfl": "{}"})
    with pytest.raises(
        InputError, match="format 1: expected format 3, in which every parameter has its name"
    ):
        load_state(path, job)
    save_file({"X": state.X}, path)
    with pytest.raises(InputError, match="expected a whole file"):
        load_state(path, job)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="expected a whole file"):
        load_state(path, job)


def one_device_checkpoint(path):
    """Of device 4 of six, in the middle of a cycle."""
    job = tiny_job("ssdfl", optimizers="momentum")
    *_, (_, state) = run(job)
    rows = {name: rows[[4]] for name, rows in state.memory.items()}
    trained = np.arange(6) == 4
    one = dataclasses.replace(
        state, X=state.X[[4]], memory=rows, step=7, trained=trained, real_s=1.0
    )
    save_state(one, job, path, np.array([4]))
    return one


def test_a_devices_state_moves_to_a_network_in_which_it_has_another_number(tmp_path):
    path = tmp_path / "c.safetensors"
    before = one_device_checkpoint(path)
    names = ("0", "4", "5", "new")
    network = dataclasses.replace(tiny_job(spec="ring:n=4").network, names=names)
    job = dataclasses.replace(tiny_job("ssdfl", "ring:n=4", "momentum"), network=network)
    moved = load_moved_state(path, job, 1)
    assert saved_step(path) == moved.step == 7
    assert torch.equal(moved.X, before.X)
    assert all(torch.equal(moved.memory[name], rows) for name, rows in before.memory.items())
    assert moved.trained.tolist() == [False, True, False, False]
    assert (moved.ready_s == before.ready_s.max()).all()
    with pytest.raises(InputError, match="devices in .* = 4: expected 5"):
        load_moved_state(path, job, 2)  # another device's


def test_tensors_of_any_type_and_stride_are_written_as_safetensors_reads_them(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(checkpoint_file, "_BYTES_AT_ONCE", 64)
    types = list(checkpoint_file._TYPE_NAMES)
    written = {str(kind): torch.arange(30).reshape(5, 6)[:, 1:4].to(kind) for kind in types}
    written |= {"columns": torch.randn(9, 8)[:, 2:5], "none": torch.empty(0, 3)}
    written |= {"number": torch.tensor(3.0), "turned": torch.randn(4, 6).T}
    path = tmp_path / "tensors.safetensors"
    write_tensors(written, path, {})
    found = load_file(path)
    assert found.keys() == written.keys()
    for name, tensor in written.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].tolist() == tensor.tolist(), name
