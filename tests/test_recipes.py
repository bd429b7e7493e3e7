"""The recipes of docs/extend.md for methods and engines, followed on a copy of the library."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ssdfl

SOURCE = Path(ssdfl.__file__).parent
PAGE = SOURCE.parents[1] / "docs" / "extend.md"

ENGINE = """
from ssdfl.engine.local import LocalEngine


class CarefulEngine(LocalEngine):
    def advance(self, state, step, t):
        assert step.W.shape[0] == len(state.X)
        return super().advance(state, step, t)
"""

RUN = """
import sys
from ssdfl.records import load_experiment
from ssdfl.experiments import run_experiment
from ssdfl.report import summarise

settings = ["cycles=2", "seeds=[0]", "data.name=helpers:tiny_data", "data.labels_per_device=2",
            "network.spec=ring:n=4", "clusters.number=1", *sys.argv[1:]]
folder = run_experiment(load_experiment(None, settings), "run")
print([(one.method, one.cycles) for one in summarise(folder)])
"""


def recipe(title):
    """The file that a section names, the line to find in it, and the line to add after that."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    ((before, added),) = re.findall(r"```diff\n (.*)\n\+(.*)\n```", section)
    file = re.search(r"`src/ssdfl/([\w/.]+)`", section)[1]
    return file, before, added


@pytest.fixture
def copy(tmp_path):
    """The library, to be changed."""
    there = tmp_path / "src" / "ssdfl"
    shutil.copytree(SOURCE, there)  # with what is compiled of it
    return there


def follow_recipe(copy, title):
    file, before, added = recipe(title)
    text = (copy / file).read_text(encoding="utf-8")
    assert text.count(f"\n{before}\n") == 1
    (copy / file).write_text(
        text.replace(f"\n{before}\n", f"\n{before}\n{added}\n"), encoding="utf-8"
    )


def run_with(copy, *settings):
    paths = os.pathsep.join([str(copy.parent), str(Path(__file__).parent)])
    words = [sys.executable, "-c", RUN, *settings]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        words, cwd=copy.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_method_is_one_entry(copy):
    follow_recipe(copy, "A method of the library")
    shown = run_with(copy, "methods=['often', 'often+atc']")
    assert "('often', 2)" in shown
    assert "('often+atc', 2)" in shown


def test_an_engine_is_a_module_and_an_entry(copy):
    follow_recipe(copy, "An engine")
    (copy / "engine" / "careful.py").write_text(ENGINE, encoding="utf-8")
    assert "('pdfl', 2)" in run_with(copy, "methods=['pdfl']", "engine.name=careful")
    experiment = (copy.parent / "run" / "experiment.toml").read_text(encoding="utf-8")
    assert json.dumps("careful") in experiment
