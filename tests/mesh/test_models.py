"""Models of real devices: buffers as in the simulation, and models that can be taken away."""

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

import ssdfl
from helpers import tiny_data
from mesh_help import SMALL, finish, made, running
from ssdfl.engine import run
from ssdfl.experiments import export_model
from ssdfl.mesh.folder import init_mesh, read_device, renew_experiment
from ssdfl.mesh.processes import collect
from ssdfl.preparation import make_job, prepare
from ssdfl.records import RunFolder, load_experiment


def batch_norm(image_shape, num_classes):
    """Convolution, normalisation, linear layer: channels-last kernels, mixed and other buffers."""
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(12, num_classes)
    )


def settings(*changes):
    own = f"model.name={__name__}:batch_norm"
    return load_experiment(None, [*SMALL, own, "network.spec=path:n=3", "cycles=2", *changes])


def accuracy(model):
    data = tiny_data()
    with torch.no_grad():
        scores = model(torch.from_numpy(data.test_inputs))
    return float((scores.argmax(1).numpy() == data.test_targets).mean())


@pytest.mark.mesh
@pytest.mark.parametrize("buffers", ["mix", "local"])
def test_a_devices_model_is_as_good_as_it_recorded(buffers, tmp_path):
    experiment = settings(f"model.buffers={buffers}")
    mesh = made(experiment, tmp_path / "mesh", "ssdfl", ping_deadline_s=30)
    with running(mesh) as processes:
        finish(processes)
    job = make_job(experiment, prepare(experiment, 0, tiny_data()), "ssdfl")
    *_, (record, _) = run(job)
    collected = collect(mesh, tmp_path / "run")
    for number, expected in enumerate(record.device_score):
        folder = mesh / str(number)
        row = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
        models = (
            ssdfl.load_model(folder),
            collected.model(device=number),
            collected.model("ssdfl", 0, folder.name),
        )
        found = [accuracy(model) for model in models]
        assert found == pytest.approx([row["score"]] * 3, abs=1e-6)
        assert found[0] == pytest.approx(expected, abs=1e-6)
    assert accuracy(collected.model(device="mean")) == pytest.approx(
        record.average_model_score, abs=1e-6
    )
    export_model(mesh / "1", tmp_path / "model.safetensors")
    state = load_file(tmp_path / "model.safetensors")
    expected = collected.model(device=1).state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in expected.items())
    check_written_model(mesh / "1", expected)


def check_written_model(folder, expected):
    """The file that a device ends with is what docs/models.md loads, with what it has to be fed."""
    with safe_open(folder / "model.safetensors", framework="pt") as file:
        about = json.loads(file.metadata()["ssdfl"])
        state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    model = batch_norm((1, 4, 4), 4)
    model.load_state_dict(state)
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in expected.items())
    assert (about["device"], about["cycle"], about["outputs"]) == ("1", 2, 4)
    assert about["normalisation"]["mean"]


def test_devices_get_the_initial_parameters_and_more_cycles(tmp_path):
    initial = tmp_path / "given.safetensors"
    save_file({"4.bias": torch.ones(4)}, initial)
    experiment = settings(f"model.initial={initial}")
    folders = init_mesh(experiment, tmp_path / "mesh", method="ssdfl", seed=0, certificates=False)
    initial.unlink()
    for folder in folders:
        own = load_experiment(folder / "experiment.toml")
        assert own.model.initial == str((folder / "initial.safetensors").resolve())
        task = prepare(own, read_device(folder).seed, tiny_data()).task
        assert torch.equal(task.model.get_parameter("4.bias"), torch.ones(4))
    renew_experiment(tmp_path / "mesh", experiment.model_copy(update={"cycles": 5}))
    assert {load_experiment(folder / "experiment.toml").cycles for folder in folders} == {5}


def test_collected_models_of_devices_that_are_missing_are_named(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.write_experiment(settings("methods=['ssdfl']", "seeds=[0]"), 0)
    (folder.devices_folder(0, "ssdfl") / "0").mkdir(parents=True)
    with pytest.raises(ssdfl.InputError, match="0.*expected a saved model"):
        folder.model()
