"""docs/paper.md leads from every label of the paper to code that names it, and to real tests."""

import ast
import inspect
import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
PREFIXES = "eq|alg|thm|coro|ass|tab|fig"
LABEL = re.compile(rf"(?<![\w:/-])(?:{PREFIXES}):[a-zA-Z]\w*")
RANGE = re.compile(r"`(\w+:\w*?)(\d+)` …\s+`\1(\d+)`")


@dataclass(frozen=True)
class Row:
    """A row of the page: every code object names every label, every test exists."""

    labels: tuple[str, ...]
    code: tuple[str, ...]
    tests: tuple[str, ...]


def rows():
    for line in PAGE.splitlines():
        if re.match(rf"\| `(?:{PREFIXES}):", line):
            labels, _, code, tests = (
                re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[1:-1]
            )
            yield Row(tuple(labels), tuple(code), tuple(tests))


ROWS = list(rows())
MAPPED = {label for row in ROWS for label in row.labels}


def labels_in(text):
    """Labels, and those between the ends of a range such as "`eq:a_1` … `eq:a_4`"."""
    ranges = (
        {f"{stem}{number}" for number in range(int(first), int(last) + 1)}
        for stem, first, last in RANGE.findall(text)
    )
    return set(LABEL.findall(text)).union(*ranges)


def text_of(code):
    """What a file says, or the docstrings of an object and its module."""
    if code.endswith(".toml"):
        return (ROOT / code).read_text(encoding="utf-8")
    module_name, _, path = code.partition(":")
    found = module = import_module(f"ssdfl.{module_name}")
    for name in path.split(".") if path else ():
        found = inspect.getattr_static(found, name)
    return f"{module.__doc__}\n{found.__doc__}"


@cache
def names_of_tests(file):
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_page_has_as_many_labels_of_each_kind_as_the_paper():
    counts = re.findall(rf"^\| `({PREFIXES})` \| [^|]+ \| (\d+) \|$", PAGE, re.M)
    assert len(counts) == len(PREFIXES.split("|"))
    for prefix, count in counts:
        assert sum(label.startswith(f"{prefix}:") for label in MAPPED) == int(count), prefix


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.labels[0])
def test_code_names_its_labels_and_tests_exist(row):
    assert row.code
    assert row.tests
    for code in row.code:
        assert set(row.labels) <= labels_in(text_of(code)), code
    for test in row.tests:
        file, _, name = test.partition("::")
        assert name in names_of_tests(file), test


def test_nobody_names_a_label_that_the_paper_does_not_have():
    for folder, pattern in (("src", "*.py"), ("docs", "*.md"), ("reproduce", "*.toml")):
        for file in (ROOT / folder).rglob(pattern):
            unknown = labels_in(file.read_text(encoding="utf-8")) - MAPPED
            assert not unknown, f"{file.relative_to(ROOT)}: {sorted(unknown)}"


def test_ranges_are_read_with_what_lies_between():
    assert labels_in("`eq:step2` …\n    `eq:step4`, `eq:other`") == {
        "eq:step2",
        "eq:step3",
        "eq:step4",
        "eq:other",
    }
