"""Nothing of a device waits or starts a thread behind the back of its runtime."""

import ast
from pathlib import Path

import pytest

import ssdfl.mesh

SIMULATED = (
    *(
        "agreement",
        "course",
        "device_engine",
        "editions",
        "evidence",
        "facts",
        "first_plan",
        "flood",
    ),
    *(
        "gathering",
        "holdings",
        "membership",
        "neighbours",
        "newcomer",
        "node",
        "outbox",
        "patience",
    ),
    *("shelf", "signing"),
)


@pytest.mark.parametrize("module", SIMULATED)
def test_only_the_runtime_waits_and_starts_threads(module):
    """Locks are fine: they are held for an instant, and nobody waits while holding one."""
    source = (Path(ssdfl.mesh.__file__).parent / f"{module}.py").read_text(encoding="utf-8")
    used = {
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    outside = {name for name in used if name.split(".")[0] in ("time", "threading", "queue")}
    assert outside <= {"threading.Lock"}
    assert "ThreadPoolExecutor" not in source
