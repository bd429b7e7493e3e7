"""Only registries compare names of methods and engines; other code asks for traits."""

import ast
from pathlib import Path

import pytest

import ssdfl
from ssdfl.methods import METHODS
from ssdfl.records.engines import ENGINES

NAMES = METHODS.keys() | ENGINES.keys()
SOURCE = Path(ssdfl.__file__).parent
REGISTRIES = (SOURCE / "methods", SOURCE / "records" / "engines.py")
MODULES = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    if not any(path.is_relative_to(registry) for registry in REGISTRIES)
]


def is_name(node):
    return isinstance(node, ast.Constant) and node.value in NAMES


def holds_a_name(node, constants):
    """Whether a node is a registry's name, a literal with one, or a constant set to one."""
    if isinstance(node, ast.Name):
        return node.id in constants
    parts = [node]
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        parts = node.elts
    elif isinstance(node, ast.Dict):
        parts = node.keys
    return any(is_name(part) for part in parts)


def module_constants(tree):
    """The module's constants that hold a registry's name."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and holds_a_name(node.value, ()):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.AnnAssign) and node.value and holds_a_name(node.value, ()):
            found.add(node.target.id)
    return found


def lines_that_compare(text):
    """The lines in which a name of a registry is compared."""
    tree = ast.parse(text)
    constants = module_constants(tree)
    lines = []
    for node in ast.walk(tree):
        compared = []
        if isinstance(node, ast.Compare):
            compared = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            compared = [node.value]
        if any(holds_a_name(one, constants) for one in compared):
            lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_name_is_compared(path):
    assert lines_that_compare(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        'method == "pdfl"',
        '"mesh" != engine',
        'name in ("sdfl", "pdfl")',
        '"ssdfl" in experiment.methods',
        'method not in ["central"]',
        'one.methods == ("ssdfl",)',
        'x = 1 if engine == "local" else 2',
        'match engine:\n    case "local" | "mesh":\n        pass',
        'REFERENCE = "central"\nwrong = method == REFERENCE',
        'PLANLESS: tuple[str, ...] = ("sdfl", "pdfl")\nwrong = method in PLANLESS',
        'method in {"stc": 1}',
    ],
)
def test_the_check_finds_comparisons(text):
    assert lines_that_compare(text)


@pytest.mark.parametrize(
    "text",
    [
        "method in METHODS",
        'find("pdfl").needs_plan',
        'name == "bounds"',
        'methods = ("sdfl", "pdfl")',
    ],
)
def test_the_check_lets_others_pass(text):
    assert lines_that_compare(text) == []
