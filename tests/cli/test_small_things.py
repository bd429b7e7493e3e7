"""What a user meets on a bad day: interruptions, mistyped folders, full disks, huge networks."""

import errno
import subprocess
import sys

import pytest

from commands import quick_command
from ssdfl.cli import graph
from ssdfl.records import Experiment, RunFolder

INTERRUPTED_IMPORT = """
import runpy, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
runpy.run_module("ssdfl", run_name="__main__")
"""


def test_ctrl_c_while_modules_are_loading():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (130, "")


def test_a_mistyped_folder_is_not_resumed(tmp_path):
    RunFolder(tmp_path / "runs" / "mine").write_experiment(Experiment(), 0)
    done = quick_command("run", "--resume", "--out", "runs/mnie", cwd=tmp_path)
    assert done.returncode == 2
    assert (
        "--resume = runs/mnie: expected a folder with a run in it. Did you mean runs/mine?"
        in done.stderr
    )
    assert not (tmp_path / "runs" / "mnie").exists()


def test_where_nothing_was_run_nothing_is_resumed(tmp_path):
    done = quick_command("run", "--resume", cwd=tmp_path)
    assert done.returncode == 2
    assert "--resume = runs/demo: expected a folder with a run in it. To start a run" in done.stderr


def test_a_full_disk_is_named_with_the_file(tmp_path, monkeypatch):
    def fill(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", fill)
    done = quick_command("graph", "ring:n=4", "--json", "--save", "ring.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "ring.json = No space left on device: expected free space." in done.stderr


@pytest.mark.parametrize("name", ["北京", "🎉"])
def test_names_that_the_font_lacks_cause_no_warning(name, tmp_path):
    (tmp_path / "net.csv").write_text(f"source,target\n{name},b\nb,c\n", encoding="utf-8")
    done = quick_command("graph", "net.csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "net.png").exists()


def test_two_devices_of_one_name_are_refused(tmp_path):
    nodes = '"nodes": [{"id": 0}, {"id": "0"}]'
    links = '"links": [{"source": 0, "target": "0"}]'
    text = f'{{"directed": false, "multigraph": false, "graph": {{}}, {nodes}, {links}}}'
    (tmp_path / "two.json").write_text(text, encoding="utf-8")
    done = quick_command("graph", "two.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "name of two devices = 0" in done.stderr


def test_a_large_network_is_summarised_and_drawn_only_on_request(tmp_path, monkeypatch):
    monkeypatch.setattr(graph, "MOST_DRAWN", 30)
    monkeypatch.setattr("ssdfl.graph.facts.DIAMETER_LIMIT", 30)
    done = quick_command("graph", "er:n=60,p=0.01,seed=0", cwd=tmp_path, COLUMNS="400")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "added links" in line]
    assert line.count("–") == graph.MOST_LINKS
    assert line.rstrip().endswith("…")
    assert "not computed" in done.stdout
    assert not list(tmp_path.iterdir())
    drawn = quick_command("graph", "ring:n=40", "--picture", "ring.png", cwd=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "ring.png").exists()
