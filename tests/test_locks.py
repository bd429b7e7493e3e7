"""A lock file has one holder, and none once its process has ended."""

import subprocess
import sys
from contextlib import contextmanager

import pytest

from ssdfl.locks import locked

HOLDER = """
import sys
from ssdfl.locks import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(path):
    """Another process that holds the lock until its input ends."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with child:
        try:
            assert child.stdout.readline().strip() == b"held"
            yield child
        finally:
            child.kill()


def test_a_lock_that_another_process_holds_is_refused(tmp_path):
    path = tmp_path / "lock"
    with (
        holder(path),
        pytest.raises(
            BlockingIOError, match=r"process \d+ on .* since .* holds the lock"
        ) as caught,
    ):
        locked(path).__enter__()
    assert caught.value.filename == str(path)


def test_a_killed_process_leaves_no_lock(tmp_path):
    path = tmp_path / "lock"
    with holder(path) as child:
        child.kill()
        child.wait()
        with locked(path):
            pass


def test_the_lock_is_free_after_the_block_however_it_ends(tmp_path):
    path = tmp_path / "lock"
    with pytest.raises(KeyError), locked(path):
        raise KeyError
    with locked(path):
        pass
    with holder(path):
        pass
