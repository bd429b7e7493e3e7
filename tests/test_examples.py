"""README's and the examples' promises that can be checked quickly."""

import runpy
from pathlib import Path

import pytest

from ssdfl.clusters import spectral_bisection
from ssdfl.graph import check_mixing, load_network
from ssdfl.schedule import Setting

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_own_method_is_a_valid_schedule():
    method = runpy.run_path(str(EXAMPLES / "own_method.py"))["every_second"]
    network = load_network("barbell:size=3")
    schedule = method(Setting(network, spectral_bisection(network, 2)))
    for t in range(8):
        check_mixing(schedule(t).W, network.adjacency)


@pytest.mark.parametrize("name", ["look_at_a_network.py", "plan_a_network.py", "ssdfl_in_40_lines.py"])
def test_quick_examples_run(name, capsys):
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert capsys.readouterr().out
