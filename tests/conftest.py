import gc
import itertools
import os
from pathlib import Path

import pytest
from PIL import Image

TESTS = Path(__file__).parent
# Child processes import the tree under test, whatever is installed.
os.environ["PYTHONPATH"] = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Virtual machines that announce AMX without describing its tiles stop torch in bf16.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
CACHES = itertools.count()
IN_A_WORKER = "PYTEST_XDIST_WORKER" in os.environ
NICENESS = 10
if IN_A_WORKER:
    gc.disable()  # until everything is imported and collected, of which nothing is garbage


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items):
    """Meshes begin, in two groups, so that two run at a time; then the other groups, then all."""
    for item in items:
        if item.get_closest_marker("mesh") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("meshes"))
    if IN_A_WORKER:
        items.sort(key=_turn)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist tells the names of tests
def pytest_collection_finish(session):
    if not IN_A_WORKER:
        return
    for item in session.items:
        _name_group(item)
    # Spare the garbage collector half a million objects that stay until the end.
    gc.freeze()
    gc.enable()


def _name_group(item):
    """Groups are told by ``@group``, which pytest-xdist 3.8 adds in vain since pytest 9.2.

    https://github.com/pytest-dev/pytest-xdist/issues/1386
    """
    mark = item.get_closest_marker("xdist_group")
    if mark is not None and not item.nodeid.endswith(f"@{mark.args[0]}"):
        item._id = type(item._id).parse(f"{item.nodeid}@{mark.args[0]}")


def _turn(item):
    if item.get_closest_marker("mesh"):
        return 0
    return 1 if item.get_closest_marker("xdist_group") else 2


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Whatever else computes leaves the cores to meshes, whose devices notice who is slow."""
    if IN_A_WORKER and not item.get_closest_marker("mesh"):
        os.nice(max(0, NICENESS - os.nice(0)))


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
