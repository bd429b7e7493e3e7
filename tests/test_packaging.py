"""The wheel that a user installs, in a fresh environment and far from the source tree."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import ssdfl

ROOT = Path(__file__).parents[1]


def quiet(*words, **options):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    quiet(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    (built,) = folder.glob("ssdfl-*.whl")
    return built


def test_the_wheel_holds_what_runs_need_and_nothing_else(wheel):
    assert wheel.name.startswith(f"ssdfl-{ssdfl.__version__}-py3")
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {"py.typed", "report/assets/run.html", "report/assets/plan.js", "mesh/mesh.proto"}
    wanted |= {"cli/project/ssdfl.toml.txt", "cli/project/gitignore.txt"}
    wanted |= {"reproduce/common.toml", "reproduce/fmnist-taur.toml", "reproduce/fmnist-taur.csv"}
    assert {f"ssdfl/{name}" for name in wanted} <= names
    assert all(name.startswith(("ssdfl/", f"ssdfl-{ssdfl.__version__}.dist-info/")) for name in names)
    assert not any("/results/" in name or "/test" in name for name in names)


def test_it_installs_and_runs_in_a_fresh_environment(wheel, tmp_path):
    quiet(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    site = quiet(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    quiet(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel)
    # what ssdfl depends on, without fetching it again; the editable install of ssdfl itself is not seen
    (Path(site) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    place = quiet(python, "-c", "import ssdfl; print(ssdfl.__file__)", cwd=tmp_path, env=clean)
    assert place.startswith(site)
    command = tmp_path / "venv" / "bin" / "ssdfl"
    assert quiet(command, "--version", cwd=tmp_path, env=clean).strip() == f"ssdfl {ssdfl.__version__}"
    assert "fmnist-taur" in quiet(command, "reproduce", "--list", cwd=tmp_path, env=clean)
    said = quiet(
        *(command, "run", "--seeds", "1", "--methods", "ssdfl,pdfl", "--set", "cycles=2"),
        cwd=tmp_path,
        env=clean,
    )
    assert "Best final accuracy" in said
    assert (tmp_path / "runs" / "demo" / "report.html").exists()
