import itertools
import os
from pathlib import Path

import pytest
from PIL import Image

TESTS = Path(__file__).parent
# Child processes import the tree under test, whatever is installed.
os.environ["PYTHONPATH"] = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])
os.environ.setdefault("OMP_NUM_THREADS", "1")
CACHES = itertools.count()


@pytest.fixture(autouse=True)
def _no_data_of_the_machine(monkeypatch, tmp_path_factory):
    """Tests see no data folder and no cache but their own, which is made when it is needed."""
    monkeypatch.delenv("SSDFL_DATA", raising=False)
    cache = tmp_path_factory.getbasetemp() / "caches" / str(next(CACHES))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    """No test cuts the power, and a busy disk takes ten milliseconds to sync each small file."""
    monkeypatch.setattr("ssdfl.files.os.fsync", lambda file: None)


@pytest.fixture(autouse=True)
def _figures_of_one_pixel(request, monkeypatch):
    """Runs plot the figures of their reports; tests of reports also draw them."""
    if request.path.parent.name != "report":
        monkeypatch.setattr("ssdfl.report.html.save", _save_one_pixel)


def _save_one_pixel(figure, path):
    """Half of the time of a tiny run goes into drawing its figures."""
    path.parent.mkdir(exist_ok=True)
    Image.new("L", (1, 1)).save(path)


@pytest.fixture
def threads():
    """A function that lets torch use so many threads, until the test ends."""
    import torch

    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)
