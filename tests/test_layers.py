"""Imports go downwards only, and torch is used from learning to mesh."""

import ast
from pathlib import Path

import pytest

import ssdfl

LAYERS = (
    "graph",
    "theory",
    "clusters",
    "methods",
    "records",
    "learning",
    "engine",
    "preparation",
    "mesh",
    "experiments",
    "report",
    "cli",
)
BASE = {"arrays", "errors", "files", "memo", "rng", "specs", ""}
SOURCE = Path(ssdfl.__file__).parent
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE)


def imported_names(path):
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            if node.module == "ssdfl":
                yield from (f"ssdfl.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_downwards(path):
    layer = path.relative_to(SOURCE).parts[0]
    allowed = BASE | set(LAYERS[: LAYERS.index(layer) + 1])
    for name in imported_names(path):
        root, _, rest = name.partition(".")
        if root == "ssdfl":
            assert rest.split(".")[0] in allowed, f"{layer} imports {name}"
        if root in ("torch", "safetensors"):
            assert layer in ("learning", "engine", "mesh"), f"{layer} imports {name}"


def test_every_package_is_a_layer():
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages == set(LAYERS)


@pytest.mark.parametrize("name", sorted(ssdfl.__all__))
def test_public_names_exist(name):
    assert getattr(ssdfl, name) is not None


def test_unknown_public_name():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ssdfl.nonsense
