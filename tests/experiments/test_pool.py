"""Runs side by side, shared by what determines them."""

import multiprocessing
import os
import signal
import threading
import time

import pytest

from forked import server
from mesh_help import ENVIRONMENT
from ssdfl.experiments import iterate_experiment, run_experiment
from ssdfl.experiments.estimate import Estimator
from ssdfl.experiments.on_ray import bring_home
from ssdfl.experiments.pool import Resources, run_pool
from ssdfl.graph import load_network, write_network
from ssdfl.records import RunFolder, load_experiment
from ssdfl.records.cache import finished_rows, run_folder, run_key, single_runs, whole_rows

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
    server()


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
    for change in (
        "training.learning_rate=0.06",
        "cycles=4",
        "clusters.score=drift",
        "evaluate.samples=9",
    ):
        assert run_key(single_runs(tiny(change))[0]) != run_key(one)
    planless = [
        single_runs(tiny(change))[1] for change in ("clusters.score=drift", "clusters.score=time")
    ]
    assert run_key(planless[0]) == run_key(planless[1])


def test_a_pool_does_each_run_once_and_as_one_process_would(tmp_path):
    runs = single_runs(tiny())
    done = list(run_pool([*runs, *runs], tmp_path / "cache", resources=Resources(at_a_time=2)))
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
    good, bad = (
        single_runs(tiny("seeds=[0]"))[1],
        single_runs(tiny("training.learning_rate=1e30"))[1],
    )
    done = {
        run_key(one.experiment): one
        for one in run_pool([bad, good], tmp_path, resources=Resources(at_a_time=1))
    }
    assert "diverged" in done[run_key(bad)].error
    assert not done[run_key(good)].error
    assert finished_rows(good, tmp_path)
    assert not finished_rows(bad, tmp_path)


def test_a_mistake_in_a_users_function_does_not_stop_the_others(tmp_path):
    bad, good = (
        single_runs(tiny(*change))[0] for change in (["data.name=helpers:broken_data"], [])
    )
    done = {
        run_key(one.experiment): one.error
        for one in run_pool([bad, good], tmp_path, resources=Resources(at_a_time=1))
    }
    assert done == {run_key(bad): "KeyError: 'images'", run_key(good): ""}


def test_a_run_whose_process_always_dies_does_not_stop_the_others(tmp_path):
    bad, *good = (
        single_runs(tiny(*change))[0]
        for change in (["data.name=helpers:deadly_data"], [], ["cycles=4"])
    )
    done = {
        run_key(one.experiment): one.error
        for one in run_pool([bad, *good], tmp_path, resources=Resources(at_a_time=2))
    }
    assert "killed 3 times" in done.pop(run_key(bad))
    assert done == {run_key(one): "" for one in good}


def test_methods_of_ones_own_are_pooled(tmp_path):
    (one,) = single_runs(tiny('methods=["helpers:gossip"]', "seeds=[0]"))
    assert [done.error for done in run_pool([one], tmp_path)] == [""]
    assert len(finished_rows(one, tmp_path)) == 3


def test_another_target_goes_on_with_the_same_run(tmp_path):
    first, second = (
        single_runs(tiny(f"evaluate.target_accuracy={target}"))[1] for target in (0.5, 0.9)
    )
    advances = iterate_experiment(first, run_folder(first, tmp_path).path)
    next(advances)
    advances.close()
    assert [done.error for done in run_pool([second], tmp_path)] == [""]
    assert finished_rows(first, tmp_path)


def test_of_files_the_content_counts(tmp_path):
    keys = []
    for spec, name in (("ring:n=6", "a.json"), ("star:n=6", "a.json"), ("star:n=6", "b.json")):
        write_network(load_network(spec), tmp_path / name)
        keys.append(run_key(single_runs(tiny(f"network.spec={tmp_path / name}"))[0]))
    assert keys[0] != keys[1]
    assert keys[1] == keys[2]


def test_what_a_machine_sends_home_replaces_an_unfinished_run(tmp_path):
    (one,) = single_runs(tiny('methods=["pdfl"]', "seeds=[0]"))
    there, home = run_experiment(one, tmp_path / "there").path, tmp_path / "home"
    advances = iterate_experiment(one, home)
    next(advances)
    advances.close()
    assert not whole_rows(one, RunFolder(home))
    files = {
        str(path.relative_to(there)): path.read_bytes()
        for path in there.rglob("*")
        if path.is_file()
    }
    bring_home(files, home)
    assert len(whole_rows(one, RunFolder(home))) == 3
    bring_home({}, home)
    assert len(whole_rows(one, RunFolder(home))) == 3


def test_a_killed_process_is_replaced(tmp_path):
    often = ("data.name=helpers:often_saved_data", "cycles=400")
    runs = single_runs(tiny(*often, "seeds=[0]", 'methods=["pdfl"]'))
    killed = []

    def kill_one():
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and not killed:
            started = any(tmp_path.rglob("metrics.parquet"))
            for child in multiprocessing.active_children() if started else ():
                os.kill(child.pid, signal.SIGKILL)
                killed.append(child.pid)
            time.sleep(0.01)

    killer = threading.Thread(target=kill_one)
    killer.start()
    done = list(run_pool(runs, tmp_path, resources=Resources(at_a_time=1)))
    killer.join()
    assert killed
    assert [one.error for one in done] == [""]
    assert finished_rows(runs[0], tmp_path)


def test_estimates_count_the_work():
    estimator = Estimator()
    short, long = tiny("evaluate.every=1000"), tiny("evaluate.every=1000", "cycles=3000")
    assert estimator.seconds(long) > 100 * estimator.seconds(short)
    assert estimator.seconds(tiny('methods=["pdfl"]')) == pytest.approx(
        estimator.seconds(tiny()) / 2
    )


def test_testing_the_mean_model_only_is_estimated_as_one_test():
    estimator = Estimator()
    every = ("evaluate.every=1", "cycles=100")
    of_all, of_mean = tiny(*every), tiny(*every, "evaluate.models=mean")
    train_s, test_s, _ = estimator._times(of_all)
    devices, runs = estimator._devices(of_all), len(of_all.methods) * len(of_all.seeds)
    saved_s = 100 * (devices - 1) * test_s * runs
    assert estimator.seconds(of_all) - estimator.seconds(of_mean) == pytest.approx(saved_s)
    assert estimator._times(of_mean)[:2] == (train_s, test_s)


def test_estimates_know_how_often_is_tested():
    estimator = Estimator()
    seldom = ("evaluate.every=0", "training.batch_size=1", "data.name=helpers:many_samples")
    by_tau = [estimator._times(tiny(*seldom, f"schedule.tau_a={tau}"))[2] for tau in (1, 4)]
    assert by_tau[0] == pytest.approx(4 * by_tau[1], abs=3)
    assert by_tau[1] > 1
