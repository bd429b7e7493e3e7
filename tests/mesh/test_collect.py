"""Records of devices become a run's folder, without any process."""

import json
import math

import numpy as np
import pytest

from mesh_help import small
from ssdfl.errors import InputError
from ssdfl.experiments import run_experiment
from ssdfl.mesh.folder import device_folders, init_mesh
from ssdfl.mesh.processes import collect


@pytest.fixture
def mesh(tmp_path):
    """A mesh of three devices that have finished a cycle."""
    folders = init_mesh(small("network.spec=path:n=3"), tmp_path / "mesh", method="ssdfl", seed=0)
    for folder in folders:
        (folder / "plan.json").write_text("{}", encoding="utf-8")
    finish_cycle(tmp_path / "mesh", 1)
    return tmp_path / "mesh"


def finish_cycle(mesh, cycle, devices=slice(None)):
    row = {"cycle": cycle, "score": 0.5, "loss": 1.0, "received": 4, "time_s": 1.0, "real_s": 1.0}
    for folder in device_folders(mesh)[devices]:
        with (folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def test_collecting_again_renews_what_was_collected(mesh, tmp_path):
    run = collect(mesh, tmp_path / "run")
    assert [row["cycle"] for row in run.all_rows()] == [1]
    finish_cycle(mesh, 2)
    assert [row["cycle"] for row in collect(mesh, tmp_path / "run").all_rows()] == [1, 2]


def test_what_another_mesh_left_is_not_overwritten(mesh, tmp_path):
    collect(mesh, tmp_path / "run")
    for folder in device_folders(mesh):
        (folder / "plan.json").write_text('{"other": 1}', encoding="utf-8")
    with pytest.raises(InputError, match=r"plan.json of seed 0 = changed"):
        collect(mesh, tmp_path / "run")


def test_a_simulated_run_is_not_overwritten(mesh, tmp_path):
    run_experiment(small("cycles=1", "methods=['pdfl']", "seeds=[0]"), tmp_path / "run")
    with pytest.raises(InputError, match="a folder with no run in it"):
        collect(mesh, tmp_path / "run")


def test_the_last_consensus_distance_is_of_the_devices_that_got_there(mesh, tmp_path, monkeypatch):
    place = {folder: 2.0 * k for k, folder in enumerate(device_folders(mesh))}
    monkeypatch.setattr(
        "ssdfl.mesh.processes.parameters",
        lambda folders: np.array([[place[folder]] for folder in folders]),
    )
    finish_cycle(mesh, 2, devices=slice(2))
    first, last = collect(mesh, tmp_path / "run").all_rows()
    assert math.isnan(first["consensus_distance"])
    assert last["consensus_distance"] == 1.0


def test_a_mesh_of_one_device_is_collected(tmp_path):
    mesh = tmp_path / "mesh"
    (folder,) = init_mesh(small("network.spec=complete:n=1"), mesh, method="ssdfl", seed=0)
    (folder / "plan.json").write_text("{}", encoding="utf-8")
    finish_cycle(mesh, 1)
    assert len(collect(mesh, tmp_path / "run").all_rows()) == 1
