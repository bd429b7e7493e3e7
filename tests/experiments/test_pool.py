"""Runs side by side, shared by what determines them."""

import multiprocessing
import os
import signal
import threading
import time

import pytest

from mesh_help import ENVIRONMENT
from ssdfl.experiments import load_experiment, run_experiment
from ssdfl.experiments.estimate import Estimator
from ssdfl.experiments.pool import Resources, finished_rows, run_folder, run_key, run_pool, single_runs

TINY = (
    "data.name=helpers:tiny_data",
    "data.labels_per_device=2",
    "network.spec=barbell:size=3",
    "model.name=logreg",
    "cycles=3",
    "evaluate.every=1",
    'methods=["ssdfl", "pdfl"]',
)


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def tiny(*changes):
    return load_experiment(None, [*TINY, *changes])


def test_an_experiment_falls_into_runs_of_one_method_and_seed():
    runs = single_runs(tiny())
    assert [(one.methods, one.seeds) for one in runs] == [
        (("ssdfl",), (0,)),
        (("pdfl",), (0,)),
        (("ssdfl",), (1,)),
        (("pdfl",), (1,)),
    ]
    assert runs[0].clusters.number == 0
    assert runs[1].clusters.number == 1  # it knows no clusters: none need be formed


def test_what_determines_a_run_is_its_key():
    one = single_runs(tiny())[0]
    same = single_runs(tiny("name=other", "evaluate.target_accuracy=0.1"))[0]
    assert run_key(one) == run_key(same)
    for change in ("training.learning_rate=0.06", "cycles=4", "clusters.score=drift", "evaluate.samples=9"):
        assert run_key(single_runs(tiny(change))[0]) != run_key(one)
    planless = [single_runs(tiny(change))[1] for change in ("clusters.score=drift", "clusters.score=time")]
    assert run_key(planless[0]) == run_key(planless[1])


def test_a_pool_does_each_run_once_and_as_one_process_would(tmp_path):
    runs = single_runs(tiny())
    done = list(run_pool([*runs, *runs], tmp_path / "cache", resources=Resources(workers=2)))
    assert {run_key(one.experiment) for one in done} == {run_key(one) for one in runs}
    assert len(done) == 4
    assert all(finished_rows(one, tmp_path / "cache") for one in runs)
    alone = run_experiment(runs[0], tmp_path / "alone")
    pooled = run_folder(runs[0], tmp_path / "cache").read_rows(0, "ssdfl")
    assert repr(pooled) == repr(alone.read_rows(0, "ssdfl"))  # as text: NaN differs from itself
    assert not list((tmp_path / "cache").rglob("checkpoint.safetensors"))
    again = list(run_pool(runs, tmp_path / "cache"))
    assert [one.seconds for one in again] == [0.0] * 4


def test_a_run_that_diverges_does_not_stop_the_others(tmp_path):
    good, bad = single_runs(tiny("seeds=[0]"))[1], single_runs(tiny("training.learning_rate=1e30"))[1]
    done = {
        run_key(one.experiment): one
        for one in run_pool([bad, good], tmp_path, resources=Resources(workers=1))
    }
    assert "diverged" in done[run_key(bad)].error
    assert not done[run_key(good)].error
    assert finished_rows(good, tmp_path)
    assert not finished_rows(bad, tmp_path)


def test_a_killed_process_is_replaced(tmp_path):
    runs = single_runs(tiny("cycles=3000", "seeds=[0]", 'methods=["pdfl"]'))
    killed = []

    def kill_one():
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not killed:
            started = any(tmp_path.rglob("metrics.parquet"))
            for child in multiprocessing.active_children() if started else ():
                os.kill(child.pid, signal.SIGKILL)
                killed.append(child.pid)
            time.sleep(0.01)

    killer = threading.Thread(target=kill_one)
    killer.start()
    done = list(run_pool(runs, tmp_path, resources=Resources(workers=1)))
    killer.join()
    assert killed
    assert [one.error for one in done] == [""]
    assert finished_rows(runs[0], tmp_path)


def test_estimates_count_the_work():
    estimator = Estimator()
    short, long = tiny("evaluate.every=1000"), tiny("evaluate.every=1000", "cycles=3000")
    assert estimator.seconds(long) > 100 * estimator.seconds(short)
    assert estimator.seconds(tiny('methods=["pdfl"]')) == pytest.approx(estimator.seconds(tiny()) / 2)
