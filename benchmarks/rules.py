"""What rules cost in the `local` engine: time of a cycle against `cta`, per vector sent.

    python benchmarks/rules.py                 # all rules, about a minute
    python benchmarks/rules.py gt choco        # some of them

1,000 devices with an MLP on 8 × 8 images, SSD-FL's schedule. All rules take turns in one run, and
the least time of each counts. Look at ratios, since machines are noisy.
"""

import argparse
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from engine import DIGITS, Figure, in_turns, make_job
from ssdfl.engine import Job, run
from ssdfl.methods import RULES, find_rule

BASE = "cta"
PER_VECTOR, ROBUST, SPARSE = 1.1, 3.0, 2.0
COMPRESSED = ("cta:compressor=int8", "cta:compressor=bf16", "extra:compressor=int8")


def limit(rule: str, job: Job) -> tuple[float, int]:
    """How many times the time of `cta` a rule may take per vector it sends, and how many it sends.

    Rules whose messages are plainly compressed have no limit: their figures are for information.
    """
    found = find_rule(rule)
    if not found.linear:
        return ROBUST, 1
    if found.compressor is not None:
        return SPARSE if found.steady else math.inf, 1
    return PER_VECTOR, job.first_message.width // job.task.num_parameters


def measure(rules: list[str], repeats: int) -> Iterator[Figure]:
    """Each rule's cycle against that of `cta`."""
    base = make_job("mlp", DIGITS, 1000, optimizers="sgd")
    jobs = {rule: replace(base, rule=find_rule(rule)) for rule in (BASE, *rules)}
    cycles = {rule: run(job, in_place=True) for rule, job in jobs.items()}
    took = in_turns({rule: partial(next, steps) for rule, steps in cycles.items()}, repeats)
    for rule, job in jobs.items():
        most, vectors = limit(rule, job)
        ratio = took[rule] / took[BASE] / vectors
        sent = f"{vectors} vector{'s' * (vectors > 1)}, {job.message_bytes:,} bytes"
        yield Figure(17, f"{rule} ({sent}; {1e3 * took[rule]:.0f} ms)", ratio, "× cta", most=most)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rules", nargs="*", help="all by default")
    parser.add_argument("--repeats", type=int, default=12)
    arguments = parser.parse_args()
    print("| rule | time against `cta`, per vector sent | wanted |\n|---|---|---|")
    others = [*(rule for rule in RULES if rule != BASE), *COMPRESSED]
    for figure in measure(arguments.rules or others, arguments.repeats):
        print(f"| {figure.what} | {figure.value:.2f} | {figure.verdict} |", flush=True)


if __name__ == "__main__":
    main()
