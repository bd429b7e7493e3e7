import math

import pytest

from ssdfl.errors import InputError
from ssdfl.experiments import run_experiment
from ssdfl.experiments.bounds import compare_bounds
from ssdfl.records import load_experiment
from ssdfl.records.bounds import summarise_bounds

pytestmark = pytest.mark.xdist_group("bounds")  # its run is shared

SETTINGS = (
    "data.name=helpers:tiny_data",
    "data.labels_per_device=2",
    "network.spec=barbell:size=3",
    "network.mixing=lazy",
    "model.name=logreg",
    "methods=['ssdfl', 'sdfl', 'pdfl', 'stc']",
    "seeds=[0]",
    "cycles=4",
    "schedule.tau_a=3",
    "schedule.tau_r=2",
    "training.local_steps=1",
    "training.learning_rate=0.02",
    "evaluate.gaps=true",
)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = run_experiment(load_experiment(None, SETTINGS), tmp_path_factory.mktemp("runs") / "r")
    return list(compare_bounds(folder))


def test_every_cycle_method_and_cluster_is_compared(rows):
    def count(method, statement):
        return sum((row.method, row.statement) == (method, statement) for row in rows)

    assert {row.method for row in rows} == {"ssdfl", "sdfl", "pdfl"}
    assert count("pdfl", "Lemma 1") == count("pdfl", "Theorem 1") == 4 * 6
    assert count("sdfl", "Lemma 1") == 4
    assert count("ssdfl", "Lemma 2") == 4


def test_rigorous_bounds_hold_on_a_real_run_and_say_something(rows):
    assert all(row.measured <= row.rigorous * (1 + 1e-6) + 1e-6 for row in rows)
    assert all(math.isfinite(row.rigorous) for row in rows if row.statement.startswith("Lemma"))
    assert any(math.isfinite(row.rigorous) for row in rows if row.statement == "Theorem 1")


def test_the_summary_counts(rows):
    summaries = {(s.method, s.statement): s for s in summarise_bounds(rows)}
    lemma = summaries["sdfl", "Lemma 2"]
    assert lemma.rows == 4
    assert lemma.violated == {"published": 0.0, "rigorous": 0.0}
    assert 0 < lemma.ratio["rigorous"] <= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("evaluate.gaps=false", "evaluate.gaps = False: expected a run that recorded gaps"),
        ("training.local_steps=2", "training.local_steps = 2: expected 1"),
    ],
)
def test_runs_that_cannot_be_compared(tmp_path, change, message):
    experiment = load_experiment(None, [*SETTINGS, "methods=['ssdfl']", "cycles=1", change])
    folder = run_experiment(experiment, tmp_path / "r")
    with pytest.raises(InputError, match=message):
        list(compare_bounds(folder))
