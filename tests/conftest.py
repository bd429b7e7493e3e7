import os
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
# Child processes import the tree under test, whatever is installed.
os.environ["PYTHONPATH"] = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def _no_data_of_the_machine(monkeypatch, tmp_path_factory):
    """Tests see no data folder and no cache but their own."""
    monkeypatch.delenv("SSDFL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    """No test cuts the power, and a busy disk takes ten milliseconds to sync each small file."""
    monkeypatch.setattr("ssdfl.files.os.fsync", lambda file: None)


@pytest.fixture
def threads():
    """A function that lets torch use so many threads, until the test ends."""
    import torch

    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)
