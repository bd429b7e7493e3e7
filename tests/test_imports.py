"""What the quick commands must not load."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("statement", "forbidden"),
    [
        ("import ssdfl", "numpy torch pydantic matplotlib"),
        ("import ssdfl.cli.main", "numpy torch pydantic matplotlib"),
        ("import ssdfl.report", "torch"),
        ("import ssdfl.mesh.device", "pyarrow pandas networkx sklearn matplotlib"),
    ],
)
def test_import_stays_light(statement, forbidden):
    code = f"{statement}; import sys; print([m for m in {forbidden.split()!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_children_import_the_tree_under_test():
    code = "import ssdfl; print(ssdfl.__file__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == Path(__file__).parents[1] / "src/ssdfl/__init__.py"
