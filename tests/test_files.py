import errno

import pytest

from ssdfl.files import atomic_path, write_text


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
