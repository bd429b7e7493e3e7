"""A few inputs of every target, and all that once failed."""

import csv
from pathlib import Path

import pytest

from fuzz.run import fill, fuzz, is_read, quietly, show, small_networks_only
from fuzz.targets import TARGETS

HERE = Path(__file__).parent
PAST = sorted((HERE / "past").iterdir())
INPUTS = 40


@pytest.mark.parametrize("name", TARGETS)
def test_nearly_right_inputs_are_read_or_refused(name, monkeypatch, tmp_path):
    monkeypatch.setattr("fuzz.run.FAILURES", tmp_path)
    count = fuzz(name, inputs=INPUTS, seconds=60, first=10**9)
    assert count.failures == 0
    assert count.read + count.refused == INPUTS


@pytest.mark.parametrize("path", PAST, ids=[path.name for path in PAST])
def test_what_once_failed_no_longer_does(path, tmp_path):
    target = TARGETS[path.name.rpartition("-")[0]]
    with small_networks_only(), quietly():
        is_read(target, path.read_bytes(), tmp_path)


def test_a_reader_that_raises_anything_else_is_caught(monkeypatch, tmp_path):
    def broken(content, folder):
        raise ZeroDivisionError

    monkeypatch.setitem(TARGETS, "hosts", type(TARGETS["hosts"])(TARGETS["hosts"].make, broken))
    monkeypatch.setattr("fuzz.run.FAILURES", tmp_path)
    assert fuzz("hosts", inputs=3, seconds=60).failures == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hosts-0", "hosts-1", "hosts-2"]


def test_a_reader_that_hangs_is_caught(monkeypatch, tmp_path):
    def endless(content, folder):
        while True:
            pass

    monkeypatch.setitem(TARGETS, "hosts", type(TARGETS["hosts"])(TARGETS["hosts"].make, endless))
    monkeypatch.setattr("fuzz.run.FAILURES", tmp_path)
    monkeypatch.setattr("fuzz.run.LONGEST_S", 0.1)
    assert fuzz("hosts", inputs=1, seconds=60).failures == 1


def test_a_run_that_was_broken_off_goes_on(monkeypatch, tmp_path):
    monkeypatch.setattr("fuzz.run.BATCH", 4)
    counts = tmp_path / "counts.csv"
    fill(["hosts"], 6, counts)
    fill(["hosts"], 10, counts)
    again = tmp_path / "again.csv"
    fill(["hosts"], 10, again)
    fill(["hosts"], 10, again)
    with counts.open() as one, again.open() as other:
        rows = next(csv.DictReader(one)), next(csv.DictReader(other))
    assert rows[0]["inputs"] == "10"
    assert rows[0]["read"] == rows[1]["read"]


def test_the_record_has_every_target_and_no_failure(capsys):
    with (HERE / "record.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert sorted(row["target"] for row in rows) == sorted(TARGETS)
    assert {row["failures"] for row in rows} == {"0"}
    show(HERE / "record.csv")
    assert f"| all | {sum(int(row['inputs']) for row in rows):,} |" in capsys.readouterr().out
