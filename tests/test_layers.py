"""Imports go downwards only, and torch is used from learning to mesh."""

import imports
import pytest

import ssdfl

LAYERS = tuple(imports.LAYERS)
FILES = imports.source_files()
TORCH_LAYERS = ("learning", "engine", "mesh")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(imports.SOURCE)))
def test_imports_go_downwards(path):
    order = (*LAYERS, "base")
    for one in imports.find_imports(path):
        if one.imported:
            assert one.imported in order, f"{one.importer} imports {one.name}, which is in no layer"
            assert order.index(one.importer) <= order.index(one.imported), (
                f"imports {one.name} upwards"
            )
        if one.name.split(".")[0] in ("torch", "safetensors"):
            assert one.importer in TORCH_LAYERS, f"{one.importer} imports {one.name}"


def test_every_package_is_a_layer_and_every_other_module_is_base():
    packages = {path.parent.name for path in imports.SOURCE.glob("*/__init__.py")}
    modules = {path.stem for path in imports.SOURCE.glob("*.py") if path.name not in imports.FACADE}
    assert packages == set(LAYERS)
    assert modules == set(imports.BASE)


def test_the_drawing_is_up_to_date():
    assert imports.DRAWING.read_text(encoding="utf-8") == imports.drawing(), "run: make imports"


def test_every_package_imports_base():
    """The drawing says so instead of showing these arrows."""
    found = (one for path in FILES for one in imports.find_imports(path))
    users = {arrow.importer for arrow in imports.find_arrows(found) if arrow.imported == "base"}
    assert users == set(LAYERS)


def test_an_arrow_is_lazy_if_all_its_imports_are(tmp_path, monkeypatch):
    monkeypatch.setattr(imports, "SOURCE", tmp_path)
    (tmp_path / "cli").mkdir()
    path = tmp_path / "cli" / "main.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "from ssdfl import graph\n"
        "from ssdfl.errors import InputError\n"
        "if TYPE_CHECKING:\n    import ssdfl.theory.bounds\n"
        "def run():\n    import torch\n"
        "    from ssdfl.graph import Network\n    from ssdfl.mesh import x\n"
    )
    assert imports.find_arrows(imports.find_imports(path)) == [
        ("cli", "base", False), ("cli", "graph", False),
        ("cli", "mesh", True), ("cli", "theory", True),
    ]  # fmt: skip


def test_relative_imports_are_refused(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("from . import other\n")
    with pytest.raises(ValueError, match="relative import"):
        list(imports.find_imports(path))


@pytest.mark.parametrize("name", sorted(ssdfl.__all__))
def test_public_names_exist(name):
    assert getattr(ssdfl, name) is not None


def test_unknown_public_name():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ssdfl.nonsense
