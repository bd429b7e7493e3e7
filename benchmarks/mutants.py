"""Change single places of the source, and see whether the tests notice.

    python benchmarks/mutants.py --mutants 150 --seed 1    draw places, then try them
    python benchmarks/mutants.py                           go on with those not tried yet
    python benchmarks/mutants.py --again survived          try the survivors once more
    python benchmarks/mutants.py --show                    print the rate and the survivors

Each mutant changes one operator, constant or condition, drawn at random from all packages. It is
tried in a copy of the repository, so that processes which tests start see it, too: first the
module's doctests, then the test file that mirrors it, then the files that mention it most, up to
the first failure of a test that passes on the source as it is. Tests known to be slow come after
the others, and none begins when the budget is spent. mutants.csv has what was drawn and
found. A survivor is judged by hand in the column ``note``: "equivalent", "speed" or "limit" and
why, else it lacks a test.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import importlib
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
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
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
MOST_FILES, NEAREST_FILES = 6, 2
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
IN_MEMORY = Path("/dev/shm")

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
        verdict: "" if not tried, else killed or survived; gone if the line has changed since.
        by: the test that failed, or that took too long.
        cpu_s: of all tests run on it.
        note: a survivor's judgement.
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
    path = ROOT / mutant.file
    count = len(list(places(ast.parse(path.read_text(encoding="utf-8")))))
    for place in sorted(range(count), key=lambda place: abs(place - mutant.place)):
        source, before, after = change(path, place)
        if (before, after) == (mutant.before, mutant.after):
            return source
    raise LookupError(f"{mutant.file}: {mutant.before}")


@cache
def tests_of(file: str) -> tuple[str, ...]:
    """The test file that mirrors a module, then those that mention it or its names most.

    Of a module that few tests mention, also those that mention the modules which import it.
    """
    path = ROOT / file
    tests = ROOT / "tests"
    folder = tests / path.parent.relative_to(ROOT / "src" / "ssdfl")
    while not folder.is_dir():
        folder = folder.parent
    mirror = folder / f"test_{path.stem}.py"
    ranked: list[Path] = [mirror] if mirror.is_file() else []
    for words in (_words((path,)), _words(_importers(path))):
        counts = {
            test: len(words.findall(_text(test))) for test in sorted(tests.rglob("test_*.py"))
        }
        mentioning = [test for test in counts if counts[test] and test not in ranked]
        if len(ranked) < NEAREST_FILES:
            ranked += sorted(
                mentioning, key=lambda test: (not test.is_relative_to(folder), -counts[test])
            )
    return tuple(test.relative_to(ROOT).as_posix() for test in ranked[:MOST_FILES])


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


def run_tests(copy: Path, words: Sequence[str], watch: Watch) -> Outcome:
    """Run tests in a process of their own."""
    before_s = _used_s(resource.RUSAGE_CHILDREN)
    child = os.fork()
    if child == 0:
        os.setsid()
        _child(copy, words, watch)
    _, status = os.waitpid(child, 0)
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


def _child(copy: Path, words: Sequence[str], watch: Watch) -> None:
    """Run tests and end this process, whatever happens: its parent's blocks are not its own."""
    try:
        os.chdir(copy)
        sys.path[:0] = [str(copy / "src"), str(copy / "tests")]
        sys.dont_write_bytecode = False
        with Path(os.devnull).open("w") as null:
            for place in (1, 2):
                os.dup2(null.fileno(), place)
        quiet = ["-q", "-x", "--no-header", "-p", "no:cacheprovider", "-p", "no:randomly"]
        code = pytest.main([*quiet, *words], plugins=[watch])
        os._exit(int(code not in (0, 2, 5)))  # 2: out of budget
    finally:
        os._exit(1)


def _used_s(*whose: int) -> float:
    """CPU seconds; by default of this process and those it started."""
    used = map(resource.getrusage, whose or (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


class Trial:
    """A copy of the repository in which mutants are tried.

    Args:
        marks: which tests may run, as pytest's option ``-m``.
    """

    def __init__(self, copy: Path, limit_s: float, budget_s: float, marks: str) -> None:
        self.copy, self.limit_s, self.budget_s, self.marks = copy, limit_s, budget_s, marks
        self.passing: dict[str, bool] = {}
        self.slow: set[str] = set()

    def judge(self, mutant: Mutant) -> None:
        """Run tests on a mutant until one fails that passes on the source as it is."""
        tests = tests_of(mutant.file)
        mutant.verdict, mutant.by, mutant.cpu_s = "survived", "", 0.0
        nearest = ("--doctest-modules", mutant.file, *tests[:NEAREST_FILES])
        for words in (nearest, (*tests[NEAREST_FILES:], *ALWAYS)):
            mutant.by = self._killer(mutant, words, self.budget_s)
            if mutant.by:
                mutant.verdict = "killed"
                return

    def _killer(self, mutant: Mutant, words: Sequence[str], budget_s: float) -> str:
        """A test that fails on a mutant only; empty if there is none."""
        for _ in range(MOST_BROKEN):
            broken = [name.removesuffix(NO_END) for name, fine in self.passing.items() if not fine]
            skipped = [f"--deselect={name}" for name in broken]
            with self._mutated(mutant):
                outcome = self._run([*skipped, *words], budget_s)
            mutant.cpu_s = round(mutant.cpu_s + outcome.cpu_s, 1)
            if not outcome.failed or self._passes(outcome.failed, words):
                return outcome.failed
            if "::" not in outcome.failed:
                raise RuntimeError(f"{outcome.failed}: no tests run on the source as it is")
        return ""

    def _run(self, words: Sequence[str], budget_s: float) -> Outcome:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
            watch = Watch(out, self.slow, self.limit_s, budget_s)
            outcome = run_tests(self.copy, ["-m", self.marks, *words], watch)
        self.slow |= {name for name, took_s in outcome.took_s.items() if took_s > SLOW_S}
        return outcome

    @contextlib.contextmanager
    def _mutated(self, mutant: Mutant) -> Iterator[None]:
        path = self.copy / mutant.file
        original = path.read_text(encoding="utf-8")
        self._write(path, source_of(mutant))
        yield
        self._write(path, original)

    def _passes(self, name: str, words: Sequence[str]) -> bool:
        """Whether a test passes on the source as it is; if it is a module, whether it imports."""
        if name not in self.passing:
            test = name.removesuffix(NO_END)
            again = ["--doctest-modules", test] if "::" in name else ["--collect-only", *words]
            self.passing[name] = not self._run(again, math.inf).failed
        return self.passing[name]

    def _write(self, path: Path, source: str) -> None:
        """Replace a file, and forget what was compiled from the one before."""
        path.write_text(source, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()


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
    """Print the rate, and what survived."""
    tried = [one for one in mutants if one.verdict in ("killed", "survived")]
    left = [one for one in tried if one.verdict != "killed"]
    excused = [one for one in left if one.note.startswith(EXCUSED)]
    for one in left:
        print(f"{one.file}:{one.line} {one.verdict}: {one.before}  →  {one.after}  [{one.note}]")
    print(dict(Counter(one.verdict for one in tried)), f"of {len(mutants)} drawn")
    counted = len(tried) - len(excused)
    rate = (len(tried) - len(left)) / max(1, counted)
    print(f"killed {len(tried) - len(left)} of {counted}, {len(excused)} excused aside: {rate:.1%}")


def try_all(record: Path, again: str, only: str, trial: Trial) -> None:
    """Try the mutants of a record that have no verdict, or a certain one and no note."""
    for number, mutant in enumerate(read_record(record)):
        if mutant.verdict != again or mutant.note or only not in mutant.file:
            continue
        begun_s = time.monotonic()
        try:
            trial.judge(mutant)
        except LookupError:
            mutant.verdict = "gone"
        mutants = read_record(record)  # with notes that were written meanwhile
        mutants[number] = replace(mutant, note=mutants[number].note)
        write_record(record, mutants)
        took_s = time.monotonic() - begun_s
        print(number, mutant, f"({took_s:.0f} s)", flush=True)


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
    parser.add_argument("--marks", default="not mesh", help="which tests to run, as pytest's -m")
    parser.add_argument("--show", action="store_true", help="print what was found, and no more")
    options = parser.parse_args()
    record = options.record.absolute()
    if options.mutants:
        write_record(record, draw(options.mutants, options.seed, options.only))
    if not options.show:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        os.environ["MPLBACKEND"] = "Agg"
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        for library in LIBRARIES:
            importlib.import_module(library)
        with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
            copy = copy_of_repository(Path(folder))
            trial = Trial(copy, options.limit, options.budget, options.marks)
            try_all(record, options.again, options.only, trial)
    show(read_record(record))


if __name__ == "__main__":
    main()
