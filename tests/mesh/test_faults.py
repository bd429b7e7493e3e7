"""A mesh of real processes when devices die, freeze, come back, or are cut off."""

import json
import os
import re
import signal
import time
from datetime import datetime

import numpy as np
import pytest

from forked import command
from mesh_help import (
    check_as_good,
    come_together,
    finish,
    kill,
    made,
    running,
    small,
    train_on,
    wait_for_step,
    wait_for_words,
)

# One after the other: their devices train without end, and notice silence within seconds.
pytestmark = [pytest.mark.mesh, pytest.mark.xdist_group("endless meshes")]

ENDLESS = ("cycles=100000", "evaluate.every=20")


@pytest.mark.parametrize("victims", [(3,), (0, 3, 6)], ids=["one", "three"])
def test_killed_devices_do_not_stop_the_others_and_come_back(victims, tmp_path):
    mesh = made(small(*ENDLESS), tmp_path / "mesh", patience_s=20)
    rng = np.random.default_rng(sum(victims))
    with running(mesh) as processes:
        for victim in victims:
            wait_for_step(processes, int(rng.integers(5, 60)))
            kill(processes, processes.folders[victim])
        train_on(processes)
        for victim in victims:
            processes.start_device(processes.folders[victim])
        come_together(processes)
    check_as_good(mesh)


def test_a_frozen_device_is_noticed_within_five_seconds_and_catches_up(tmp_path):
    mesh = made(small(*ENDLESS), tmp_path / "mesh", patience_s=20)
    with running(mesh) as processes:
        wait_for_step(processes, 20)
        frozen = processes.process(processes.folders[3])
        neighbours = json.loads((processes.folders[3] / "device.json").read_text())["neighbours"]
        at = time.time()
        os.kill(frozen.pid, signal.SIGSTOP)
        for name in neighbours:
            wait_for_words(mesh / name / "device.log", "3 is gone")
        os.kill(frozen.pid, signal.SIGCONT)
        come_together(processes)
    for name in neighbours:
        log = (mesh / name / "device.log").read_text()
        gone = re.search(r"^(\S+ \S+),(\d+) WARNING 3 is gone", log, flags=re.M)
        assert gone, log
        noticed = datetime.strptime(gone[1], "%Y-%m-%d %H:%M:%S").timestamp() + int(gone[2]) / 1000
        assert noticed - at < 5
        assert "3 is there" in log[gone.end() :]
    check_as_good(mesh)


def test_stopped_while_it_waits_for_its_neighbours_a_device_ends_at_once(tmp_path):
    mesh = made(small("network.spec=path:n=2", "clusters.number=1"), tmp_path / "mesh")
    with running(mesh) as processes:
        kill(processes, processes.folders[1])
        alone = processes.process(processes.folders[0])
        log = processes.folders[0] / "device.log"
        wait_for_words(log, "is not there")
        alone.terminate()
        assert alone.wait(timeout=10) == 130


def test_a_stopped_mesh_goes_on_where_it_was(tmp_path):
    mesh = made(small(*ENDLESS), tmp_path / "mesh")
    with running(mesh) as processes:
        wait_for_step(processes, 30)
        processes.stop()
        processes.start()
        come_together(processes)
    check_as_good(mesh)
    logs = "".join(path.read_text() for path in mesh.glob("*/device.log"))
    assert "continuing at" not in logs  # nobody ran away and nobody had to jump


def test_devices_with_different_plans_refuse_each_other_by_name(tmp_path):
    mesh = made(small("network.spec=path:n=2", "clusters.number=1"), tmp_path / "mesh")
    text = (mesh / "1" / "experiment.toml").read_text()
    (mesh / "1" / "experiment.toml").write_text(
        text.replace("learning_rate = 0.05", "learning_rate = 0.04")
    )
    with running(mesh) as processes:
        deadline = time.monotonic() + 60
        while processes.running():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert set(processes.failed().values()) == {75}
    said = (mesh / "0" / "output.txt").read_text()
    assert "plan of 1" in said
    assert "as 0 has" in said
    assert "Traceback" not in said
    assert not (mesh / "0" / "metrics.jsonl").exists()


def test_a_device_that_lost_its_plan_gets_the_facts_again(tmp_path):
    mesh = made(small("network.spec=path:n=3", "clusters.number=0", "cycles=1"), tmp_path / "mesh")
    with running(mesh) as processes:
        finish(processes)
        plan = (mesh / "0" / "plan.json").read_text()
        for name in ("plan.json", "facts.binpb", "own-fact.binpb", "checkpoint.safetensors"):
            (mesh / "0" / name).unlink()
        for folder in processes.folders:  # its neighbours do not form a plan again
            processes.start_device(folder)
        finish(processes)
    assert (mesh / "0" / "plan.json").read_text() == plan


def test_a_corrupt_checkpoint_is_named(tmp_path):
    mesh = made(small("network.spec=path:n=2", "clusters.number=1", "cycles=1"), tmp_path / "mesh")
    with running(mesh) as processes:
        finish(processes)
    path = mesh / "0" / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:50])
    done = command("device", mesh / "0")
    assert done.returncode == 2
    assert "checkpoint" in done.stderr
    assert "Delete it" in done.stderr
    assert "Traceback" not in done.stderr
