"""Change single places of the source, and see whether the tests notice.

    python benchmarks/mutants.py --mutants 150 --seed 1    draw places, then try them
    python benchmarks/mutants.py                           go on with those not tried yet
    python benchmarks/mutants.py --again survived          try the survivors once more
    python benchmarks/mutants.py --show                    print the rate and the survivors

Each mutant changes one operator, constant or condition, drawn at random from all packages. Tests
run in a copy of the repository, so that processes which they start see the change, too: first the
module's doctests and the test files nearest to it (the one that mirrors it, those that mention it
most), then the others that mention it and those of its package, up to the first failure of a test
that passes on the source as it is. Tests known to be slow come after the others, and none begins
when the budget is spent.

Most mutants differ in a function. They are tried in forks of a process that has collected all
tests: each replaces the code of that function, which takes a second instead of ten. What no test
notices there, and whatever runs when a module is imported (constants, defaults, decorators), is
tried again in a process that imports the changed file.

mutants.csv has what was drawn and found. A survivor is judged by hand in the column ``note``:
"equivalent", "speed" or "limit" and why, else it lacks a test. The note of a mutant which survived
until a test was written for it begins with "missed".
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import gc
import importlib
import inspect
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import IO

import pytest

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_suffix(".csv")
LIBRARIES = (
    *("torch", "numpy", "scipy.sparse", "pandas", "pyarrow.parquet", "pydantic", "networkx"),
    *("grpc", "matplotlib.pyplot", "rich", "typer", "scipy.optimize"),
)
"""Loaded once, before a process is forked for each run of tests."""
SKIPPED = re.compile(r"_pb2|__init__|__main__|report/world")  # the last is a map
NEAREST_FILES = 2
ALWAYS = ("tests/test_values.py",)
"""Quick tests of all modules."""
CLOCK_FACTOR = 5
"""How much longer than its CPU seconds a test may take on the clock, on a busy machine."""
SLOW_S = 1.5
"""CPU seconds of tests that wait until quicker ones have passed."""
NO_END = " (did not end)"
MOST_BROKEN = 5
"""Tests of a run that may fail on the source as it is; each is left out from then on."""
EXCUSED = ("equivalent", "speed", "limit")
"""First words of notes on survivors that no test can tell from the source as it is."""
MISSED = "missed"
"""First word of the note on a mutant for which a test was written."""
UNNOTICED = "unnoticed"
"""The verdict on a mutant which no test noticed in memory, until it is tried from its file."""
FAST_FOLDER = Path("/dev/shm")

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


@dataclass
class Mutant:
    """One change of a file, and what was found.

    Attributes:
        place: which of the places of the file that can be changed.
        verdict: "" if not tried, else killed or survived; gone if the line has changed since,
            or `UNNOTICED`.
        by: the test that failed, or that took too long.
        cpu_s: of all tests run on it.
        note: a survivor's judgement, or that it was one.
    """

    file: str
    line: int
    place: int
    before: str
    after: str
    verdict: str = ""
    by: str = ""
    cpu_s: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of a run of tests.

    Attributes:
        failed: the first test that failed; empty if all passed.
        took_s: CPU seconds of each test.
    """

    failed: str
    cpu_s: float
    took_s: dict[str, float]


def places(tree: ast.Module) -> Iterator[tuple[ast.AST, int]]:
    """The nodes that can be changed, each with the number of one of its operators, in order."""
    for node in ast.walk(tree):
        if _is_number(node) or _is_not(node) or (isinstance(node, ast.Name) and node.id in NAMES):
            yield node, 0
        for number, operator in enumerate(_operators(node)):
            if type(operator) in SWAPS and not _joins_paths(node):
                yield node, number


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _is_not(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _joins_paths(node: ast.AST) -> bool:
    """Whether a node is like ``folder / "name"``, whose every change fails at once."""
    return isinstance(node, ast.BinOp) and any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def _operators(node: ast.AST) -> Sequence[ast.AST]:
    if isinstance(node, ast.Compare):
        return node.ops
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        return [node.op]
    return []


class Change(ast.NodeTransformer):
    """Changes one node of a tree; an operator in its expression, as a tree shares operators."""

    def __init__(self, target: ast.AST, number: int) -> None:
        self.target, self.number = target, number

    def visit(self, node: ast.AST) -> ast.AST:
        """The node, or what replaces it."""
        if node is not self.target:
            return self.generic_visit(node)
        if isinstance(node, ast.Constant):
            return ast.copy_location(ast.Constant(_another_number(node.value)), node)
        if isinstance(node, ast.Name):
            return ast.copy_location(ast.Name(NAMES[node.id], node.ctx), node)
        if isinstance(node, ast.UnaryOp):
            return node.operand
        other = SWAPS[type(_operators(node)[self.number])]()
        if isinstance(node, ast.Compare):
            node.ops[self.number] = other  # type: ignore[call-overload]
        else:
            node.op = other  # type: ignore[attr-defined]
        return node


def _another_number(value: object) -> float:
    assert isinstance(value, int | float)
    return not value if isinstance(value, bool) else value + 1


def change(path: Path, place: int) -> tuple[str, str, str]:
    """A file's source with one change, and the line before and after."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    before = ast.unparse(tree).splitlines()
    changed = Change(*list(places(tree))[place]).visit(tree)
    source = ast.unparse(ast.fix_missing_locations(changed))
    pairs = zip(before, source.splitlines(), strict=False)
    old, new = next(((old, new) for old, new in pairs if old != new), ("", ""))
    return source, *_around_difference(old.strip(), new.strip())


def _around_difference(old: str, new: str, width: int = 60) -> tuple[str, str]:
    """Both lines near where they differ."""
    same = next((i for i, pair in enumerate(zip(old, new, strict=False)) if len({*pair}) == 2), 0)
    start = max(0, same - width)
    return old[start : start + 2 * width], new[start : start + 2 * width]


def draw(count: int, seed: int, only: str) -> list[Mutant]:
    """Random places, all of them being equally likely."""
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if SKIPPED.search(file) or only not in file:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        lines = [getattr(node, "lineno", 0) for node, _ in places(tree)]
        found += [Mutant(file, line, place, "", "") for place, line in enumerate(lines)]
    drawn = random.Random(seed).sample(found, min(count, len(found)))
    for mutant in drawn:
        _, mutant.before, mutant.after = change(ROOT / mutant.file, mutant.place)
    return [one for one in drawn if one.before != one.after]


def source_of(mutant: Mutant) -> str:
    """A mutant's source, found again if the file has other places than when it was drawn.

    Raises:
        LookupError: the line is no longer there.
    """
    return _source(mutant.file, mutant.place, mutant.before, mutant.after)


@cache
def _source(file: str, place: int, before: str, after: str) -> str:
    nodes = [node for node, _ in places(ast.parse(_text(ROOT / file)))]
    for near in sorted(range(len(nodes)), key=lambda near: abs(near - place)):
        if not _may_be_in(before, nodes[near]):
            continue
        source, *lines = change(ROOT / file, near)
        if lines == [before, after]:
            return source
    raise LookupError(f"{file}: {before}")


def _may_be_in(line: str, node: ast.AST) -> bool:
    """Whether a part of a line may show a node, of which a long one may be cut off."""
    text = ast.unparse(node)
    return text in line or len(text) > len(line) // 2


def changed_functions(before: str, after: str, file: str) -> dict[str, CodeType]:
    """The code of functions that differ, with those inside them, by qualified name.

    Empty if anything else differs, or if a name is that of several functions.
    """
    modules = [compile(source, file, "exec") for source in (before, after)]
    if _run_at_import(modules[0]) != _run_at_import(modules[1]):
        return {}
    pairs = zip(*map(_outermost, modules), strict=True)
    changed = [new for old, new in pairs if old != new]
    counts = Counter(code.co_qualname for code in _all_inside(modules[1]))
    codes = {code.co_qualname: code for one in changed for code in (one, *_all_inside(one))}
    if any(counts[code.co_qualname] > 1 for code in changed):
        return {}
    return {name: code for name, code in codes.items() if counts[name] == 1}


def _inside(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _all_inside(code: CodeType) -> Iterator[CodeType]:
    for one in _inside(code):
        yield one
        yield from _all_inside(one)


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_OPTIMIZED)


def _outermost(code: CodeType) -> Iterator[CodeType]:
    """The functions and methods of a module, without those inside them."""
    for one in _inside(code):
        if _is_function(one):
            yield one
        else:
            yield from _outermost(one)


def _run_at_import(code: CodeType) -> list[object]:
    """What a module and its classes do when they are defined."""
    own = [(type(one), repr(one)) for one in code.co_consts if not isinstance(one, CodeType)]
    classes = [one for one in _inside(code) if not _is_function(one)]
    return [code.co_code, code.co_names, own, *map(_run_at_import, classes)]


def functions_by_file() -> dict[str, list[FunctionType]]:
    """All functions there are, by the file that they were defined in."""
    found = defaultdict(list)
    for one in gc.get_objects():
        if type(one) is FunctionType:
            found[one.__code__.co_filename].append(one)
    return found


@cache
def tests_of(file: str, most: int) -> tuple[str, ...]:
    """The test file that mirrors a module or its package, then those that mention it most.

    Of a module that fewer than ``most`` files mention, also those that mention the modules which
    import it. After these ``most`` files come all other tests of its package.
    """
    path = ROOT / file
    tests = ROOT / "tests"
    folder = tests / path.parent.relative_to(ROOT / "src" / "ssdfl")
    names = [path.stem]
    while not folder.is_dir():
        names.append(folder.name)
        folder = folder.parent
    mirrors = [folder / f"test_{name}.py" for name in names]
    ranked = [mirror for mirror in mirrors if mirror.is_file()]
    for words in (_words((path,)), _words(_importers(path))):
        counts = {
            test: len(words.findall(_text(test))) for test in sorted(tests.rglob("test_*.py"))
        }
        mentioning = [test for test in counts if counts[test] and test not in ranked]
        if len(ranked) < most:
            ranked += sorted(
                mentioning, key=lambda test: (not test.is_relative_to(folder), -counts[test])
            )
    nearest = ranked[:most]
    beside = folder.glob("test_*.py") if folder == tests else folder.rglob("test_*.py")
    others = [test for test in sorted(beside) if test not in nearest]
    return tuple(test.relative_to(ROOT).as_posix() for test in (*nearest, *others))


def _words(modules: Sequence[Path]) -> re.Pattern[str]:
    """A pattern of modules' names and of what is public in them."""
    names = [module.stem for module in modules]
    for module in modules:
        names += [
            node.name
            for node in ast.parse(_text(module)).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        ]
    return re.compile(rf"\b({'|'.join(names)})\b")


def _importers(path: Path) -> list[Path]:
    """The modules that import a module of the library."""
    package = re.escape(".".join(path.parent.relative_to(ROOT / "src").parts))
    imported = re.compile(rf"from {package}(\.{path.stem} import| import .*\b{path.stem}\b)")
    modules = sorted((ROOT / "src").rglob("*.py"))
    found = [module for module in modules if imported.search(_text(module))]
    return [module for module in found if module.name != "__init__.py"]


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


class Watch:
    """A plugin of pytest that runs quick tests first, and writes down what came of each.

    Args:
        slow: tests to run after all others.
        limit_s: CPU seconds a test may take, and `CLOCK_FACTOR` times as long on the clock;
            whatever takes longer ends the process.
        budget_s: CPU seconds after which no other test begins.
    """

    def __init__(self, out: IO[str], slow: Set[str], limit_s: float, budget_s: float) -> None:
        self.out, self.slow, self.limit_s, self.budget_s = out, slow, limit_s, budget_s

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Slow tests come last, the others as they were."""
        items.sort(key=lambda item: item.nodeid in self.slow)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Limit the time of a test, and write it down."""
        begun_s = _used_s()
        if begun_s > self.budget_s:
            item.session.shouldstop = "budget"
        self._tell("begun", item.nodeid)
        own_s = int(time.process_time() + self.limit_s) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (own_s, resource.RLIM_INFINITY))
        signal.alarm(int(CLOCK_FACTOR * self.limit_s))
        result = yield
        signal.alarm(0)
        self._tell(f"{_used_s() - begun_s:.2f}", item.nodeid)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write down a failure."""
        if report.failed:
            self._tell("failed", report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Write down a module that cannot be imported."""
        if report.failed:
            self._tell("failed", report.nodeid)

    def _tell(self, what: str, name: str) -> None:
        print(what, name, file=self.out, flush=True)


def run_tests(watch: Watch, run: Callable[[], int]) -> Outcome:
    """Run tests in a process of their own, by a function that returns pytest's exit code."""
    before_s = _used_s(resource.RUSAGE_CHILDREN)
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _end_with(run)
    try:
        _, status = os.waitpid(child, 0)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    watch.out.seek(0)
    told = [tuple(line.rstrip("\n").split(" ", 1)) for line in watch.out]
    failed = next((name for what, name in told if what == "failed"), "")
    if not failed and status:
        begun = told[-1][1] if told and told[-1][0] == "begun" else ""
        failed = f"{begun}{NO_END}" if begun else f"status {status}"
    took_s = {name: float(what) for what, name in told if what not in ("begun", "failed")}
    return Outcome(failed, round(_used_s(resource.RUSAGE_CHILDREN) - before_s, 1), took_s)


def _end_with(run: Callable[[], int]) -> None:
    """Run and end this process, whatever happens: its parent's blocks are not its own."""
    try:
        with Path(os.devnull).open("w") as null:
            for place in (1, 2):
                os.dup2(null.fileno(), place)
        os._exit(int(run() not in (0, 2, 5)))  # 2: out of budget
    finally:
        os._exit(1)


def pytest_in(copy: Path, words: Sequence[str], plugin: object) -> int:
    """Run pytest in a copy of the repository, importing nothing from beside this file."""
    os.chdir(copy)
    sys.path[:1] = [str(copy / "src"), str(copy / "tests")]
    sys.dont_write_bytecode = False
    base = f"--basetemp={copy.parent / 'base'}"
    plugins = ["-p", "no:cacheprovider", "-p", "no:randomly", "--capture=sys"]
    return pytest.main(["-q", "-x", "--no-header", base, *plugins, *words], plugins=[plugin])


def _sources_last(files: Iterable[str]) -> list[str]:
    """Test files first: they import packages, whose names a module collected alone would hide."""
    return sorted(files, key=lambda file: file.startswith("src/"))


def run_items(items: Sequence[pytest.Item], watch: Watch) -> int:
    """Run collected tests in this process, as pytest does."""
    if not items:
        return 0
    session = items[0].session
    session.config.pluginmanager.register(watch)
    for item, after in zip_longest(items, items[1:]):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.shouldfail or session.shouldstop:
            break
    return 0


def _used_s(*whose: int) -> float:
    """CPU seconds; by default of this process and those it started."""
    used = map(resource.getrusage, whose or (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


@dataclass(frozen=True)
class Limits:
    """What may run on a mutant.

    Attributes:
        test_s: CPU seconds of a test.
        budget_s: CPU seconds of the nearest files, then of the others.
        files: how many that mention it, before the others of its package.
        marks: which tests, as pytest's option ``-m``.
    """

    test_s: float
    budget_s: float
    files: int
    marks: str


class Trial:
    """A copy of the repository in which mutants are tried, each imported from its file."""

    unkilled = "survived"

    def __init__(self, copy: Path, limits: Limits) -> None:
        self.copy, self.limits = copy, limits
        self.passing: dict[str, bool] = {}
        self.slow_file = copy.parent / "slow.txt"
        self.slow_file.touch()
        self.slow = set(self.slow_file.read_text(encoding="utf-8").splitlines())

    def judge(self, mutant: Mutant) -> None:
        """Run tests on a mutant until one fails that passes on the source as it is."""
        tests = tests_of(mutant.file, self.limits.files)
        mutant.verdict, mutant.by, mutant.cpu_s = self.unkilled, "", 0.0
        nearest = (mutant.file, *tests[:NEAREST_FILES])
        for files in (nearest, (*ALWAYS, *tests[NEAREST_FILES:])):
            mutant.by = self._killer(mutant, files)
            if mutant.by:
                mutant.verdict = "killed"
                return

    def _killer(self, mutant: Mutant, files: Sequence[str]) -> str:
        """A test that fails on a mutant only; empty if there is none."""
        for _ in range(MOST_BROKEN):
            broken = {name.removesuffix(NO_END) for name, fine in self.passing.items() if not fine}
            with self._mutated(mutant):
                outcome = self._run(files, mutant, broken)
            mutant.cpu_s = round(mutant.cpu_s + outcome.cpu_s, 1)
            if not outcome.failed or self._passes(outcome.failed, files):
                return outcome.failed
            if "::" not in outcome.failed:
                raise RuntimeError(f"{outcome.failed}: no tests run on the source as it is")
        return ""

    def _run(self, tests: Sequence[str], mutant: Mutant | None, broken: Set[str]) -> Outcome:
        """Run files or tests on a mutant, or on the source as it is, without any limit then."""
        budget_s = self.limits.budget_s if mutant else math.inf
        with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
            watch = Watch(out, self.slow, self.limits.test_s, budget_s)
            outcome = run_tests(watch, lambda: self._child(tests, mutant, broken, watch))
        slow = {name for name, took_s in outcome.took_s.items() if took_s > SLOW_S} - self.slow
        self.slow |= slow
        with self.slow_file.open("a", encoding="utf-8") as lines:
            lines.writelines(f"{name}\n" for name in slow)
        return outcome

    def _child(
        self, tests: Sequence[str], mutant: Mutant | None, broken: Set[str], watch: Watch
    ) -> int:
        """What the process of a run does."""
        words = ["-m", self.limits.marks, "--doctest-modules", *_sources_last(tests)]
        if not mutant and "::" not in tests[0]:
            words.append("--collect-only")
        return pytest_in(self.copy, [*words, *(f"--deselect={name}" for name in broken)], watch)

    @contextlib.contextmanager
    def _mutated(self, mutant: Mutant) -> Iterator[None]:
        path = self.copy / mutant.file
        original = path.read_text(encoding="utf-8")
        self._write(path, source_of(mutant))
        yield
        self._write(path, original)

    def _passes(self, name: str, files: Sequence[str]) -> bool:
        """Whether a test passes on the source as it is; if it is a module, whether it imports."""
        if name not in self.passing:
            tests = [name.removesuffix(NO_END)] if "::" in name else files
            self.passing[name] = not self._run(tests, None, set()).failed
        return self.passing[name]

    def _write(self, path: Path, source: str) -> None:
        """Replace a file, and forget what was compiled from the one before."""
        path.write_text(source, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()


class TrialInMemory(Trial):
    """Mutants tried by replacing the code of functions in forks of this process.

    Files change, too, for processes that tests start.

    Args:
        items: the tests collected here, by file.
    """

    unkilled = UNNOTICED

    def __init__(
        self, copy: Path, limits: Limits, items: Mapping[str, Sequence[pytest.Item]]
    ) -> None:
        super().__init__(copy, limits)
        self.items = items
        self.by_name = {item.nodeid: item for item in chain.from_iterable(items.values())}
        self.functions = functions_by_file()

    def judge(self, mutant: Mutant) -> None:
        """Run tests on a mutant, if it only changes functions that are here."""
        if self._replacements(mutant):
            super().judge(mutant)
        else:
            mutant.verdict = self.unkilled

    def _replacements(self, mutant: Mutant) -> list[tuple[FunctionType, CodeType]]:
        path = self.copy / mutant.file
        before = ast.unparse(ast.parse((ROOT / mutant.file).read_text(encoding="utf-8")))
        codes = changed_functions(before, source_of(mutant), str(path))
        here = self.functions.get(str(path), [])
        known = [one for one in here if one.__code__.co_qualname in codes]
        return [(one, codes[one.__code__.co_qualname]) for one in known]

    def _child(
        self, tests: Sequence[str], mutant: Mutant | None, broken: Set[str], watch: Watch
    ) -> int:
        for function, code in self._replacements(mutant) if mutant else []:
            function.__code__ = code
        items = self._chosen(tests)
        return run_items([item for item in items if item.nodeid not in broken], watch)

    def _chosen(self, tests: Iterable[str]) -> list[pytest.Item]:
        """Tests by their names or files, slow ones last."""
        chosen: list[pytest.Item] = []
        for name in tests:
            chosen += [self.by_name[name]] if "::" in name else self.items.get(name, [])
        return sorted(chosen, key=lambda item: item.nodeid in self.slow)


class Collector:
    """A plugin of pytest that tries mutants in memory once all tests are collected."""

    def __init__(self, record: Path, only: str, copy: Path, limits: Limits, out: IO[str]) -> None:
        self.record, self.only, self.copy, self.limits, self.out = record, only, copy, limits, out

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Tell which tests cannot run."""
        if report.failed:
            print("not collected:", report.nodeid, report.longrepr, file=self.out, flush=True)

    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Try mutants instead of running the tests."""
        items = defaultdict(list)
        for item in session.items:
            items[item.nodeid.split("::")[0]].append(item)
        gc.collect()
        trial = TrialInMemory(self.copy, self.limits, items)
        gc.freeze()  # what is open here must not be closed by a test
        try_all(self.record, ("",), self.only, trial, self.out)
        os._exit(0)  # without pytest's end, which would count tests that are not collected


def copy_of_repository(folder: Path) -> Path:
    """A copy of all files that git knows."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    for file in files.stdout.decode().split("\0"):
        source = ROOT / file
        if source.is_file():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / file)
    return folder


def read_record(path: Path) -> list[Mutant]:
    """The mutants of a record; none if there is none."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    numbers = {"line": int, "place": int, "cpu_s": float}
    return [
        Mutant(**{key: numbers.get(key, str)(text) for key, text in row.items()}) for row in rows
    ]


def write_record(path: Path, mutants: Sequence[Mutant]) -> None:
    """Write all mutants to a file that is whole at any time."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, [one.name for one in fields(Mutant)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, mutants))
    temporary.replace(path)


def show(mutants: Sequence[Mutant]) -> None:
    """Print what survived, and the rates before and after tests were written for survivors."""
    tried = [one for one in mutants if one.verdict in ("killed", "survived")]
    killed = [one for one in tried if one.verdict == "killed"]
    left = [one for one in tried if one.verdict != "killed"]
    excused = [one for one in left if one.note.startswith(EXCUSED)]
    for one in left:
        print(f"{one.file}:{one.line} {one.verdict}: {one.before}  →  {one.after}  [{one.note}]")
    print(dict(Counter(one.verdict or "untried" for one in mutants)), f"of {len(mutants)} drawn")
    undecided = sum(one.verdict in ("", UNNOTICED) for one in mutants)
    if undecided:
        print(f"{undecided} are not decided yet; the rates leave them out")
    print("excused:", dict(Counter(one.note.split(":")[0] for one in excused)))
    counted = len(tried) - len(excused)
    at_first = [one for one in killed if not one.note.startswith(MISSED)]
    for what, found in (("at first", at_first), ("with tests written since", killed)):
        rate = len(found) / max(1, counted)
        print(f"killed {what}: {len(found)} of {counted}, those excused aside: {rate:.1%}")


def forget(record: Path, verdict: str, only: str) -> None:
    """Let mutants with a verdict be tried once more, unless their note excuses them."""
    mutants = read_record(record)
    for one in mutants:
        if one.verdict == verdict and only in one.file and not one.note.startswith(EXCUSED):
            one.verdict, one.by, one.cpu_s = "", "", 0.0
    write_record(record, mutants)


def try_all(record: Path, verdicts: Sequence[str], only: str, trial: Trial, out: IO[str]) -> None:
    """Try the mutants of a record that have certain verdicts, those tried in no way first."""
    numbered = enumerate(read_record(record))
    for number, mutant in sorted(numbered, key=lambda pair: pair[1].cpu_s):
        if mutant.verdict not in verdicts or only not in mutant.file:
            continue
        begun_s = time.monotonic()
        try:
            trial.judge(mutant)
        except LookupError:
            mutant.verdict = "gone"
        mutants = read_record(record)  # with notes that were written meanwhile
        mutants[number] = replace(mutant, note=mutants[number].note)
        write_record(record, mutants)
        took = f"{mutant.cpu_s} CPU s in {time.monotonic() - begun_s:.0f} s"
        where = f"{mutant.file}:{mutant.line}"
        print(number, mutant.verdict, where, mutant.by, took, file=out, flush=True)


def try_in_memory(record: Path, only: str, copy: Path, limits: Limits) -> None:
    """Try mutants that have no verdict in a process that collects their tests.

    Raises:
        RuntimeError: that process failed.
    """
    mutants = [one for one in read_record(record) if not one.verdict and only in one.file]
    files = [file for one in mutants for file in (one.file, *tests_of(one.file, limits.files))]
    words = ["-m", limits.marks, "--continue-on-collection-errors", "--doctest-modules"]
    words += _sources_last(dict.fromkeys((*files, *ALWAYS)))
    if not mutants:
        return
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as out:
        collector = Collector(record, only, copy, limits, out)
        child = os.fork()
        if child == 0:
            _end_with(lambda: pytest_in(copy, words, collector))
        try:
            _, status = os.waitpid(child, 0)
        except BaseException:
            os.kill(child, signal.SIGTERM)
            raise
    if status:
        raise RuntimeError(f"status {status} of the process that tries mutants in memory")


def try_untried(record: Path, only: str, limits: Limits) -> None:
    """Try mutants that have no verdict, in memory if possible, in a copy that is deleted after."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["MPLBACKEND"] = "Agg"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for library in LIBRARIES:
        importlib.import_module(library)
    with tempfile.TemporaryDirectory(dir=FAST_FOLDER if FAST_FOLDER.is_dir() else None) as folder:
        copy = copy_of_repository(Path(folder).resolve() / "copy")
        try_in_memory(record, only, copy, limits)
        try_all(record, (UNNOTICED,), only, Trial(copy, limits), sys.stdout)


def main() -> None:
    """Draw, try or show mutants."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mutants", type=int, default=0, help="how many to draw anew")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="part of the paths of the modules to change")
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--again", default="", metavar="VERDICT", help="try those with a verdict")
    parser.add_argument("--limit", type=float, default=60, help="CPU seconds of a test")
    parser.add_argument(
        "--budget", type=float, default=60, help="CPU seconds of the nearest files, then the others"
    )
    parser.add_argument("--files", type=int, default=6, help="most files that mention a module")
    parser.add_argument("--marks", default="not mesh", help="which tests to run, as pytest's -m")
    parser.add_argument("--show", action="store_true", help="print what was found, and no more")
    options = parser.parse_args()
    record = options.record.absolute()
    if options.mutants:
        write_record(record, draw(options.mutants, options.seed, options.only))
    if options.again:
        forget(record, options.again, options.only)
    if not options.show:
        limits = Limits(options.limit, options.budget, options.files, options.marks)
        try_untried(record, options.only, limits)
    show(read_record(record))


if __name__ == "__main__":
    main()
