"""Change single places of the source and see whether tests notice.

    python benchmarks/mutants.py

Each mutant changes one operator, constant or condition of one module, drawn at random from all
packages. Only the tests that mirror the module run on it, in a forked process that has already
loaded the other libraries. A mutant is killed if a test fails or takes too long. Judge the printed
survivors one by one: some are equivalent, or change only speed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import importlib.abc
import importlib.util
import io
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = ROOT / "src", ROOT / "tests"
LIBRARIES = ("torch", "numpy", "scipy.sparse", "pandas", "pyarrow.parquet", "pytest", "grpc")
SKIPPED = re.compile(r"_pb2|__init__|__main__|report/world")  # the last is a map
MOST_FILES = 3

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        place: which of the places of the module that can be changed.
    """

    path: Path
    place: int

    @property
    def module(self) -> str:
        """The module's name."""
        return ".".join(self.path.relative_to(SOURCE).with_suffix("").parts)


def places(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes that can be changed, in order."""
    for node in ast.walk(tree):
        if (
            type(node) in SWAPS
            or _is_number(node)
            or (isinstance(node, ast.Name) and node.id in NAMES)
            or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
        ):
            yield node


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


class Change(ast.NodeTransformer):
    """Changes one node of a tree."""

    def __init__(self, target: ast.AST) -> None:
        self.target = target

    def visit(self, node: ast.AST) -> ast.AST:
        """The node, or what replaces it."""
        if node is not self.target:
            return self.generic_visit(node)
        if isinstance(node, ast.Constant):
            value = not node.value if isinstance(node.value, bool) else node.value + 1  # type: ignore[operator]
            return ast.copy_location(ast.Constant(value), node)
        if isinstance(node, ast.Name):
            return ast.copy_location(ast.Name(NAMES[node.id], node.ctx), node)
        if isinstance(node, ast.UnaryOp):
            return node.operand
        return SWAPS[type(node)]()


def mutated(mutant: Mutant) -> tuple[str, str]:
    """The source of a mutant, and the lines that differ."""
    tree = ast.parse(mutant.path.read_text(encoding="utf-8"))
    before = ast.unparse(tree).splitlines()
    after = ast.unparse(
        ast.fix_missing_locations(Change(list(places(tree))[mutant.place]).visit(tree))
    )
    changed = [
        (old, new) for old, new in zip(before, after.splitlines(), strict=False) if old != new
    ]
    old, new = changed[0] if changed else ("", "")
    return after, f"{old.strip()[:90]}  →  {new.strip()[:90]}"


def draw(count: int, seed: int, only: str) -> list[Mutant]:
    """Random places, all modules' places being equally likely."""
    paths = [
        path
        for path in sorted(SOURCE.rglob("*.py"))
        if not SKIPPED.search(str(path)) and only in str(path)
    ]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    everywhere = [
        Mutant(path, i) for path, tree in trees.items() for i in range(len(list(places(tree))))
    ]
    return random.Random(seed).sample(everywhere, min(count, len(everywhere)))


def tests_of(path: Path) -> list[Path]:
    """The test file that mirrors a module, and those of its package that mention it most."""
    folder = TESTS / path.parent.relative_to(SOURCE / "ssdfl")
    names = [
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    words = re.compile(rf"\b({'|'.join([path.stem, *names])})\b")
    found = sorted(folder.glob("test_*.py"))
    counts = {test: len(words.findall(test.read_text(encoding="utf-8"))) for test in found}
    mirror = folder / f"test_{path.stem}.py"
    ranked = sorted(
        (test for test in found if counts[test]), key=lambda test: (test != mirror, -counts[test])
    )
    return ranked[:MOST_FILES]


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from changed source."""

    def __init__(self, module: str, path: Path, source: str) -> None:
        self.module, self.path, self.source = module, path, source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """How to import a module, if it is the changed one."""
        if fullname != self.module:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed source."""
        exec(compile(self.source, str(self.path), "exec"), module.__dict__)


def is_killed(finder: Finder | None, tests: Sequence[Path], limit_s: int) -> bool:
    """Whether tests fail in a process of their own; without a finder, on the source as it is."""
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.alarm(limit_s)  # ends it, which counts as a failure
        os._exit(_run_tests(finder, tests))
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return status != 0


def _run_tests(finder: Finder | None, tests: Sequence[Path]) -> int:
    import pytest

    if finder is not None:
        sys.meta_path.insert(0, finder)
    words = [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        "-m",
        "not mesh",
        "--no-header",
    ]
    null = os.open(os.devnull, os.O_WRONLY)
    for place in (1, 2):
        os.dup2(null, place)
    with contextlib.redirect_stdout(io.StringIO()):
        return int(pytest.main([*words, *map(str, tests)]) not in (0, 5))


@cache
def fails_anyway(tests: tuple[Path, ...], limit_s: int) -> bool:
    """Whether tests fail on the source as it is, so that they prove nothing."""
    return is_killed(None, tests, limit_s)


def verdict_on(mutant: Mutant, source: str, limit_s: int) -> str:
    """What the tests say of a mutant."""
    tests = tuple(tests_of(mutant.path))
    if not tests:
        return "NO TESTS"
    if not is_killed(Finder(mutant.module, mutant.path, source), tests, limit_s):
        return "SURVIVED"
    return "FAILS ANYWAY" if fails_anyway(tests, limit_s) else "killed"


def main() -> None:
    """Try mutants and print the survivors."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mutants", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="part of the paths of the modules to change")
    parser.add_argument(
        "--limit", type=int, default=300, help="seconds that the tests of a mutant may take"
    )
    options = parser.parse_args()
    os.chdir(ROOT)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path[:0] = [str(SOURCE), str(TESTS)]
    for library in LIBRARIES:
        importlib.import_module(library)
    verdicts: Counter[str] = Counter()
    for number, mutant in enumerate(draw(options.mutants, options.seed, options.only)):
        source, change = mutated(mutant)
        started = time.monotonic()
        verdict = verdict_on(mutant, source, options.limit)
        verdicts[verdict] += 1
        print(
            f"{number} {verdict} {mutant.module} {change} ({time.monotonic() - started:.0f} s)",
            flush=True,
        )
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))


if __name__ == "__main__":
    main()
