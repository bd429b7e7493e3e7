"""What a release holds, installed in a fresh environment and far from the source tree."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import ssdfl

pytestmark = pytest.mark.xdist_group("packaging")  # the release is built once, in one worker
ROOT = Path(__file__).parents[1]


def quiet(*words, **options):
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, timeout=300, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A release: the source archive, and the wheel built from it rather than from the clone."""
    folder = tmp_path_factory.mktemp("dist")
    quiet(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    (found,) = built.glob("ssdfl-*.whl")
    return found


def test_the_source_archive_holds_what_a_packager_needs_and_no_results(built):
    (archive,) = built.glob("ssdfl-*.tar.gz")
    top = f"ssdfl-{ssdfl.__version__}"
    assert archive.name == f"{top}.tar.gz"
    with tarfile.open(archive) as opened:
        names = {name.removeprefix(f"{top}/") for name in opened.getnames()}
    wanted = {"pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "PKG-INFO"}
    assert (
        wanted | {"src/ssdfl/py.typed", "tests/test_packaging.py", "reproduce/common.toml"} <= names
    )
    tops = {name.partition("/")[0] for name in names}
    assert tops <= wanted | {"src", "tests", "reproduce", ".gitignore"}
    assert not any("/results/" in name for name in names)


def test_the_metadata_names_systems_types_and_every_extra(wheel):
    place = f"ssdfl-{ssdfl.__version__}.dist-info/METADATA"
    said = zipfile.ZipFile(wheel).read(place).decode().splitlines()
    assert {
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Operating System :: MacOS",
    } <= {*said}
    assert "Classifier: Typing :: Typed" in said
    offered = {
        line.removeprefix("Provides-Extra: ") for line in said if line.startswith("Provides-Extra")
    }
    assert offered >= required_extras()


def required_extras():
    """What the code asks for by `require(module, extra)`; errors name the extra to install."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    return set(re.findall(r'\brequire\(\s*"[\w.]+",\s*"(\w+)"', text))


def test_the_wheel_holds_what_runs_need_and_nothing_else(wheel):
    assert wheel.name.startswith(f"ssdfl-{ssdfl.__version__}-py3")
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {"py.typed", "report/assets/run.html", "report/assets/plan.js", "mesh/mesh.proto"}
    wanted |= {"cli/project/ssdfl.toml.txt", "cli/project/gitignore.txt"}
    wanted |= {"reproduce/common.toml", "reproduce/fmnist-taur.toml", "reproduce/fmnist-taur.csv"}
    assert {f"ssdfl/{name}" for name in wanted} <= names
    assert all(
        name.startswith(("ssdfl/", f"ssdfl-{ssdfl.__version__}.dist-info/")) for name in names
    )
    assert not any("/results/" in name or "/test" in name for name in names)


def test_it_installs_and_runs_in_a_fresh_environment(wheel, tmp_path):
    quiet(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    site = quiet(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    install = ("install", "--no-deps", "--no-index", wheel)
    quiet(sys.executable, "-m", "pip", "--python", python, *install)
    # ssdfl's dependencies without fetching them again; its own editable install is not seen
    (Path(site) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    place = quiet(python, "-c", "import ssdfl; print(ssdfl.__file__)", cwd=tmp_path, env=clean)
    assert place.startswith(site)
    command = tmp_path / "venv" / "bin" / "ssdfl"
    assert (
        quiet(command, "--version", cwd=tmp_path, env=clean).strip() == f"ssdfl {ssdfl.__version__}"
    )
    assert "fmnist-taur" in quiet(command, "reproduce", "--list", cwd=tmp_path, env=clean)
    said = quiet(
        *(command, "run", "--seeds", "1", "--methods", "ssdfl,pdfl", "--set", "cycles=2"),
        cwd=tmp_path,
        env=clean,
    )
    assert "Best final accuracy" in said
    assert (tmp_path / "runs" / "demo" / "report.html").exists()
