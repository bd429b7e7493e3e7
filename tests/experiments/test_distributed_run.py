"""Runs of several ranks: into other engines' folders, from their checkpoints, after a death."""

import json
import os
import signal
import time

import pytest
import torch

from commands import quick_command
from forked import Forked, command
from ranks_help import TINY, children, environment, finish_in_ranks, in_ranks, parameters
from ssdfl.cli import ranks
from ssdfl.cli import run as run_command
from ssdfl.errors import InputError
from ssdfl.experiments import iterate_experiment, load_model, run
from ssdfl.records import Experiment, load_experiment
from ssdfl.records.folder import RunFolder

pytestmark = pytest.mark.xdist_group("distributed run")  # its ranks are shared


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
    asked = json.dumps([*TINY, "engine.name=distributed"])
    in_ranks("rank_jobs:begin_experiment", 2, tmp_path, SETTINGS=asked, FOLDER=str(there))
    assert len(RunFolder(there).read_rows(0, "ssdfl")) == 3
    assert [name.split("-")[0] for name in saved_files(there)] == ["part", "part"]
    assert len(load_model(there, "ssdfl").state_dict()) == 2
    list(iterate_experiment(load_experiment(None, TINY), there, resume=True))
    assert_same(there, whole)
    assert saved_files(there) == []


def saved_files(folder):
    """What is beside the metrics and the checkpoint of a method, temporary files included."""
    files = {file.name for file in (folder / "seed-0" / "ssdfl").iterdir()}
    return sorted(files - {"metrics.parquet", "checkpoint.safetensors"})


def torchrun(*words, said, restarts="0", **variables):
    """``torchrun -m WORDS`` in two ranks, which write what they say to an open file."""
    launcher = ["--nnodes", "1", "--nproc-per-node", "2", "--max-restarts", restarts]
    launcher += [
        "--rdzv-backend",
        "c10d",
        "--rdzv-endpoint",
        "127.0.0.1:0",
        "--monitor-interval",
        "0.1",
    ]
    environment_of_ranks = environment(**variables)
    return Forked(
        "torch.distributed.run:main",
        [*launcher, "-m", *words],
        stderr=said,
        env=environment_of_ranks,
    )


# Stacked gradients load torch._dynamo, two seconds for each new rank; convolutions are not stacked.
NEW_RANKS = [*TINY, "model.name=rank_jobs:small_cnn"]
LONG = [*TINY, "model.name=rank_jobs:unhurried_cnn", "cycles=30", 'methods=["ssdfl"]']
LONG += ["evaluate.every=15", "engine.name=distributed"]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    finish_in_ranks(LONG, folder / "run", folder)
    return folder / "run"


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_changes_nothing(victim, unbroken, tmp_path):
    broken = tmp_path / "broken"
    asked = [word for setting in LONG for word in ("--set", setting)]
    with (tmp_path / "said").open("w+") as said:
        running = torchrun("rank_jobs", "run", *asked, "--out", broken, restarts="3", said=said)
        try:
            deadline = time.monotonic() + 120
            while not (broken / "seed-0" / "ssdfl" / "checkpoint.safetensors").exists():
                assert time.monotonic() < deadline
                assert running.poll() is None, said.read()
                time.sleep(0.02)
            assert len(RunFolder(broken).read_rows(0, "ssdfl")) < 30
            os.kill(children(running.pid)[victim], signal.SIGKILL)
            running.wait(timeout=240)
        finally:
            running.kill()
        text = said.read()
    assert running.returncode == 0, text
    assert "exitcode: -9" in text
    assert torch.equal(parameters(broken, "ssdfl"), parameters(unbroken, "ssdfl"))
    assert saved_files(broken) == saved_files(unbroken)
    rows = [RunFolder(folder).read_rows(0, "ssdfl") for folder in (broken, unbroken)]
    assert repr(rows[0]) == repr(rows[1])


def test_ranks_run_one_experiment_after_the_other(tmp_path):
    settings = [*NEW_RANKS, "engine.name=distributed"]
    asked = json.dumps([settings, [*settings, "training.learning_rate=0.01"]])
    with (tmp_path / "said").open("w+") as said:
        running = torchrun("rank_jobs", said=said, SETTINGS=asked, FOLDER=str(tmp_path / "run"))
        try:
            running.wait(timeout=120)
        finally:
            running.kill()
        assert running.returncode == 0, said.read()
    assert all(len(RunFolder(tmp_path / f"run-{k}").all_rows()) == 12 for k in (0, 1))


def start_ranks(*words, cwd):
    """``ssdfl run`` of the tiny experiment in ranks, with words."""
    fixed = environment(COLUMNS="120")
    asked = [word for setting in NEW_RANKS for word in ("--set", setting)]
    return command("run", *asked, "--engine", "distributed", *words, cwd=cwd, **fixed)


def test_the_command_starts_ranks_and_shows_one_result(tmp_path):
    done = start_ranks("--workers", 2, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [one["method"] for one in json.loads(done.stdout)["methods"]] == ["ssdfl", "stc"]
    assert (tmp_path / "runs" / "demo" / "report.html").exists()
    again = start_ranks("--out", "runs/demo", cwd=tmp_path)
    assert again.returncode == 2
    assert "--out = runs/demo" in again.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.learning_rate=1e30", "diverged at step"),
        ('methods=["none"]', "method = none"),
        ("clusters.plan=none.json", "none.json"),
    ],
)
def test_a_mistake_in_ranks_is_one_line(change, message, tmp_path):
    done = start_ranks("--set", change, "--workers", 2, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count(message) == 1, done.stderr
    assert "Traceback" not in done.stderr


def test_ranks_need_the_engine_that_knows_them(tmp_path):
    as_rank = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    done = quick_command("run", cwd=tmp_path, **as_rank)
    assert done.returncode == 2
    assert "--engine = local: expected distributed, in several ranks" in done.stderr


def test_rank_0_knows_the_run_that_its_launcher_began(tmp_path, monkeypatch):
    begun, another, new = tmp_path / "demo-2", tmp_path / "demo", tmp_path / "none"
    ranks.begin(begun)
    monkeypatch.setattr(os, "getppid", lambda: 1)
    ranks.begin(another)
    monkeypatch.undo()
    assert ranks.begun([new, another, begun]) == begun
    assert ranks.begun([new, another]) is None


@pytest.mark.parametrize(
    ("number", "folder", "resumes"),
    [("0", "runs/demo", True), ("1", "runs/demo-2", False), (None, "runs/demo-2", False)],
)
def test_only_rank_0_goes_on_with_the_run_that_its_launcher_began(
    number, folder, resumes, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    ranks.begin(run_command.RUNS / "demo")
    for name, value in (("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1")):
        monkeypatch.setenv(name, value)
    if number is not None:
        monkeypatch.setenv("RANK", number)
    chosen, resume = run_command._choose_folder("demo", None, resume=False)
    assert (chosen.path.as_posix(), resume) == (folder, resumes)


@pytest.mark.parametrize("rank", [0, 1])
def test_only_rank_0_notes_its_launcher_and_shows_results(rank, tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(run_command, "_execute", lambda request, quiet: shown.append(quiet))
    monkeypatch.setattr(run_command, "_conclude", shown.append)
    request = run_command._Request(Experiment(), RunFolder(tmp_path), False, None, False)
    run_command._run_as_rank(request, rank)
    assert shown == ([False, request] if rank == 0 else [True])
    assert (tmp_path / ranks.LAUNCHER).exists() is (rank == 0)


def test_as_many_ranks_are_started_as_asked_for_or_one_per_core(tmp_path, monkeypatch):
    monkeypatch.setattr("ssdfl.engine.launch.launch", lambda words, number, variables: number)
    monkeypatch.setattr(ranks, "cores", lambda: 7)
    assert [ranks.start(tmp_path, workers) for workers in (0, 1, 3)] == [7, 1, 3]
    with pytest.raises(InputError, match="--workers = -1"):
        ranks.start(tmp_path, -1)


def test_workers_belong_to_the_distributed_engine(tmp_path):
    done = quick_command("run", "--workers", 2, cwd=tmp_path)
    assert done.returncode == 2
    assert "--workers = 2: expected --engine distributed" in done.stderr
