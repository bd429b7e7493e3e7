import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def _no_data_of_the_machine(monkeypatch, tmp_path_factory):
    """Tests see no data folder and no cache but their own."""
    monkeypatch.delenv("SSDFL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
