"""Runs of several ranks: into the folders of other engines, on from their checkpoints, and after a death."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from ranks_help import TINY, children, environment, finish_in_ranks, parameters
from ssdfl.experiments import iterate_experiment, load_experiment, run
from ssdfl.experiments.store import RunFolder


def begin(settings, folder, cycles):
    """Run some cycles of the first method, as one process, and stop."""
    stopped = iterate_experiment(load_experiment(None, settings), folder)
    for advance in stopped:
        if advance.cycle == cycles:
            stopped.close()


def assert_same(folder, other):
    for method in ("ssdfl", "stc"):
        assert torch.allclose(parameters(folder, method), parameters(other, method), atol=2e-5)
        rows, expected = (RunFolder(one).read_rows(0, method) for one in (folder, other))
        assert [row["cycle"] for row in rows] == [1, 2, 3, 4, 5, 6]
        for row, right in zip(rows, expected, strict=True):
            for name, value in right.items():
                assert row[name] == pytest.approx(value, rel=1e-3, abs=1e-4, nan_ok=True), name


def test_ranks_go_on_where_one_process_stopped_and_back(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "SAVE_INTERVAL_S", 0.0)
    here, there, whole = tmp_path / "here", tmp_path / "there", tmp_path / "whole"
    list(iterate_experiment(load_experiment(None, TINY), whole))
    begin(TINY, here, cycles=3)
    finish_in_ranks([*TINY, "engine.name=distributed"], here, tmp_path)
    assert_same(here, whole)
    assert 'name = "distributed"' in (here / "experiment.toml").read_text()
    finish_in_ranks([*TINY, 'methods=["ssdfl"]', "engine.name=distributed"], there, tmp_path)
    list(iterate_experiment(load_experiment(None, TINY), there, resume=True))
    assert_same(there, whole)


def torchrun(settings, folder, restarts):
    launcher = [
        "-m",
        "torch.distributed.run",
        "--nnodes",
        "1",
        "--nproc-per-node",
        "2",
        "--max-restarts",
        restarts,
    ]
    launcher += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--monitor-interval", "0.1"]
    asked = [word for setting in settings for word in ("--set", setting)]
    return subprocess.Popen(
        [sys.executable, *launcher, "-m", "ssdfl", "run", *asked, "--out", folder, "--engine", "distributed"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_killed_rank_changes_nothing(tmp_path):
    settings = [*TINY, "cycles=800", "evaluate.every=400", 'methods=["ssdfl"]']
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    finish_in_ranks([*settings, "engine.name=distributed"], unbroken, tmp_path)
    running = torchrun(settings, broken, "3")
    try:
        deadline = time.monotonic() + 120
        while not (broken / "seed-0" / "ssdfl" / "checkpoint.safetensors").exists():
            assert time.monotonic() < deadline
            assert running.poll() is None, running.communicate()[1]
            time.sleep(0.02)
        assert len(RunFolder(broken).read_rows(0, "ssdfl")) < 800
        os.kill(children(running.pid)[-1], signal.SIGKILL)
        _, said = running.communicate(timeout=240)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 0, said
    assert said.count("demo: helpers:tiny_data") == 2  # it was started twice
    assert torch.equal(parameters(broken, "ssdfl"), parameters(unbroken, "ssdfl"))
    rows = [RunFolder(folder).read_rows(0, "ssdfl") for folder in (broken, unbroken)]
    assert repr(rows[0]) == repr(rows[1])


def command(*words, cwd):
    return subprocess.run(
        [sys.executable, "-m", "ssdfl", *map(str, words)],
        cwd=cwd,
        env=environment(COLUMNS="120"),
        capture_output=True,
        text=True,
        timeout=200,
    )


def test_the_command_starts_ranks_and_shows_one_result(tmp_path):
    asked = [word for setting in TINY for word in ("--set", setting)]
    done = command("run", *asked, "--engine", "distributed", "--workers", 2, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [one["method"] for one in json.loads(done.stdout)["methods"]] == ["ssdfl", "stc"]
    assert (tmp_path / "runs" / "demo" / "report.html").exists()
    again = command("run", *asked, "--engine", "distributed", "--out", "runs/demo", cwd=tmp_path)
    assert again.returncode == 2
    assert "--out = runs/demo" in again.stderr


def test_a_mistake_in_ranks_is_one_line(tmp_path):
    asked = [word for setting in [*TINY, "training.learning_rate=1e30"] for word in ("--set", setting)]
    done = command("run", *asked, "--engine", "distributed", "--workers", 2, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("diverged at step") == 1
    assert "Traceback" not in done.stderr


def test_workers_belong_to_the_distributed_engine(tmp_path):
    done = command("run", "--workers", 2, cwd=tmp_path)
    assert done.returncode == 2
    assert "--workers = 2: expected --engine distributed" in done.stderr
