import pytest

from ssdfl.errors import InputError, import_object
from ssdfl.records import Experiment, make_experiment
from ssdfl.records.engines import ENGINES, EngineTraits, describe_engines, engine_traits


def test_engines_in_order():
    assert list(ENGINES) == ["local", "reference", "distributed", "mesh"]


@pytest.mark.parametrize("name", ENGINES)
def test_each_has_a_home(name):
    assert callable(import_object(engine_traits(name).home, "engine"))


@pytest.mark.parametrize("name", ENGINES)
def test_each_can_be_asked_for_and_is_described(name):
    assert make_experiment({"engine": {"name": name}}).engine.name == name
    assert f"{name} (" in describe_engines()


def test_the_default_simulates_exactly():
    traits = engine_traits(Experiment().engine.name)
    assert traits == EngineTraits(traits.home, traits.description)


def test_only_some_measure_real_seconds_or_start_processes():
    assert [name for name in ENGINES if ENGINES[name].real_time] == ["mesh"]
    assert [name for name in ENGINES if ENGINES[name].process_per_device] == ["mesh"]
    assert [name for name in ENGINES if ENGINES[name].ranks] == ["distributed"]


def test_an_unknown_engine():
    with pytest.raises(InputError, match="engine.name = quantum: expected one of local, reference"):
        engine_traits("quantum")
