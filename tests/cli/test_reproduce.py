"""``ssdfl reproduce`` as a researcher uses it."""

import signal
import subprocess
import sys
import time

import pytest

from commands import quick_command
from forked import server


@pytest.fixture(autouse=True)
def _processes_start_soon():
    """The pool forks its processes from the server that the tests share."""
    server()


def test_the_list_names_every_artefact():
    done = quick_command("reproduce", "--list")
    assert done.returncode == 0
    assert "fmnist-taur" in done.stdout
    assert "tab:acc_thresholds_cifar10" in done.stdout


def test_a_table_and_a_figure_in_the_smoke_profile(tmp_path):
    options = ("--profile", "smoke", "--cache", tmp_path / "cache", "--out", tmp_path / "out")
    planned = quick_command("reproduce", "fmnist-taur1", "fmnist-taua", *options, "--dry-run")
    assert planned.returncode == 0
    assert "hours with" in planned.stdout
    assert not (tmp_path / "cache").exists()
    done = quick_command("reproduce", "fmnist-taur1", "fmnist-taua", *options)
    assert done.returncode == 0, done.stderr
    for name in (
        "fmnist-taur1.md",
        "fmnist-taur1.tex",
        "fmnist-taur1.png",
        "fmnist-taur1-plans.csv",
        "fmnist-taua.png",
        "fmnist-taua.pdf",
        "fmnist-taua.csv",
    ):
        assert (tmp_path / "out" / name).stat().st_size > 200
    runs = list((tmp_path / "cache").iterdir())
    assert len(runs) == 4 * 5 + 4 * 5  # τ_a = τ_r = 1, hybrid, is one and the same
    before = {
        path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("metrics.parquet")
    }
    again = quick_command("reproduce", "fmnist-taua", *options)
    assert again.returncode == 0
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())
    # SGD's τ_a = 1 is in the table; nothing else of this figure is finished.
    shown = quick_command("reproduce", "fmnist-taua-sgd", *options, "--finished")
    assert shown.returncode == 0, shown.stderr
    text = (tmp_path / "out" / "fmnist-taua-sgd.md").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## τ_a = 1, mild",
        "## τ_a = 1, extreme",
    ]
    assert len(list((tmp_path / "cache").iterdir())) == len(runs)


def test_an_artefact_is_known_by_the_papers_label():
    done = quick_command(
        "reproduce", "fig:het_ns2_fmnist", "--profile", "smoke", "--only", "Comp", "--dry-run"
    )
    assert done.returncode == 0, done.stderr
    assert "fmnist-architecture" in done.stdout


def test_a_dry_run_says_that_bounds_are_not_counted(tmp_path):
    words = ("--profile", "smoke", "--cache", tmp_path / "cache", "--dry-run")
    with_bound = quick_command("reproduce", "fmnist-bound", "fmnist-taua", *words).stdout
    assert "Not counted: measuring constants and forming clusters for fmnist-bound." in with_bound
    assert "Not counted" not in quick_command("reproduce", "fmnist-taua", *words).stdout


def test_a_run_takes_one_core_unless_told(tmp_path, monkeypatch):
    monkeypatch.setattr("ssdfl.experiments.pool.cores", lambda: 6)
    words = ("fmnist-taua", "--profile", "smoke", "--cache", tmp_path / "cache", "--dry-run")
    assert "hours with 6 at a time" in quick_command("reproduce", *words).stdout
    assert "hours with 3 at a time" in quick_command("reproduce", *words, "--cpus", 2).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "artefact = none"),
        (("table-9",), "artefact = table-9"),
        (("fmnist-taur", "--profile", "huge"), "--profile = huge"),
        (("fmnist-taur", "--seeds", "0"), "--seeds = 0"),
        (("fmnist-taur", "--reading", "best"), "--reading = best"),
        (("fmnist-taur", "--workers", "-1"), "--workers = -1"),
        (("fmnist-taur", "--only", "Comp"), "--only of fmnist-taur = Comp"),
        (("fmnist-taur", "--finished", "--fresh"), "--finished = with --fresh"),
        (("fmnist-taur", "--finished", "--cache", "nowhere"), "--finished = fmnist-taur"),
    ],
)
def test_bad_input_is_named(arguments, message):
    done = quick_command("reproduce", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_interrupted_it_ends_its_processes_and_goes_on(tmp_path):
    arguments = ["reproduce", "fmnist-architecture", "--profile", "smoke", "--workers", "1"]
    arguments += ["--cache", str(tmp_path / "cache"), "--out", str(tmp_path / "out")]
    running = subprocess.Popen(
        [sys.executable, "-m", "ssdfl", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 240
        while not list((tmp_path / "cache").glob("*/seed-0/*/metrics.parquet")):
            assert time.monotonic() < deadline
            assert running.poll() is None
            time.sleep(0.05)
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=20)
    finally:
        running.kill()
    assert running.returncode == 130
    assert "finished work is kept" in said
    deadline = time.monotonic() + 10
    while subprocess.run(
        ["pgrep", "-g", str(running.pid)], capture_output=True, check=False
    ).stdout:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert quick_command(*arguments).returncode == 0
    assert (tmp_path / "out" / "fmnist-architecture.png").exists()
