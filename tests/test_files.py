import errno
import os
import subprocess
import sys

import pytest

from ssdfl.files import atomic_path, remove_temporaries, write_text

KILLED = """
import os, signal, sys
from pathlib import Path
from ssdfl.files import atomic_path
with atomic_path(sys.argv[1]) as temporary:
    temporary.write_text("half of the n")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def fail():
        with atomic_path(path) as temporary:
            temporary.write_text("half of the n")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_that_names_no_file_gets_the_files_name(tmp_path):
    def fill():
        with atomic_path(tmp_path / "records.parquet"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left on device: .*records.parquet"):
        fill()
    assert not list(tmp_path.iterdir())


def test_folders_are_made(tmp_path):
    write_text(tmp_path / "new" / "a.txt", "x")
    assert (tmp_path / "new" / "a.txt").read_text() == "x"


def killed_while_writing(path):
    """What a process leaves that is killed while it writes."""
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    (left,) = set(path.parent.iterdir()) - {path}
    return left


def test_what_a_killed_process_left_of_a_file_is_removed_when_it_is_written_again(tmp_path):
    path = tmp_path / "a[1].txt"
    killed_while_writing(path)
    write_text(path, "new")
    assert list(tmp_path.iterdir()) == [path]


def test_a_start_removes_what_killed_processes_left_and_nothing_else(tmp_path):
    left = killed_while_writing(tmp_path / "below" / "a.txt")
    of_this_number = (
        tmp_path / f".b.{os.getpid()}.tmp.json"
    )  # as in a container, where all are number 1
    of_a_running = tmp_path / f".c.{os.getppid()}.tmp.json"
    of_others = [
        tmp_path / name for name in (".vimrc.tmp", ".d.tmp.json", "e.1234567.tmp", ".f.x.tmp.txt")
    ]
    for path in (of_this_number, of_a_running, *of_others):
        path.write_text("x")
    assert left.exists()
    remove_temporaries(tmp_path)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == {of_a_running, *of_others}


def test_what_is_to_last_is_on_the_disk_before_and_after_it_gets_its_name(tmp_path, monkeypatch):
    path, seen = tmp_path / "a.txt", []
    monkeypatch.setattr(
        "ssdfl.files.os.fsync", lambda file: seen.append((os.fstat(file).st_ino, path.exists()))
    )
    write_text(path, "x")
    assert seen == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]
    write_text(path, "y", durable=False)
    assert len(seen) == 2
