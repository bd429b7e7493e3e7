import pytest

from ssdfl.errors import InputError
from ssdfl.methods import ATTACKS, COMPRESSORS, METHODS, RULES, catalogue, find_entries


def test_everything_that_can_be_named_is_listed():
    names = {(entry.kind, entry.name) for entry in catalogue()}
    assert {("schedule", name) for name in METHODS} <= names
    assert {("rule", name) for name in RULES} <= names
    assert {("compressor", name) for name in COMPRESSORS} <= names
    assert {("attack", name) for name in ATTACKS} <= names
    assert len(names) == len(catalogue())


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: f"{entry.kind} {entry.name}")
def test_every_entry_has_a_summary_an_equation_and_a_source(entry):
    assert entry.summary
    assert "\n" not in entry.summary
    assert entry.equation
    assert entry.source or entry.name == "none"
    assert entry.source in " ".join(entry.text.split())


def test_parts_within_are_shown_by_their_names():
    options = {entry.name: [str(option) for option in entry.options] for entry in catalogue()}
    assert options["choco"][0] == "compressor=topk"
    assert options["outer"][0] == "rule=cta"
    assert options["little-is-enough"] == ["z=1.5"]


def test_options_and_their_defaults():
    (matcha,) = find_entries("matcha:budget=0.3")
    assert [str(option) for option in matcha.options] == ["budget=0.5"]
    assert matcha.options[0].default == 0.5
    assert find_entries("pdfl")[0].options == ()


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="name = matchy: expected one of ssdfl, sdfl.*atc"):
        find_entries("matchy")
