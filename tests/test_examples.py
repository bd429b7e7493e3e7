"""README's and the examples' promises that can be checked quickly."""

import runpy
from pathlib import Path

import pytest

from ssdfl.clusters import spectral_bisection
from ssdfl.graph import check_mixing, load_network
from ssdfl.methods import ScheduleInputs

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_own_method_is_a_valid_schedule():
    method = runpy.run_path(str(EXAMPLES / "own_method.py"))["every_second"]
    network = load_network("barbell:size=3")
    schedule = method(ScheduleInputs(network, spectral_bisection(network, 2)))
    for t in range(8):
        check_mixing(schedule(t).W, network.adjacency)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_every_example_runs(path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)  # as when it is run as a script
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
