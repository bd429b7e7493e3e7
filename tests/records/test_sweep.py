"""Sweeps: every combination once, found again, on processes and on Ray alike."""

import csv
import importlib.util
import json
import os
import subprocess
import sys

import pytest

from commands import quick_command
from forked import server
from mesh_help import ENVIRONMENT
from ssdfl.errors import InputError
from ssdfl.experiments.pool import Resources, run_pool
from ssdfl.records import load_records
from ssdfl.records.cache import finished_rows, run_folder, run_key
from ssdfl.records.sweep import load_sweep
from ssdfl.records.tables import SWEEP_RECORDS, write_swept_records
from ssdfl.report.sweep import sweep_results, write_sweep

BASE = """
name = "rates"
methods = ["ssdfl", "pdfl"]
seeds = [0, 1]
cycles = 3

[data]
name = "helpers:tiny_data"
labels_per_device = 2

[network]
spec = "barbell:size=3"

[clusters]
number = 2

[model]
name = "logreg"

[evaluate]
every = 1
"""
GRID = """
[sweep]
"training.learning_rate" = [0.02, 0.05]
schedule.tau_a = [1, 2]
"""
NO_RAY = importlib.util.find_spec("ray") is None


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    server()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rates.toml"
    path.write_text(BASE + GRID)
    return path


def test_every_combination_is_there_once(file):
    sweep = load_sweep(file, ("training.batch_size=4",))
    assert sweep.keys == ("training.learning_rate", "schedule.tau_a")
    found = [
        (c.experiment.training.learning_rate, c.experiment.schedule.tau_a)
        for c in sweep.combinations
    ]
    assert found == [(0.02, 1), (0.02, 2), (0.05, 1), (0.05, 2)]
    assert all(one.experiment.training.batch_size == 4 for one in sweep.combinations)
    assert len({run_key(one) for one in sweep.runs()}) == len(sweep.runs()) == 2 * 2 * 2 * 2


def test_tables_of_a_grid_are_sections(file):
    file.write_text(BASE + '[sweep.model]\nname = ["mlp", "logreg"]\n')
    sweep = load_sweep(file)
    assert sweep.keys == ("model.name",)
    assert [one.experiment.model.name for one in sweep.combinations] == ["mlp", "logreg"]


def check_frame(frame, summaries):
    """Every record of every run, with the swept keys first; last scores are the summaries'."""
    keys = ["training.learning_rate", "schedule.tau_a", "method"]
    assert list(frame.columns[:5]) == [*keys, "seed", "cycle"]
    assert len(frame) == len(summaries) * 2 * 3  # seeds, cycles
    last = frame[frame["cycle"] == 3].groupby(keys)["score"].mean()
    for one in summaries:
        case = (float(one[keys[0]]), int(one[keys[1]]), one["method"])
        assert last[case] == pytest.approx(float(one["score"]))


def test_swept_values_of_several_types_become_texts(tmp_path):
    swept = {"clusters.number": ["auto", 4], "cycles": [1, 2]}
    rows = [{"method": "ssdfl", "seed": 0, "cycle": 1}] * 2
    write_swept_records(tmp_path / SWEEP_RECORDS, swept, rows)
    frame = load_records(tmp_path)
    assert frame["clusters.number"].tolist() == ["auto", "4"]
    assert frame["cycles"].tolist() == [1, 2]


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(InputError):
        load_records(tmp_path)
    (tmp_path / SWEEP_RECORDS).write_text("not a table")
    with pytest.raises(InputError, match="a whole file"):
        load_records(tmp_path)


def test_a_sweep_is_done_once_compared_and_resumed(file, tmp_path):
    options = (file, "--cache", tmp_path / "cache", "--out", tmp_path / "out", "--workers", 2)
    planned = quick_command("sweep", *options, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "hours with 2 at a time" in planned.stdout
    assert not (tmp_path / "cache").exists()
    done = quick_command("sweep", *options)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "out" / "sweep.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    asked = {
        (rate, tau, method)
        for rate in ("0.02", "0.05")
        for tau in "12"
        for method in ("ssdfl", "pdfl")
    }
    assert {(r["training.learning_rate"], r["schedule.tau_a"], r["method"]) for r in rows} == asked
    assert len(rows) == len(asked)
    assert all(row["seeds"] == "2" and 0 <= float(row["score"]) <= 1 for row in rows)
    assert (tmp_path / "out" / "sweep.md").read_text().count("\n|") == 2 + len(asked)
    assert (tmp_path / "out" / "sweep.png").stat().st_size > 1000
    assert (tmp_path / "out" / "sweep.tex").read_text().count(" & ssdfl & ") == len(asked) / 2
    assert (tmp_path / "out" / "sweep.pdf").read_bytes().startswith(b"%PDF")
    check_frame(load_records(tmp_path / "out"), rows)
    page = (tmp_path / "out" / "sweep.html").read_text()
    for row in rows:
        name = f"learning_rate {row['training.learning_rate']}, tau_a {row['schedule.tau_a']}"
        accuracy = f"{100 * float(row['score']):.1f} ±{100 * float(row['score_std']):.1f}"
        assert f"<td>{name}</td><td>{row['method']}</td><td>{accuracy}</td>" in page
    assert f"ssdfl sweep {file}" in page
    times = {
        path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("metrics.parquet")
    }
    lost = load_sweep(file).runs()[3]
    for path in run_folder(lost, tmp_path / "cache").path.rglob("metrics.parquet"):
        path.unlink()
    assert quick_command("sweep", *options).returncode == 0
    again = {
        path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("metrics.parquet")
    }
    changed = {path for path, then in times.items() if again[path] != then}
    assert {path.relative_to(tmp_path / "cache").parts[0] for path in changed} == {run_key(lost)}


def test_what_diverges_is_said_and_the_rest_compared(file, tmp_path):
    file.write_text(BASE + '[sweep]\n"training.learning_rate" = [0.02, 1e30]\n')
    done = quick_command(
        "sweep", file, "--cache", tmp_path / "cache", "--out", tmp_path / "out", "--workers", 2
    )
    assert done.returncode == 2
    assert "runs = 4 of 8 failed" in done.stderr
    with (tmp_path / "out" / "sweep.csv").open() as lines:
        assert [row["training.learning_rate"] for row in csv.DictReader(lines)] == ["0.02", "0.02"]
    page = (tmp_path / "out" / "sweep.html").read_text()
    assert "<td>learning_rate 0.02</td><td>ssdfl</td>" in page
    assert "1e+30</td>" not in page


def test_a_combination_that_lacks_runs_is_named_with_the_seeds_it_has(file, tmp_path):
    sweep = load_sweep(file)
    (lost,) = (one for one in sweep.runs()[:4] if (one.methods, one.seeds) == (("pdfl",), (0,)))
    runs = [one for one in sweep.runs()[:8] if one != lost]
    for _ in run_pool(runs, tmp_path / "cache", resources=Resources(at_a_time=2)):
        pass
    lines = sweep_results(sweep, tmp_path / "cache")
    assert [list(line.runs) for line in lines] == [[0, 1], [1], [0, 1], [0, 1]]
    write_sweep(sweep, lines, tmp_path)
    page = (tmp_path / "sweep.html").read_text()
    assert "learning_rate 0.02, tau_a 1 is unfinished: 9 of 12 cycles are recorded." in page
    assert "tau_a 2 is unfinished" not in page
    assert "| pdfl (1 of 2 seeds) |" in (tmp_path / "sweep.md").read_text()


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ("", "sweep = none"),
        ("[sweep]\n", "sweep = {}"),
        ('[sweep]\n"training.learnin_rate" = [1.0]\n', "training.learnin_rate = 1.0"),
        ('[sweep]\n"training.learning_rate" = [0.1, -1.0]\n', "training.learning_rate = -1.0"),
        ('[sweep]\n"training.learning_rate" = 0.1\n', "sweep.training.learning_rate = 0.1"),
        ("[sweep.training]\nlearning_rate = 0.1\n", "sweep.training.learning_rate = 0.1"),
        ('[sweep]\n"schedule.tau_a" = []\n', "sweep.schedule.tau_a = []"),
        ('[sweep]\n"cycles.many" = [2]\n', "cycles.many = 2"),
        (
            '[sweep]\n"evaluate.target_accuracy" = [0.5, 0.6]\n',
            "sweep.evaluate.target_accuracy = [0.5, 0.6]",
        ),
    ],
)
def test_bad_grids_are_named(grid, message, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(BASE + grid)
    with pytest.raises(InputError) as caught:
        load_sweep(path)
    assert str(caught.value).startswith(message)


def test_a_run_takes_one_core_unless_told(file, tmp_path, monkeypatch):
    monkeypatch.setattr("ssdfl.experiments.pool.cores", lambda: 6)
    for words, number in (((), 6), (("--cpus", 2), 3), (("--cpus", 9), 1)):
        done = quick_command("sweep", file, "--cache", tmp_path / "cache", "--dry-run", *words)
        assert f"hours with {number} at a time" in done.stdout


def test_bad_options_end_with_one_line_and_code_2(file, tmp_path):
    for words, message in (
        ((tmp_path / "none.toml",), "experiment = "),
        ((file, "--backend", "dask"), "--backend = dask: expected one of processes, ray"),
        ((file, "--cpus", "0"), "--cpus = 0"),
        ((file, "--address", "auto"), "expected ray, to use --address"),
    ):
        done = quick_command("sweep", *words, "--cache", tmp_path / "cache")
        assert done.returncode == 2, done.stderr
        assert message in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.skipif(NO_RAY, reason="needs ssdfl[ray]")
def test_ray_does_what_processes_do(file, tmp_path):
    code = """
import json, sys
from pathlib import Path
from ssdfl.experiments.pool import Resources, run_pool
from ssdfl.records.sweep import load_sweep
runs = load_sweep(Path(sys.argv[1])).runs()[:3]
done = list(run_pool(runs, Path(sys.argv[2]), resources=Resources(at_a_time=2), backend="ray"))
print(json.dumps([(one.error, one.seconds > 0) for one in done]))
"""
    words = [sys.executable, "-c", code, str(file), str(tmp_path / "ray")]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=200, env={**os.environ, **ENVIRONMENT}
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [["", True]] * 3
    runs = load_sweep(file).runs()[:3]
    list(run_pool(runs, tmp_path / "processes", resources=Resources(at_a_time=1)))
    for one in runs:
        assert finished_rows(one, tmp_path / "ray")
        rows = [
            run_folder(one, tmp_path / place).read_rows(one.seeds[0], one.methods[0])
            for place in ("ray", "processes")
        ]
        assert repr(rows[0]) == repr(rows[1])


@pytest.mark.skipif(NO_RAY, reason="needs ssdfl[ray]")
def test_ray_tries_again_and_fails_alone(file, tmp_path, monkeypatch):
    monkeypatch.setenv("SSDFL_TEST_FIRST", str(tmp_path / "first"))
    names = ["helpers:mortal_data", "helpers:deadly_data", "helpers:broken_data"]
    file.write_text(BASE.replace("[0, 1]", "[0]") + f'[sweep]\n"data.name" = {names}\n')
    options = ("--cache", tmp_path / "cache", "--out", tmp_path / "out", "--workers", 1)
    done = quick_command("sweep", file, "--set", 'methods=["pdfl"]', "--backend", "ray", *options)
    assert done.returncode == 2
    assert "runs = 2 of 3 failed" in done.stderr
    assert "Traceback" not in done.stderr
    with (tmp_path / "out" / "sweep.csv").open() as lines:
        assert [row["data.name"] for row in csv.DictReader(lines)] == names[:1]


@pytest.mark.skipif(not NO_RAY, reason="Ray is installed")
def test_a_missing_ray_is_named(file, tmp_path):
    with pytest.raises(InputError, match=r"pip install 'ssdfl\[ray\]'"):
        list(run_pool(load_sweep(file).runs(), tmp_path, backend="ray"))
