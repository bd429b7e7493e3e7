"""``ssdfl mesh add``, ``remove`` and ``renew`` on folders (processes: mesh/test_membership.py)."""

import json
import stat

import pytest

from commands import quick_command
from mesh_help import small
from ssdfl.mesh.certificates import check_certificate
from ssdfl.mesh.folder import init_mesh, read_device

FILES = ("key.pem", "certificate.pem", "authority.pem")


@pytest.fixture
def mesh(tmp_path):
    """A mesh of three devices, as whoever made it has it."""
    init_mesh(
        small("network.spec=path:n=3", "cycles=50"), tmp_path / "mesh", method="ssdfl", seed=0
    )
    (tmp_path / "new.csv").write_text("source,target,latency_ms\nnew,0,7\nnew,2,8\n")
    return tmp_path / "mesh"


def add(mesh, *words):
    return quick_command("mesh", "add", mesh, mesh.parent / "new.csv", *words)


def fields(mesh, version):
    return json.loads((mesh / "changes" / f"{version}.json").read_text())


def test_a_newcomer_gets_a_folder_and_everybody_the_change(mesh):
    done = add(mesh, "--cycle", 5)
    assert done.returncode == 0, done.stderr
    assert "new join after cycle 5" in done.stdout
    config = read_device(mesh / "new")
    assert (config.names, config.index, config.joins) == (("0", "1", "2", "new"), 3, 1)
    assert config.neighbours == {name: read_device(mesh / name).listen for name in ("0", "2")}
    texts = {(mesh / name / "changes" / "1.json").read_text() for name in config.names}
    assert texts == {(mesh / "changes" / "1.json").read_text()}
    check_certificate("new", *((mesh / "new" / name).read_bytes() for name in FILES))
    assert stat.S_IMODE((mesh / "new" / "key.pem").stat().st_mode) == 0o600
    assert (mesh / "new" / "experiment.toml").read_text() == (
        mesh / "0" / "experiment.toml"
    ).read_text()
    dry = quick_command("device", mesh / "new", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert json.loads(dry.stdout)["to_neighbours"]["neighbours"] == ["0", "2"]


def test_changes_follow_each_other(mesh):
    add(mesh, "--cycle", 5)
    done = quick_command("mesh", "remove", mesh, "1", "--cycle", 9)
    assert done.returncode == 0, done.stderr
    assert (fields(mesh, 2)["version"], fields(mesh, 2)["cycle"]) == (2, 9)
    assert list(fields(mesh, 2)["addresses"]) == ["0", "2", "new"]
    assert (mesh / "new" / "changes" / "2.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["remove", "1", "--cycle", "5"], "connected parts"),
        (["remove", "7", "--cycle", "5"], "device to remove = 7"),
        (["remove", "2", "--cycle", "50"], "--cycle = 50"),
        (["remove", "2"], "no device on this host says where it is"),
        (["renew", "7"], "device = 7"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(words, said, mesh):
    done = quick_command("mesh", words[0], mesh, *words[1:])
    assert done.returncode == 2
    assert said in done.stderr
    assert not (mesh / "changes").exists()


def test_soon_is_some_cycles_after_where_devices_are(mesh):
    for name, cycle in (("0", 4), ("1", 6)):
        (mesh / name / "status.json").write_text(
            json.dumps({"cycle": cycle, "real_s": 4.0 * cycle})
        )
    assert add(mesh).returncode == 0
    assert fields(mesh, 1)["cycle"] == 9  # 10 s are three cycles of 4 s


def test_without_the_authoritys_key_nobody_changes_anything(mesh):
    (mesh / "ca" / "authority.key").unlink()
    done = add(mesh, "--cycle", 5)
    assert done.returncode == 2
    assert "authority" in done.stderr
    assert not (mesh / "new").exists()


def test_changes_that_were_tampered_with_are_not_followed(mesh):
    add(mesh, "--cycle", 5)
    path = mesh / "changes" / "1.json"
    path.write_text(path.read_text().replace('"cycle": 5', '"cycle": 6'))
    done = quick_command("mesh", "remove", mesh, "1", "--cycle", 9)
    assert done.returncode == 2
    assert "0 of 1 files" in done.stderr


@pytest.mark.parametrize("new_keys", [False, True])
def test_renewed_certificates_fit_old_ones(new_keys, mesh):
    before = {name: (mesh / "0" / name).read_bytes() for name in FILES}
    done = quick_command("mesh", "renew", mesh, "0", *(["--new-keys"] if new_keys else []))
    assert done.returncode == 0, done.stderr
    after = {name: (mesh / "0" / name).read_bytes() for name in FILES}
    assert (before["key.pem"] != after["key.pem"]) is new_keys
    assert before["certificate.pem"] != after["certificate.pem"]
    for authority in (before["authority.pem"], after["authority.pem"]):  # others may have either
        check_certificate("0", after["key.pem"], after["certificate.pem"], authority)
    check_certificate("0", before["key.pem"], before["certificate.pem"], after["authority.pem"])
    assert (mesh / "1" / "certificate.pem").read_bytes() != after["certificate.pem"]
