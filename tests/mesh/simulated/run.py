"""Run schedules of faults on simulated meshes, and record the outcomes.

python tests/mesh/simulated/run.py --schedules 10000 --first 0     with --out, counts go to a file
python tests/mesh/simulated/run.py --first 26 --schedules 1 --log  one schedule with devices' logs
python tests/mesh/simulated/run.py --show tests/mesh/simulated/record.csv

A number determines a schedule: network, method, times, faults and lies. invariants.py says what
must hold.
"""

import argparse
import csv
import logging
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

TESTS = Path(__file__).parents[2]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "src")]

import torch  # noqa: E402 - paths first

from mesh.simulated.faults import FAULTS, Plan, draw, make_world  # noqa: E402
from mesh.simulated.invariants import check, remixes_from  # noqa: E402
from mesh.simulated.world import simulated  # noqa: E402

LONGEST_S = 600.0
"""Simulated. A device waits 300 s for neighbours at its start, and 60 s at its end."""
COLUMNS = ("what", "schedules", "failures", "events", "steps", "mixed_again", "simulated_s")


@dataclass(frozen=True)
class Outcome:
    """What came of a schedule.

    Attributes:
        failure: what did not hold; empty if all did.
        events: how many things happened in it.
        steps: how many were taken.
        mixed_again: how many of these came so long after the last fault that all must take part.
    """

    plan: Plan
    failure: str
    events: int
    steps: int
    mixed_again: int
    simulated_s: float


def run_schedule(number: int, adaptive: bool = False) -> Outcome:
    """Run the schedule of a number and check it."""
    return run_plan(replace(draw(number), adaptive=adaptive))


def run_plan(plan: Plan) -> Outcome:
    """Run a schedule and check it."""
    world = make_world(plan)
    failure = ""
    try:
        with simulated(world):
            world.scheduler.run(LONGEST_S)
            check(world, plan)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    first = remixes_from(plan, world.taken)
    mixed_again = sum(one.step >= first for one in world.taken)
    return Outcome(
        plan, failure, world.scheduler.events, len(world.taken), mixed_again, world.scheduler.now
    )


def run_quietly(number: int, adaptive: bool = False) -> Outcome:
    """The same without the devices' logs, in a process of its own."""
    torch.set_num_threads(1)
    logging.getLogger("ssdfl").setLevel(logging.CRITICAL)
    return run_schedule(number, adaptive)


def rows_of(outcome: Outcome) -> set[str]:
    """The rows of the record that a schedule counts for."""
    kinds = {fault.kind for fault in outcome.plan.faults} or {"none"}
    return {"all", *kinds, *(["liar"] if outcome.plan.lies else [])}


def add(path: Path, outcomes: list[Outcome]) -> None:
    """Add outcomes to a file of counts."""
    counts = {
        row["what"]: Counter({key: float(row[key]) for key in COLUMNS[1:]}) for row in read(path)
    }
    for what in ("all", "none", *FAULTS, "liar"):
        counts.setdefault(what, Counter())
    for outcome in outcomes:
        for what in rows_of(outcome):
            counts[what] += Counter(
                schedules=1,
                failures=int(bool(outcome.failure)),
                events=outcome.events,
                steps=outcome.steps,
                mixed_again=outcome.mixed_again,
                simulated_s=outcome.simulated_s,
            )
    with path.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(
            [what, *(round(count[key]) for key in COLUMNS[1:])] for what, count in counts.items()
        )


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a file of counts; none if there is none."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def show(path: Path) -> None:
    """Print a file of counts as a table."""
    print("| " + " | ".join(COLUMNS) + " |")
    print("|---" + "|---:" * (len(COLUMNS) - 1) + "|")
    for row in read(path):
        print(
            "| " + " | ".join([row["what"], *(f"{int(row[key]):,}" for key in COLUMNS[1:])]) + " |"
        )


def main() -> None:
    """Run the schedules that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first schedule")
    parser.add_argument("--adaptive", action="store_true", help="as of ssdfl mesh init")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, help="a CSV file to add the counts to")
    parser.add_argument(
        "--log", action="store_true", help="run in this process and show devices' logs"
    )
    parser.add_argument(
        "--show", type=Path, help="print such a file as a table, and do nothing else"
    )
    options = parser.parse_args()
    if options.show:
        show(options.show)
        return
    numbers = range(options.first, options.first + options.schedules)
    if options.log:
        logging.basicConfig(level=logging.DEBUG)
        outcomes = map(partial(run_schedule, adaptive=options.adaptive), numbers)
        failures = report(outcomes, None)
    else:
        with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
            run = partial(run_quietly, adaptive=options.adaptive)
            failures = report(pool.map(run, numbers, chunksize=10), options.out)
    sys.exit(1 if failures else 0)


def report(outcomes, out: Path | None) -> int:
    """Print failures as they come and add all to a file now and then; returns how many."""
    started, count, failures = time.monotonic(), 0, 0
    while batch := list(islice(outcomes, 100)):
        for outcome in batch:
            if outcome.failure:
                print(f"{outcome.plan.number}: {outcome.failure}\n    {outcome.plan}", flush=True)
        count += len(batch)
        failures += sum(bool(outcome.failure) for outcome in batch)
        if out:
            add(out, batch)
    minutes = (time.monotonic() - started) / 60
    print(f"{count} schedules, {failures} failures, {count / minutes:.0f} a minute")
    return failures


if __name__ == "__main__":
    main()
