"""``ssdfl new`` writes a project that runs as it is."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from commands import quick_command
from mesh_help import forked_devices
from ssdfl.cli.new import TEMPLATES
from ssdfl.graph import load_network
from ssdfl.records import RunFolder, load_experiment

SHORT = ["--set", "cycles=2", "--seeds", 1]


@pytest.fixture
def project(tmp_path):
    done = quick_command("new", "my-sensors", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cd my-sensors && ssdfl run" in done.stdout
    return tmp_path / "my-sensors"


def test_it_has_every_file_and_no_placeholder_is_left(project):
    assert {path.name for path in project.iterdir()} == set(TEMPLATES)
    for path in project.iterdir():
        assert "$" not in path.read_text(encoding="utf-8"), path
    assert load_experiment(project / "ssdfl.toml").name == "my-sensors"
    assert load_network(str(project / "network.csv")).num_devices == 6
    readme = (project / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in readme for name in set(TEMPLATES) - {"README.md", ".gitignore"})


def test_run_data_and_plan_take_the_projects_experiment(project):
    done = quick_command("run", *SHORT, cwd=project)
    assert done.returncode == 0, done.stderr
    assert "Experiment: ssdfl.toml" in done.stderr
    run = RunFolder(project / "runs" / "my-sensors")
    assert run.experiment().methods == ("ssdfl", "sdfl", "pdfl")
    described = quick_command("data", "describe", cwd=project)
    assert "anna" in described.stdout, described.stderr
    planned = quick_command("plan", "--html", "plan.html", cwd=project)
    assert planned.returncode == 0, planned.stderr
    assert "2 clusters" in planned.stdout


def test_a_network_that_is_named_is_planned_without_the_projects_experiment(project):
    done = quick_command("plan", "barbell:size=3", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "ssdfl.toml" not in done.stderr


def test_an_experiment_that_is_named_is_taken_instead(project):
    (project / "other.toml").write_text('name = "other"\n', encoding="utf-8")
    done = quick_command("run", "other.toml", "--show", cwd=project)
    assert 'name = "other"' in done.stdout
    assert done.stderr == ""


def test_its_own_test_passes(project, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    names = runpy.run_path(str(project / "test_project.py"))
    try:
        names["test_a_short_run_learns"](tmp_path)
    finally:
        for module in ("my_data", "my_model"):
            sys.modules.pop(module, None)


def test_its_code_is_formatted_and_clean(project):
    ruff = Path(sys.executable).with_name("ruff")
    for words in (
        ["format", "--check"],
        ["check", "--select", "E,F,W,I,B,UP,D1", "--ignore", "D103"],
    ):
        done = subprocess.run(
            [ruff, *words, "--isolated", "--line-length", "110", project],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["", "1st", "a b", "a/b", "..", "-x-", "läufe", "a."])
def test_a_bad_name_is_refused(name, tmp_path):
    done = quick_command("new", "--", name, cwd=tmp_path)
    assert done.returncode == 2
    assert f"NAME = {name}".strip() in done.stderr
    assert not list(tmp_path.iterdir())


def test_what_exists_is_left_alone(tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "README.md").write_text("mine", encoding="utf-8")
    done = quick_command("new", "taken", cwd=tmp_path)
    assert done.returncode == 2
    assert "NAME = taken: expected a name that no file or folder here has" in done.stderr
    assert (tmp_path / "taken" / "README.md").read_text(encoding="utf-8") == "mine"


def test_nothing_is_left_of_a_project_that_could_not_be_written(tmp_path, monkeypatch):
    monkeypatch.setitem(TEMPLATES, "more.txt", "no-such-template.txt")
    done = quick_command("new", "broken", cwd=tmp_path)
    assert done.returncode == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.mesh
def test_its_devices_run(project, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    short = ["--set", "cycles=2", "--set", "network.spec=path:n=2"]
    made = quick_command("mesh", "init", "--out", "mesh", *short, cwd=project)
    assert made.returncode == 0, made.stderr
    with forked_devices():
        up = quick_command("mesh", "up", "mesh", cwd=project)
    assert up.returncode == 0, up.stderr
    collected = quick_command("mesh", "collect", "mesh", cwd=project)
    assert collected.returncode == 0, collected.stderr
    assert [row["cycle"] for row in RunFolder(project / "mesh" / "run").all_rows()] == [1, 2]
