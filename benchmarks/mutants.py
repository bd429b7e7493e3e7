"""Change single places of the source, and see whether the tests notice.

    python benchmarks/mutants.py --mutants 150 --seed 1    draw places, then try them
    python benchmarks/mutants.py                           go on with those not tried yet
    python benchmarks/mutants.py --again survived          try the survivors once more
    python benchmarks/mutants.py --show                    print the rate and the survivors

Each mutant changes one operator, constant or condition, drawn at random from all packages. It is
tried in a copy of the repository, so that processes which tests start see it, too: first the
module's doctests, then the test file that mirrors it, then the files that mention it most, up to
the first failure of a test that passes on the source as it is. mutants.csv has what was drawn and
found. A survivor is judged by hand in the column ``note``: "equivalent", "speed" or "limit" and
why, else it lacks a test.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import importlib
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
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_suffix(".csv")
LIBRARIES = (
    *("torch", "numpy", "scipy.sparse", "pandas", "pyarrow.parquet", "pydantic", "networkx"),
    *("grpc", "pytest", "matplotlib.pyplot"),
)
"""Loaded once, before a process is forked for each run of tests."""
SKIPPED = re.compile(r"_pb2|__init__|__main__|report/world")  # the last is a map
MOST_FILES, NEAREST_FILES = 6, 2
ALWAYS = ("tests/test_values.py",)
"""Quick tests of all modules."""
CLOCK_FACTOR = 60
"""How much longer than its CPU seconds a run may take on the clock, on a busy machine."""
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
        verdict: "" if not tried, else killed or survived.
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
    """What came of a run of tests; ``failed`` names a test, and is empty if all passed."""

    failed: str
    cpu_s: float


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
    """The test file that mirrors a module, then those that mention it or its names most."""
    path = ROOT / file
    tests = ROOT / "tests"
    folder = tests / path.parent.relative_to(ROOT / "src" / "ssdfl")
    names = [
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    words = re.compile(rf"\b({'|'.join([path.stem, *names])})\b")
    counts = {
        test: len(words.findall(test.read_text(encoding="utf-8")))
        for test in sorted(tests.rglob("test_*.py"))
    }
    mirror = folder / f"test_{path.stem}.py"
    ranked = sorted(
        (test for test in counts if counts[test] or test == mirror),
        key=lambda test: (test != mirror, not test.is_relative_to(folder), -counts[test]),
    )
    return tuple(test.relative_to(ROOT).as_posix() for test in ranked[:MOST_FILES])


class FirstFailure:
    """A plugin of pytest that tells the first test that fails."""

    def __init__(self, out: int) -> None:
        self.out = out

    def pytest_runtest_logreport(self, report: object) -> None:
        """Write down a failure."""
        if getattr(report, "failed", False):
            os.write(self.out, f"{getattr(report, 'nodeid', '')}\n".encode())

    def pytest_collectreport(self, report: object) -> None:
        """Write down a module that cannot be imported."""
        self.pytest_runtest_logreport(report)


def run_tests(copy: Path, words: Sequence[str], limit_s: float) -> Outcome:
    """Run tests in a process of their own.

    Args:
        limit_s: of CPU; `CLOCK_FACTOR` times as long on the clock.
    """
    reader, writer = os.pipe()
    before = _children_s()
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit_s), int(limit_s) + 5))
        signal.alarm(int(CLOCK_FACTOR * limit_s))
        _child(copy, words, writer)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with os.fdopen(reader) as lines:
        failed = lines.readline().strip()
    failed = failed or ("" if status == 0 else f"{words[-1]} (status {status})")
    return Outcome(failed, round(_children_s() - before, 1))


def _child(copy: Path, words: Sequence[str], writer: int) -> None:
    """Run tests and end this process, whatever happens: its parent's blocks are not its own."""
    import pytest

    try:
        os.chdir(copy)
        sys.path[:0] = [str(copy / "src"), str(copy / "tests")]
        with Path(os.devnull).open("w") as null:
            for place in (1, 2):
                os.dup2(null.fileno(), place)
        quiet = ["-q", "-x", "--no-header", "-p", "no:cacheprovider", "-p", "no:randomly"]
        plugin = FirstFailure(writer)
        code = pytest.main([*quiet, "-m", "not mesh", *words], plugins=[plugin])
        os._exit(int(code not in (0, 5)))
    except BaseException as error:
        os.write(writer, repr(error).encode())
    finally:
        os._exit(1)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Trial:
    """A copy of the repository in which mutants are tried."""

    def __init__(self, copy: Path, limit_s: float) -> None:
        self.copy, self.limit_s = copy, limit_s
        self.passing: dict[str, bool] = {}

    def judge(self, mutant: Mutant) -> None:
        """Run tests on a mutant until one fails that passes on the source as it is."""
        tests = tests_of(mutant.file)
        mutant.verdict, mutant.by, mutant.cpu_s = "survived", "", 0.0
        nearest = ("--doctest-modules", mutant.file, *ALWAYS, *tests[:NEAREST_FILES])
        for words in filter(None, (nearest, tests[NEAREST_FILES:])):
            mutant.by = self._killer(mutant, words)
            if mutant.by:
                mutant.verdict = "killed"
                return

    def _killer(self, mutant: Mutant, words: Sequence[str]) -> str:
        """A test that fails on a mutant only; empty if there is none."""
        for _ in range(MOST_BROKEN):
            skipped = [f"--deselect={name}" for name, passes in self.passing.items() if not passes]
            outcome = self._run(mutant, [*skipped, *words])
            mutant.cpu_s = round(mutant.cpu_s + outcome.cpu_s, 1)
            if not outcome.failed or self._passes(outcome.failed, words):
                return outcome.failed
            if "::" not in outcome.failed:  # all of them take too long
                break
        return ""

    def _run(self, mutant: Mutant, words: Sequence[str]) -> Outcome:
        path = self.copy / mutant.file
        original = path.read_text(encoding="utf-8")
        self._write(path, source_of(mutant))
        outcome = run_tests(self.copy, words, self.limit_s)
        self._write(path, original)
        return outcome

    def _passes(self, name: str, words: Sequence[str]) -> bool:
        """Whether a test passes on the source as it is; if it has no name, whether all do."""
        if name not in self.passing:
            again = ["--doctest-modules", name] if "::" in name else words
            self.passing[name] = not run_tests(self.copy, again, self.limit_s).failed
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
    tried = [one for one in mutants if one.verdict]
    left = [one for one in tried if one.verdict != "killed"]
    excused = [one for one in left if one.note.startswith(EXCUSED)]
    for one in left:
        print(f"{one.file}:{one.line} {one.verdict}: {one.before}  →  {one.after}  [{one.note}]")
    print(dict(Counter(one.verdict for one in tried)), f"of {len(mutants)} drawn")
    counted = len(tried) - len(excused)
    rate = (len(tried) - len(left)) / max(1, counted)
    print(f"killed {len(tried) - len(left)} of {counted}, {len(excused)} excused aside: {rate:.1%}")


def try_all(record: Path, again: str, limit_s: float) -> None:
    """Try the mutants of a record that have no verdict, or a certain one and no note."""
    mutants = read_record(record)
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        trial = Trial(copy_of_repository(Path(folder)), limit_s)
        for number, mutant in enumerate(mutants):
            if mutant.verdict != again or mutant.note:
                continue
            begun_s = time.monotonic()
            trial.judge(mutant)
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
    parser.add_argument("--limit", type=float, default=150, help="CPU seconds of a test file")
    parser.add_argument("--show", action="store_true", help="print what was found, and no more")
    options = parser.parse_args()
    record = options.record.absolute()
    if options.mutants:
        write_record(record, draw(options.mutants, options.seed, options.only))
    if not options.show:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        os.environ["MPLBACKEND"] = "Agg"
        for library in LIBRARIES:
            importlib.import_module(library)
        try_all(record, options.again, options.limit)
    show(read_record(record))


if __name__ == "__main__":
    main()
