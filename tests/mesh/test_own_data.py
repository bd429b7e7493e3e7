"""Devices with data of their own compute what a simulation on their files does."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from mesh_help import final_parameters, finish, running
from own_data_help import NAMES, ROWS, own_settings, write_files
from ssdfl.engine import run
from ssdfl.errors import InputError
from ssdfl.experiments.cross_tests import write_cross_tests
from ssdfl.learning import load_data, load_own_data
from ssdfl.mesh.folder import init_mesh, read_device
from ssdfl.mesh.own_data import ENCODING, TRAIN
from ssdfl.mesh.processes import collect
from ssdfl.preparation import make_job, prepare
from ssdfl.records import load_experiment
from ssdfl.report import write_report


def simulated(experiment, method="ssdfl"):
    job = make_job(experiment, prepare(experiment, 0, load_data(experiment.data)), method)
    *_, (record, state) = run(job)
    return state.X.double().numpy(), record


@pytest.mark.mesh
@pytest.mark.parametrize("weights", ["equal", "size"])
def test_unequal_files_train_as_in_simulation(weights, tmp_path):
    """Encoded by a file from init or, for weights by size, by what devices exchange."""
    files = write_files(tmp_path / "files")
    experiment = own_settings(tmp_path, f"data.name={files}", f"data.weights={weights}")
    folders = init_mesh(experiment, tmp_path / "mesh", method="ssdfl", seed=0, ping_deadline_s=30)
    if weights == "size":
        for folder in folders:
            text = (folder / "experiment.toml").read_text().replace(ENCODING, "")
            (folder / "experiment.toml").write_text(text)
            (folder / ENCODING).unlink()
    for file in files.iterdir():
        file.unlink()  # no device may need another's
    with running(tmp_path / "mesh") as processes:
        finish(processes)
    write_again = write_files(tmp_path / "again")
    expected, _ = simulated(
        own_settings(tmp_path, f"data.name={write_again}", f"data.weights={weights}")
    )
    assert final_parameters(tmp_path / "mesh") == pytest.approx(expected, abs=2e-5)
    for folder in folders:
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        assert rows[-1]["bad_messages"] == 0
        assert 0 <= rows[-1]["score"] <= 1
    check_cross_tests(tmp_path, folders)


def check_cross_tests(tmp_path, folders):
    """The page says whose data tested each device; the diagonal is what they wrote themselves."""
    mesh = tmp_path / "mesh"
    collected = collect(mesh, tmp_path / "run")
    write_cross_tests(mesh, collected)
    tests = collected.cross_tests()
    assert tests.devices == [folder.name for folder in folders]
    last = [
        json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1]) for folder in folders
    ]
    own = [tests.scores[k][k] for k in range(len(folders))]
    assert own == pytest.approx([row["score"] for row in last], abs=1e-6)
    assert collected.read_rows(0, "ssdfl")[-1]["score"] == pytest.approx(np.mean(own), abs=1e-6)
    text = write_report(collected).read_text(encoding="utf-8")
    assert "each device is tested on its own held-out data" in text
    assert "Every model on every device's held-out data" in text
    assert '<th scope="col">on São Paulo</th>' in text


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_folder_gets_its_own_file_and_how_all_are_encoded(ending, tmp_path):
    files = write_files(tmp_path / "files", ending)
    experiment = own_settings(tmp_path, f"data.name={files}")
    folders = init_mesh(experiment, tmp_path / "mesh", method="ssdfl", seed=0, certificates=False)
    rows = {folder.name: len(parquet.read_table(folder / TRAIN)) for folder in folders}
    assert rows == dict(zip(NAMES, ROWS, strict=True))
    assert len({(folder / "experiment.toml").read_text() for folder in folders}) == 1
    assert str(tmp_path) not in (folders[0] / "experiment.toml").read_text()
    assert len({(folder / ENCODING).read_text() for folder in folders}) == 1
    assert [read_device(folder).name for folder in folders] == sorted(NAMES)


def test_a_device_without_a_file_is_named(tmp_path):
    files = write_files(tmp_path / "files")
    (files / "Bob.parquet").rename(files / "Bert.parquet")
    with pytest.raises(InputError, match="device without data = Bob: expected a file of that name"):
        init_mesh(
            own_settings(tmp_path, f"data.name={files}"), tmp_path / "mesh", method="ssdfl", seed=0
        )
    assert not list((tmp_path / "mesh").glob("*"))


def test_data_to_test_with_may_be_a_file_of_their_own(tmp_path):
    train = pa.table({"x": [0.0, 2.0, 4.0, 6.0], "y": [1, 2, 1, 2]})
    parquet.write_table(train, tmp_path / "train.parquet")
    parquet.write_table(pa.table({"x": [3.0], "y": [2]}), tmp_path / "held.parquet")
    config = load_experiment(None, ["data.train=train.parquet", "data.test=held.parquet"]).data
    data = load_own_data(config, tmp_path)
    assert (len(data.train_targets), len(data.test_targets)) == (4, 1)
    assert data.test_inputs.tolist() == [[0.0]]
    np.savez(tmp_path / "a.npz", x=np.eye(3, dtype=np.float32), y=np.arange(3))
    np.savez(tmp_path / "b.npz", x=np.ones((2, 3), dtype=np.float32), y=np.arange(2))
    config = load_experiment(None, ["data.train=a.npz", "data.test=b.npz"]).data
    assert len(load_own_data(config, tmp_path).test_targets) == 2


def test_own_data_may_come_from_a_function_and_must_be_there(tmp_path):
    config = load_experiment(None, ["data.train=helpers:tiny_data"]).data
    assert load_own_data(config, tmp_path).num_classes == 4
    missing = load_experiment(None, ["data.train=train.csv"]).data
    with pytest.raises(
        InputError, match="data.train = train.csv: expected an existing file or folder"
    ):
        load_own_data(missing, tmp_path)
    with pytest.raises(
        InputError, match="data.train = train.csv: expected nothing, except on real devices"
    ):
        load_data(missing)
