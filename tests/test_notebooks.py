"""The notebooks run, and print what they were committed with."""

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ssdfl.methods import METHODS

EXAMPLES = Path(__file__).parents[1] / "examples"
LARGEST_BYTES = 150_000


def cells(name):
    text = (EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8")
    return [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def source(cell):
    """A cell's Python; how Jupyter shows figures is none."""
    return "".join(line for line in cell["source"] if not line.startswith("%"))


def printed(cell):
    streams = (output for output in cell["outputs"] if output["output_type"] == "stream")
    return "".join("".join(stream["text"]) for stream in streams)


def run(name, monkeypatch, tmp_path, capsys):
    """Run a notebook as Jupyter does, in ``__main__``; returns its names."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    notebook = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    for cell in cells(name):
        capsys.readouterr()
        exec(compile(source(cell), cell["id"], "exec"), notebook.__dict__)
        assert capsys.readouterr().out == printed(cell), cell["id"]
    return notebook


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_small_and_shows_what_it_does(path):
    assert path.stat().st_size < LARGEST_BYTES
    assert str(Path.home()) not in path.read_text(encoding="utf-8")
    assert all(cell["execution_count"] == place for place, cell in enumerate(cells(path.stem), 1))
    outputs = [output for cell in cells(path.stem) for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {
        "stream",
        "execute_result",
        "display_data",
    }


def test_compare_methods(monkeypatch, tmp_path, capsys):
    pytest.importorskip("pandas")
    monkeypatch.setitem(METHODS, "every_second", METHODS["ssdfl"])  # is put back at the end
    notebook = run("compare_methods", monkeypatch, tmp_path, capsys)
    assert notebook.plan.num_clusters == 3
    assert list(notebook.records["method"].unique()) == ["ssdfl", "sdfl", "pdfl"]
    soonest = min(notebook.ssdfl.summarise(notebook.folder), key=lambda s: s.time_s)
    assert soonest.method != "sdfl"


def test_plan_a_network(monkeypatch, tmp_path, capsys):
    notebook = run("plan_a_network", monkeypatch, tmp_path, capsys)
    why = notebook.why
    assert why.no_clusters_s < why.cycle_s < why.one_cluster_s
    assert notebook.repaired.plan.num_clusters == notebook.plan.num_clusters


def test_own_task(monkeypatch, tmp_path, capsys):
    pytest.importorskip("pandas")
    notebook = run("own_task", monkeypatch, tmp_path, capsys)
    soon, late = sorted(notebook.days)
    assert late - soon > 60  # the hot old pump needs service months before the cool new one


@pytest.mark.mesh
def test_deploy_on_loopback(monkeypatch, tmp_path, capsys):
    pytest.importorskip("grpc")
    notebook = run("deploy_on_loopback", monkeypatch, tmp_path, capsys)
    assert len(notebook.real.all_rows()) == notebook.experiment.cycles
