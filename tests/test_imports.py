"""What the quick commands must not load."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("statement", "forbidden"),
    [
        ("import ssdfl", "numpy torch pydantic matplotlib"),
        ("import ssdfl.cli.main", "numpy torch pydantic matplotlib"),
        ("import ssdfl.report", "torch"),
    ],
)
def test_import_stays_light(statement, forbidden):
    code = f"{statement}; import sys; print([m for m in {forbidden.split()!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
