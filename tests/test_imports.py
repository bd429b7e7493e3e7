"""What the quick commands must not load."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from commands import quick_command
from ssdfl.mesh.folder import device_folders

HEAVY = "pyarrow pandas networkx sklearn matplotlib scipy.linalg scipy.sparse.linalg"
"""What no device needs whose data are arrays and whose network is small."""


@pytest.mark.parametrize(
    ("statement", "forbidden"),
    [
        ("import ssdfl", "numpy torch pydantic matplotlib"),
        ("import ssdfl.cli.main", "numpy torch pydantic matplotlib"),
        ("import ssdfl.report", "torch"),
        ("import ssdfl.cli.main", "rich http.server ssdfl.cli.run"),
        ("import ssdfl.cli.main, ssdfl.cli.device, ssdfl.mesh.device", f"{HEAVY} rich http.server"),
    ],
)
def test_import_stays_light(statement, forbidden):
    code = f"{statement}; import sys; print([m for m in {forbidden.split()!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


RUN_ALONE = """
import sys
from ssdfl.cli.main import main
sys.argv = ["ssdfl", "device", "mesh/0"]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print([name for name in {forbidden!r} if name in sys.modules])
"""


def test_a_device_that_has_trained_has_loaded_nothing_it_does_not_need(tmp_path):
    """From reading its network and data to the last step; its neighbour runs beside it."""
    init = "network.spec=path:n=2 clusters.number=1 cycles=1 model.name=logreg data.train=train.npz"
    words = [word for setting in init.split() for word in ("--set", setting)]
    assert quick_command("mesh", "init", "--out", "mesh", *words, cwd=tmp_path).returncode == 0
    x = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    for folder in device_folders(tmp_path / "mesh"):
        np.savez(folder / "train.npz", x=x, y=x[:, :2].argmax(axis=1))
    code = RUN_ALONE.format(forbidden=HEAVY.split())
    command = [sys.executable, "-m", "ssdfl", "device", "mesh/1"]
    with subprocess.Popen(command, cwd=tmp_path) as neighbour:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        )
    assert neighbour.returncode == 0
    assert done.stdout.strip() == "[]"


def test_children_import_the_tree_under_test():
    code = "import ssdfl; print(ssdfl.__file__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == Path(__file__).parents[1] / "src/ssdfl/__init__.py"
