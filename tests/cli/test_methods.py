import json

from commands import quick_command
from ssdfl.methods import catalogue


def test_methods_lists_every_part_with_its_options():
    done = quick_command("methods", COLUMNS="200")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    for entry in catalogue():
        assert any(f" {entry.name} " in line and entry.summary in line for line in lines)
    assert "budget=0.5" in done.stdout


def test_methods_describes_the_parts_of_a_method():
    done = quick_command("methods", "matcha:budget=1+atc")
    assert done.returncode == 0
    for text in (
        "W(t) = I − α Σ_j b_j(t) L_j",
        "arXiv:1905.09435",
        "Options: budget=0.5",
        "atc (rule)",
    ):
        assert text in done.stdout


def test_methods_as_json():
    everything = json.loads(quick_command("methods", "--json").stdout)
    assert [one["name"] for one in everything] == [entry.name for entry in catalogue()]
    (hier,) = json.loads(quick_command("methods", "hier", "--json").stdout)
    assert hier["kind"] == "schedule"
    assert hier["source"].startswith("Liu, Zhang")
    assert hier["options"] == []


def test_an_unknown_name_ends_with_one_line():
    done = quick_command("methods", "nope")
    assert done.returncode == 2
    assert "name = nope: expected one of ssdfl" in done.stderr
