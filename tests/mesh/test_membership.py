"""Devices join and leave a mesh of real processes while it trains."""

import json

import numpy as np
import pytest

from mesh_help import finish, kill, local_parameters, made, running, small, wait_for_step
from own_data_help import own_settings, write_files
from ssdfl.clusters import read_plan
from ssdfl.graph import joined, load_network, make_network, without, write_network
from ssdfl.mesh.changing import Mesh, add_devices, remove_devices
from ssdfl.mesh.folder import device_folders
from ssdfl.mesh.own_data import ENCODING

pytestmark = pytest.mark.mesh

CYCLES = 60
LEAVING = ("2", "3", "7")
STAYING = ("0", "1", "4", "5", "6", "new", "newer")
NEWCOMERS = make_network(5, [(0, 1), (0, 2), (3, 4), (3, 0)], names=["new", "0", "1", "newer", "5"])


def rows(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines if line]


def cycles_of(folder):
    return [row["cycle"] for row in rows(folder)]


def last_score(folder):
    return rows(folder)[-1]["score"]


def settings(*more):
    return small("clusters.number=0", f"cycles={CYCLES}", "training.local_steps=2", *more)


def from_the_start(tmp_path):
    """What a mesh comes to that had these devices from the start; the local engine equals it."""
    network = without(joined(load_network("barbell:size=4"), NEWCOMERS), LEAVING)
    write_network(network, tmp_path / "network.json")
    return local_parameters(settings(f"network.spec={tmp_path / 'network.json'}"), "ssdfl")[1]


def start(processes, folder):
    processes.folders.append(folder)
    processes.start_device(folder)


def test_two_join_and_three_leave_while_all_others_train_on(tmp_path):
    mesh = made(settings(), tmp_path / "mesh", patience_s=20)
    with running(mesh) as processes:
        wait_for_step(processes, 6)
        add_devices(Mesh.of_folder(mesh), NEWCOMERS, cycle=15)
        for name in ("new", "newer"):
            start(processes, mesh / name)
        wait_for_step(processes, 16 * 3)
        remove_devices(Mesh.of_folder(mesh), LEAVING, cycle=40)
        finish(processes)
    statuses = processes.statuses()
    assert [one["device"] for one in statuses] == [*STAYING, *LEAVING]
    assert [one["device"] for one in statuses if "left" in one] == list(LEAVING)
    plans = [read_plan(mesh / name / "changes" / "2.plan.json") for name in STAYING]
    assert {plan.names for plan in plans} == {STAYING}
    assert len({plan.clusters for plan in plans}) == 1
    for name in STAYING[:5]:  # nobody started again, nobody missed a cycle
        assert cycles_of(mesh / name) == list(range(1, CYCLES + 1))
    for name in LEAVING:  # ended by themselves, with a model
        assert cycles_of(mesh / name) == list(range(1, 41))
        assert (mesh / name / "model.safetensors").exists()
    assert cycles_of(mesh / "new")[-1] == CYCLES
    logs = "".join(path.read_text() for path in mesh.glob("*/device.log"))
    assert "another plan" not in logs
    assert "continuing without it" not in logs
    scores = [last_score(mesh / name) for name in STAYING]
    assert np.mean(scores) == pytest.approx(from_the_start(tmp_path).score, abs=0.06)


def test_a_device_with_its_own_data_joins_while_another_is_away(tmp_path):
    """No file has everyone's summaries: a newcomer gets them and the facts from neighbours."""
    files = write_files(tmp_path / "files")
    experiment = own_settings(
        tmp_path, f"data.name={files}", "data.weights=size", "clusters.number=0", "cycles=300"
    )
    mesh = made(experiment, tmp_path / "mesh", patience_s=20)
    for folder in device_folders(mesh):
        (folder / ENCODING).unlink()
        text = (folder / "experiment.toml").read_text()
        (folder / "experiment.toml").write_text(text.replace(ENCODING, ""))
    newcomer = make_network(3, [(0, 1), (0, 2)], names=["Zoe", "Ann", "Bob"])
    with running(mesh) as processes:
        wait_for_step(processes, 3)
        kill(processes, mesh / "Bob")
        (files / "Ann.parquet").rename(files / "Zoe.parquet")
        add_devices(Mesh.of_folder(mesh), newcomer, cycle=60, files=files)
        (mesh / "Bob" / "changes" / "1.json").unlink()  # it learns of it from its neighbours
        start(processes, mesh / "Zoe")
        wait_for_step(processes, 70 * 3)
        processes.start_device(mesh / "Bob")
        finish(processes)
    plans = {
        read_plan(folder / "changes" / "1.plan.json").clusters for folder in device_folders(mesh)
    }
    assert len(plans) == 1
    assert all(cycles_of(folder)[-1] == 300 for folder in device_folders(mesh))
    digests = {(folder / "holdings.binpb").stat().st_size for folder in device_folders(mesh)}
    assert len(digests) == 1  # Zoe's own summary changes nobody's encoding
    assert "joining at step" in (mesh / "Zoe" / "device.log").read_text()
    log = (mesh / "Bob" / "device.log").read_text()
    assert "membership 1: 5 devices" in log
    assert "continuing at" in log  # it need not repeat the cycles before the change
