"""``ssdfl mesh`` and ``ssdfl device`` as a deployer uses them."""

import importlib
import json
import stat
import sys

import pytest

from commands import quick_command
from forked import command
from mesh_help import SMALL, forked_devices
from ssdfl.cli.mesh import UNKNOWN, _receiving_rate
from ssdfl.errors import InputError
from ssdfl.experiments import run_experiment
from ssdfl.locks import locked
from ssdfl.mesh import folder as mesh_folder
from ssdfl.mesh.certificates import Authority
from ssdfl.mesh.device import RunningDevice, run_device
from ssdfl.mesh.folder import device_folders, init_mesh, move_to_free_ports, read_device
from ssdfl.mesh.hosts import read_hosts
from ssdfl.records import RunFolder, load_experiment

SETTINGS = [
    part for setting in (*SMALL, "network.spec=path:n=3", "cycles=2") for part in ("--set", setting)
]


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.mark.mesh
def test_init_up_collect_and_a_report(tmp_path):
    mesh = tmp_path / "mesh"
    made = quick_command("mesh", "init", "--out", mesh, "--patience", 5, *SETTINGS)
    assert made.returncode == 0, made.stderr
    assert "3 devices" in made.stdout
    for name in "012":
        folder = mesh / name
        assert stat.S_IMODE((folder / "key.pem").stat().st_mode) == 0o600
        assert not list(folder.glob("authority.key"))
        assert str(tmp_path) not in (folder / "experiment.toml").read_text()
    up = command("mesh", "up", mesh)
    assert up.returncode == 0, up.stderr
    again = command("device", mesh / "1")  # finished: nothing is left to do
    assert again.returncode == 0, again.stderr
    collected = quick_command("mesh", "collect", mesh)
    assert collected.returncode == 0, collected.stderr
    run = RunFolder(mesh / "run")
    rows = run.read_rows(0, "ssdfl")
    assert [row["cycle"] for row in rows] == [1, 2]
    assert rows[-1]["score"] > 0.2
    assert rows[-1]["consensus_distance"] > 0
    assert len(rows[-1]["device_score"]) == 3
    assert (mesh / "run" / "report.html").exists()
    assert load_experiment(run.experiment_file).engine.name == "mesh"


def test_no_device_can_test_the_mean_model(tmp_path):
    experiment = load_experiment(None, [*SMALL, "evaluate.models=mean"])
    with pytest.raises(InputError, match="evaluate.models = mean: expected all on a mesh"):
        init_mesh(experiment, tmp_path, method="ssdfl", seed=0)
    on_mesh = load_experiment(None, [*SMALL, "evaluate.models=mean", "engine.name=mesh"])
    with pytest.raises(InputError, match="evaluate.models = mean: expected all on a mesh"):
        run_experiment(on_mesh, tmp_path / "run")


@pytest.mark.mesh
def test_a_run_on_the_mesh_engine(tmp_path):
    out = tmp_path / "run"
    words = ("--engine", "mesh", "--methods", "ssdfl,pdfl", "--seeds", 1, "--out", out)
    with forked_devices():
        done = quick_command("run", *words, *SETTINGS)
    assert done.returncode == 0, done.stderr
    rows = RunFolder(out).all_rows()
    assert [(row["method"], row["cycle"]) for row in rows] == [
        ("ssdfl", 1), ("ssdfl", 2), ("pdfl", 1), ("pdfl", 2)
    ]  # fmt: skip
    assert all(row["transmissions"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("device,address\n0,a:1\n", "device = 1: expected a line for each"),
        ("device,address\n0,a:1\n0,a:2\n", "line 3: device = 0"),
        ("device,address\n0,nowhere\n", "address = nowhere: expected host:port"),
        ("device,address\neve,a:1\n", "device = eve"),
    ],
)
def test_bad_hosts_are_named(text, message, tmp_path):
    hosts = tmp_path / "hosts.csv"
    hosts.write_text(text)
    done = quick_command("mesh", "init", "--out", tmp_path / "mesh", "--hosts", hosts, *SETTINGS)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "mesh").exists()


def three_sites(folder):
    """A path of three devices with names, as a file."""
    network = folder / "sites.csv"
    network.write_text("source,target\nDublin,São Paulo\nSão Paulo,Tokyo\n", encoding="utf-8")
    return network


def test_devices_have_the_networks_names(tmp_path):
    network = three_sites(tmp_path)
    (tmp_path / "hosts.csv").write_text("device,address\nTokyo,a:1\nDublin,\nSão Paulo,b:2\n")
    arguments = ("--set", f"network.spec={network}", "--hosts", tmp_path / "hosts.csv")
    done = quick_command("mesh", "init", "--out", tmp_path / "mesh", *arguments)
    assert done.returncode == 0, done.stderr
    config = read_device(tmp_path / "mesh" / "São Paulo")
    assert config.names == ("Dublin", "São Paulo", "Tokyo")
    assert config.neighbours == {"Dublin": "", "Tokyo": "a:1"}
    assert (config.index, config.listen) == (1, "b:2")


def test_devices_are_in_the_networks_order_and_not_in_that_of_letters(tmp_path):
    experiment = load_experiment(None, ["network.spec=ring:n=12"])
    folders = init_mesh(experiment, tmp_path, method="ssdfl", seed=0, certificates=False)
    assert [folder.name for folder in folders] == [str(k) for k in range(12)]
    assert device_folders(tmp_path) == folders


def test_a_name_that_cannot_be_a_folder_is_refused(tmp_path):
    network = tmp_path / "sites.csv"
    network.write_text("source,target\nrack/1,rack/2\n")
    done = quick_command(
        "mesh", "init", "--out", tmp_path / "mesh", "--set", f"network.spec={network}"
    )
    assert done.returncode == 2
    assert "device's name = rack/1" in done.stderr
    assert not (tmp_path / "mesh").exists()


def test_a_module_in_a_devices_folder_is_found(tmp_path):
    experiment = load_experiment(
        None, [*SMALL, "network.spec=path:n=2", "model.name=only_there:missing"]
    )
    folder, _ = init_mesh(experiment, tmp_path / "mesh", method="ssdfl", seed=0)
    (folder / "only_there.py").write_text("def present(): pass")
    done = command("device", folder)
    assert done.returncode == 2
    assert "expected a name that only_there defines" in done.stderr


def test_hosts_by_number_with_some_that_cannot_be_dialled(tmp_path):
    path = tmp_path / "hosts.csv"
    path.write_text("device,address\n1,10.0.0.2:7000\n0,\n2,10.0.0.3:7000\n")
    assert [host.device for host in read_hosts(path, ("a", "b", "c"))] == ["a", "b", "c"]
    with pytest.raises(InputError, match="device = 0: expected each of 1 … 3 once"):
        read_hosts(path, tuple("123"))
    hosts = read_hosts(path, tuple("012"))
    assert [(host.device, host.address) for host in hosts] == [
        ("0", ""), ("1", "10.0.0.2:7000"), ("2", "10.0.0.3:7000")
    ]  # fmt: skip
    folders = init_mesh(
        load_experiment(None, ["network.spec=path:n=3"]),
        tmp_path / "m",
        method="ssdfl",
        seed=0,
        hosts=hosts,
    )
    config = json.loads((folders[1] / "device.json").read_text())
    assert config["neighbours"] == {"0": "", "2": "10.0.0.3:7000"}


def test_two_neighbours_that_cannot_be_dialled_are_refused(tmp_path):
    path = tmp_path / "hosts.csv"
    path.write_text("device,address\n0,\n1,\n2,a:1\n")
    done = quick_command("mesh", "init", "--out", tmp_path / "mesh", "--hosts", path, *SETTINGS)
    assert done.returncode == 2
    assert "addresses of neighbours = none for 0 and 1" in done.stderr


def test_folders_that_are_none(tmp_path):
    for arguments in (
        ("device", tmp_path),
        ("mesh", "up", tmp_path),
        ("mesh", "collect", tmp_path),
    ):
        done = quick_command(*arguments)
        assert done.returncode == 2
        assert "ssdfl mesh init made" in done.stderr
        assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def two_devices(folder):
    experiment = load_experiment(None, [*SMALL, "network.spec=path:n=2", "clusters.number=1"])
    return init_mesh(experiment, folder, method="ssdfl", seed=0)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (
            lambda a, b: (a / "key.pem").write_bytes((b / "key.pem").read_bytes()),
            "key.pem = another key",
        ),
        (lambda a, b: (a / "key.pem").write_text("no key"), "expected PEM files"),
        (
            lambda a, b: (a / "certificate.pem").write_bytes((b / "certificate.pem").read_bytes()),
            "certificate.pem = 1: expected one of 0",
        ),
        (
            lambda a, b: (a / "authority.pem").write_bytes(Authority().certificate),
            "expected one that authority.pem signed",
        ),
        (
            lambda a, b: (a / "device.json").write_text(
                (a / "device.json").read_text().replace('"1": "127', '"0": "127')
            ),
            "expected 1, as in network.json",
        ),
    ],
    ids=["key", "no key", "certificate", "authority", "neighbours"],
)
def test_files_of_another_device_are_named(spoil, reason, tmp_path):
    spoil(*two_devices(tmp_path))
    with pytest.raises(InputError, match=reason):
        RunningDevice(tmp_path / "0")


def test_a_folder_has_one_process(tmp_path):
    folder, _ = two_devices(tmp_path)
    with (
        locked(folder / "device.lock"),
        pytest.raises(InputError, match=r"does not run yet \(process \d+ on"),
    ):
        run_device(folder)


def test_a_key_that_others_can_read_is_not_used(tmp_path):
    folder, _ = two_devices(tmp_path)
    (folder / "key.pem").chmod(0o644)
    with pytest.raises(InputError, match="key.pem = permissions 644"):
        RunningDevice(folder)


def test_what_was_written_of_a_mesh_is_removed_when_the_rest_cannot_be(tmp_path, monkeypatch):
    monkeypatch.setattr(
        mesh_folder, "write_secret", lambda *_: (_ for _ in ()).throw(OSError("disk full"))
    )
    with pytest.raises(OSError, match="disk full"):
        two_devices(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_loopback_mesh_moves_to_free_ports(tmp_path):
    folders = two_devices(tmp_path)
    before = [read_device(folder).listen for folder in folders]
    move_to_free_ports(tmp_path)
    after = [read_device(folder).listen for folder in folders]
    assert set(before).isdisjoint(after)
    assert read_device(folders[0]).neighbours == {"1": after[1]}


def test_the_rate_of_receiving_is_that_since_the_last_status():
    before = {"real_s": 1.0, "received": 4}
    now = {"real_s": 3.0, "received": 6, "message_bytes": 1_000_000}
    assert _receiving_rate(now, before) == "1,000"
    assert _receiving_rate(now, {}) == _receiving_rate(now, now) == UNKNOWN


def test_without_the_extra_it_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("ssdfl.mesh")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(InputError, match=r"pip install 'ssdfl\[mesh\]'"):
        importlib.import_module("ssdfl.mesh.transport")
