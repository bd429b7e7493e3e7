"""What the docs say of keys, methods and specs is what the code has."""

import re
import tomllib
from pathlib import Path

import pytest

from ssdfl.experiments import Experiment, make_experiment
from ssdfl.graph import MIXINGS, TOPOLOGIES, load_network
from ssdfl.schedule import METHODS

ROOT = Path(__file__).parents[1]
EXPERIMENTS = (ROOT / "docs" / "experiments.md").read_text()
NETWORKS = (ROOT / "docs" / "networks.md").read_text()


def keys(values, prefix=""):
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from keys(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


@pytest.mark.parametrize(("key", "default"), list(keys(Experiment().model_dump(mode="json"))))
def test_every_key_is_documented_with_its_default(key, default):
    row = re.search(rf"^\| `{re.escape(key)}` \| (.*?) \|", EXPERIMENTS, re.MULTILINE)
    assert row, f"docs/experiments.md lacks {key}"
    if key != "methods":
        assert tomllib.loads(f"x = {row[1].strip('`')}")["x"] == default


def test_no_key_is_documented_that_does_not_exist():
    documented = set(re.findall(r"^\| `([\w.]+)` \| `", EXPERIMENTS, re.MULTILINE)) | {"methods"}
    assert documented == {key for key, _ in keys(Experiment().model_dump(mode="json"))}


def test_the_example_experiment_is_valid():
    example = re.search(r"```toml\n(.*?)```", EXPERIMENTS, re.DOTALL)
    assert make_experiment(tomllib.loads(example[1])).model.name == "cnn"


def test_every_documented_spec_builds_and_every_kind_is_documented():
    specs = re.findall(r"`([a-z]+:[a-z]+=\d[^`]*)`", NETWORKS.split("## Files")[0])
    assert {spec.partition(":")[0] for spec in specs} == set(TOPOLOGIES)
    for spec in specs:
        assert load_network(spec).num_devices >= 10


def test_methods_and_mixings_are_documented():
    assert all(f"`{name}`" in NETWORKS for name in MIXINGS)
    assert all(f"`{name}`" in (ROOT / "README.md").read_text() for name in METHODS)
