"""What is written of a mesh while it runs, and which of its devices have failed."""

import json
import subprocess
import sys

import pytest

from ssdfl.cli.mesh import _standing as standing
from ssdfl.errors import InputError
from ssdfl.graph import make_network
from ssdfl.locks import is_held, locked
from ssdfl.mesh.changing import Mesh, add_devices, remove_devices
from ssdfl.mesh.folder import LOCK, init_mesh
from ssdfl.mesh.processes import MeshProcesses, watch_statuses
from ssdfl.mesh.progress import PROGRESS, ProgressFile
from ssdfl.records import load_experiment


def status(name, cycle, **changes):
    return {
        "device": name,
        "step": 6 * cycle,
        "cycle": cycle,
        "neighbours": "1/1",
        "received": 1,
        **changes,
    }


def test_a_line_for_each_cycle_that_all_have_finished(tmp_path):
    progress = ProgressFile(tmp_path)
    for cycles in [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)]:
        progress.note([status("a", cycles[0]), status("b", cycles[1], score=0.5)])
    progress.note([status("a", 2), status("b", 2, neighbours="0/1")])
    progress.note([status("a", 2), status("b", 2, neighbours="0/1")])
    progress.note([status("a", 2), status("b", 2, neighbours="0/1", done=True)], always=True)
    lines = (tmp_path / PROGRESS).read_text().splitlines()
    assert [line.split()[3] for line in lines] == ["0,", "1,", "2,", "2,", "2,"]
    assert lines[3].endswith("; missing a neighbour: b")
    assert "scores 0.5 to 0.5, mean 0.5" in lines[0]
    assert "missing" not in lines[4]


class Ended(subprocess.Popen):
    """A device whose process ends at once with an error."""

    def __init__(self, command, stdout, stderr):
        super().__init__(
            [sys.executable, "-c", "raise SystemExit(3)"], stdout=stdout, stderr=stderr
        )
        self.wait()


@pytest.fixture
def processes(tmp_path, monkeypatch):
    experiment = load_experiment(None, ["network.spec=path:n=2"])
    init_mesh(experiment, tmp_path, method="ssdfl", seed=0, certificates=False)
    monkeypatch.setattr("ssdfl.mesh.processes.subprocess.Popen", Ended)
    found = MeshProcesses(tmp_path)
    found.start()
    return found


def test_a_device_that_was_started_elsewhere_has_not_failed(processes):
    first, second = processes.folders
    assert processes.failed() == {first: 3, second: 3}
    with locked(first / LOCK):
        assert processes.failed() == {second: 3}
        assert ["failed" in one for one in processes.statuses()] == [False, True]
    assert processes.failed() == {first: 3, second: 3}
    for folder in processes.folders:
        (folder / "status.json").write_text(json.dumps({"device": folder.name, "done": True}))
    assert not processes.failed()
    assert list(watch_statuses(processes)) == []


def test_a_device_that_has_failed_is_named(processes):
    with pytest.raises(InputError, match="0 = exit code 3: expected a finished device"):
        list(watch_statuses(processes))


def test_looking_at_a_lock_leaves_it_free(tmp_path):
    lock = tmp_path / "lock"
    assert not is_held(lock)
    assert not lock.exists()
    with locked(lock):
        assert is_held(lock)
    assert not is_held(lock)
    with locked(lock):
        pass


def test_members_are_those_after_the_last_change(tmp_path, monkeypatch):
    experiment = load_experiment(None, ["network.spec=ring:n=4", "cycles=30"])
    init_mesh(experiment, tmp_path, method="ssdfl", seed=0)
    monkeypatch.setattr("ssdfl.mesh.processes.subprocess.Popen", Ended)
    found = MeshProcesses(tmp_path)
    found.start()
    remove_devices(Mesh.of_folder(tmp_path), ["3"], cycle=5)
    newcomer = make_network(2, [(0, 1)], names=["0", "new"])
    add_devices(Mesh.of_folder(tmp_path), newcomer, cycle=8)

    def tell(name, **status):
        (tmp_path / name / "status.json").write_text(json.dumps({"device": name, **status}))

    def after(cycle):
        tell("0", cycle=cycle, done=True)
        failed = [folder.name for folder in found.failed()]
        return failed, {one["device"]: standing(one) for one in found.statuses()}

    assert found.failed().keys() == set(found.folders)
    tell("3", cycle=4, neighbours="2/2")
    failed = {"1": "failed (3)", "2": "failed (3)"}
    assert after(4) == (["1", "2", "3"], {"0": "–", **failed, "3": "failed (3)"})
    assert after(5) == (["1", "2"], {"0": "–", **failed, "3": "left"})
    assert after(8) == (["1", "2"], {"0": "–", **failed, "new": "joining", "3": "left"})
    tell("new", cycle=8, neighbours="1/1")
    assert after(8) == (["1", "2"], {"0": "–", **failed, "new": "1/1", "3": "left"})
    for name in ("1", "2", "3"):  # as where the change was made on another host
        (tmp_path / name / "changes").rename(tmp_path / name / "elsewhere")
    (tmp_path / "changes").rename(tmp_path / "elsewhere")
    assert MeshProcesses(tmp_path).statuses()[-1] == {**found.statuses()[-1], "left": True}
    lines = ProgressFile(tmp_path)
    lines.note(found.statuses())
    assert lines.path.read_text().endswith("; failed: 1, 2; left: 3\n")
