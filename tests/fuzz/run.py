"""Feed readers inputs that are nearly right, and write down what was tried: ``make fuzz``.

python tests/fuzz/run.py --seconds 60                        a minute of each
python tests/fuzz/run.py --inputs 100000 --out counts.csv    until a file counts that many of each
python tests/fuzz/run.py --show tests/fuzz/record.csv        a recorded run as a table

A target and a number determine an input, so an interrupted run continues where its file ends.
A reader may return, or refuse with one of our errors.
Anything else is a failure, and so are more than 2 s or 500 MB: it is kept in tests/fuzz/failures.
"""

import argparse
import csv
import math
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "src")]

from fuzz.targets import EXPECTED, TARGETS, Target  # noqa: E402 - paths first
from ssdfl.errors import InputError  # noqa: E402
from ssdfl.graph import memory  # noqa: E402

LONGEST_S = 2.0
MOST_MEMORY_MB = 500
WATCH_EVERY_S = 0.25
BATCH = 2_000
"""Inputs after which counts are written to the file."""
MOST_DEVICES, MOST_LINKS = 20_000, 200_000
"""Of networks by specs, which may take what they ask for: larger ones are refused here."""
IN_MEMORY = Path("/dev/shm")
FAILURES = TESTS / "fuzz" / "failures"


class HangError(BaseException):
    """A reader took too long; no reader catches it."""


@dataclass
class Count:
    """What was tried on a target."""

    target: str
    inputs: int = 0
    read: int = 0
    refused: int = 0
    failures: int = 0
    cpu_s: float = 0.0
    longest_s: float = 0.0
    memory_mb: float = 0.0


def make_input(name: str, number: int) -> bytes:
    """The input of a number, the same in every run."""
    return TARGETS[name].make(random.Random(f"{name} {number}"))


@contextmanager
def small_networks_only() -> Iterator[None]:
    """Lower the limit on the networks that specs ask for."""
    before = memory.MOST_DEVICES, memory.MOST_LINKS
    memory.MOST_DEVICES, memory.MOST_LINKS = MOST_DEVICES, MOST_LINKS
    try:
        yield
    finally:
        memory.MOST_DEVICES, memory.MOST_LINKS = before


def is_read(target: Target, content: bytes, folder: Path) -> bool:
    """Whether an input is read; False if one of our errors refuses it. Others are raised."""
    try:
        target.read(content, folder)
    except (InputError, *EXPECTED):
        return False
    return True


class Watch:
    """Ends a reader that takes too long, by one timer for all inputs: setting it takes time."""

    def __init__(self) -> None:
        self.begun_s = math.inf

    def __enter__(self) -> "Watch":
        signal.signal(signal.SIGPROF, self._look)
        every_s = min(WATCH_EVERY_S, LONGEST_S)
        signal.setitimer(signal.ITIMER_PROF, every_s, every_s)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _look(self, number: int, frame: object) -> None:
        if time.process_time() - self.begun_s > LONGEST_S:
            self.begun_s = math.inf
            raise HangError


@contextmanager
def quietly() -> Iterator[None]:
    """Without warnings, which readers give of what they ignore."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def fuzz(name: str, inputs: int, seconds: float, first: int = 0) -> Count:
    """Try a number of inputs on a target, or inputs for some seconds."""
    make_input(name, 0)  # what corpora need is not counted
    count, end_s, begun_s = Count(name), time.monotonic() + seconds, time.process_time()
    before_mb = _memory_mb()
    with TemporaryDirectory() as folder, small_networks_only(), quietly(), Watch() as watch:
        while count.inputs < inputs and time.monotonic() < end_s:
            _try_one(first + count.inputs, Path(folder), count, watch)
            count.inputs += 1
            count.memory_mb = round(_memory_mb() - before_mb, 1)
            if count.memory_mb > MOST_MEMORY_MB:
                _keep(name, first + count.inputs - 1, f"{count.memory_mb} MB", count)
                break
    count.cpu_s = round(time.process_time() - begun_s, 1)
    count.longest_s = round(count.longest_s, 3)
    return count


def _try_one(number: int, folder: Path, count: Count, watch: Watch) -> None:
    name = count.target
    content = make_input(name, number)
    begun_s = watch.begun_s = time.process_time()  # other processes may take the core for long
    try:
        read = is_read(TARGETS[name], content, folder)
        count.read += read
        count.refused += not read
    except (Exception, HangError) as error:
        _keep(name, number, f"{type(error).__name__}: {error}", count)
    finally:
        watch.begun_s = math.inf
    count.longest_s = max(count.longest_s, time.process_time() - begun_s)


def _keep(name: str, number: int, reason: str, count: Count) -> None:
    """Keep an input that fails, for a test."""
    count.failures += 1
    FAILURES.mkdir(exist_ok=True)
    (FAILURES / f"{name}-{number}").write_bytes(make_input(name, number))
    print(f"{name} {number}: {reason[:300]}", flush=True)


def _memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def show(path: Path) -> None:
    """Print a recorded run as a table."""
    rows = _recorded(path)
    print("| target | inputs | read | refused | failures | CPU, s | longest, s | memory, MB |")
    print("|---|---|---|---|---|---|---|---|")
    for one in rows:
        numbers = [f"{number:,}" for number in (one.inputs, one.read, one.refused, one.failures)]
        print(
            "|",
            " | ".join([one.target, *numbers]),
            f"| {one.cpu_s} | {one.longest_s} | {one.memory_mb} |",
        )
    print(f"| all | {sum(one.inputs for one in rows):,} |")


def append(path: Path, count: Count) -> None:
    """Add a target's counts to those in a file."""
    rows = {one.target: one for one in _recorded(path)}
    before = rows.get(count.target, Count(count.target))
    rows[count.target] = Count(
        count.target,
        **{
            key: getattr(before, key) + getattr(count, key)
            for key in ("inputs", "read", "refused", "failures")
        },
        cpu_s=round(before.cpu_s + count.cpu_s, 1),
        longest_s=max(before.longest_s, count.longest_s),
        memory_mb=max(before.memory_mb, count.memory_mb),
    )
    temporary = path.with_suffix(".tmp")  # a run may be broken off here
    with temporary.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, [one.name for one in fields(Count)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, rows.values()))
    temporary.replace(path)


def _recorded(path: Path) -> list[Count]:
    """The counts in a file; none if there is none."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as lines:
        return [
            Count(
                row.pop("target"),
                **{key: float(text) if "." in text else int(text) for key, text in row.items()},
            )
            for row in csv.DictReader(lines)
        ]


def main() -> None:
    """Fuzz the targets that the command line names, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "targets", nargs="*", default=list(TARGETS), metavar="target", help=", ".join(TARGETS)
    )
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="of each target, without --out"
    )
    parser.add_argument("--inputs", type=int, default=sys.maxsize, help="of each target")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument(
        "--out", type=Path, help="a CSV file to add the counts to, in which a later run continues"
    )
    parser.add_argument(
        "--show", type=Path, help="print such a file as a table, and do nothing else"
    )
    options = parser.parse_args()
    tempfile.tempdir = str(IN_MEMORY) if IN_MEMORY.is_dir() else None
    if options.show:
        show(options.show)
        return
    if options.out:
        failures = fill(options.targets, options.inputs, options.out)
    else:
        counts = (
            fuzz(name, options.inputs, options.seconds, options.first) for name in options.targets
        )
        failures = sum(map(_printed_failures, counts))
    sys.exit(1 if failures else 0)


def fill(names: Iterable[str], inputs: int, path: Path) -> int:
    """Try inputs, a batch of each target in turn, until a file counts enough; how many failed."""
    failures = 0
    for end in range(BATCH, inputs + BATCH, BATCH):
        for name in names:
            done = _done(path, name)
            if done < min(end, inputs):
                count = fuzz(name, min(end, inputs) - done, math.inf, first=done)
                append(path, count)
                failures += _printed_failures(count)
    return failures


def _done(path: Path, name: str) -> int:
    """How many inputs of a target a file counts."""
    return sum(one.inputs for one in _recorded(path) if one.target == name)


def _printed_failures(count: Count) -> int:
    print(count, flush=True)
    return count.failures


if __name__ == "__main__":
    main()
