"""Devices of a mesh under constant faults: what survivors keep of their steps and their accuracy.

    python benchmarks/churn.py                                      # 24 devices, 30 minutes twice
    python benchmarks/churn.py --devices 8 --minutes 2              # a quick look

A mesh of forked processes trains twice for the same time: undisturbed, and with a fault every few
seconds. A fault is a kill, a freeze, a cut of a link both ways or one way, a full disk, a start
with a wrong clock, or a newcomer that joins and is removed later; the others are over after some
seconds. Links run through cables in this process, which hold back what is cut. A full disk is a
limit of 0 bytes for files.

Devices share few cores here, so training a step also sleeps (--pace): as with a core each, steps
are lost by waiting and not by computing what others compute. Every device writes down when it took
which step. Printed are the steps a second of devices with no fault of their own just then, as a
share of the undisturbed ones; the same of all devices, faults included; the seconds that each kind
of fault cost those without one, in the moments after it began and ended; both accuracies; and
devices that stood still at the end, or were not running.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from churn_faults import FAULTS, OF_OTHERS, RECOVERY_S, TRACE, Churn, Fault, Mesh, made_mesh

from ssdfl.arrays import FloatArray

REST_S = 20.0
"""Without faults at the end, when all have to get on."""
POLL_S = 0.1
MOMENTS_S = 4.0
"""After a fault began or ended, in which its cost is looked for."""
Interval = tuple[float, float]


@dataclass
class Result:
    """Of one run.

    Attributes:
        taken: when each device took steps.
        editions: when each edition of the mesh began, by the devices' median.
        during: from when to when it was watched, the rest at the end aside.
    """

    taken: dict[str, FloatArray]
    editions: list[float]
    during: Interval
    faults: list[Fault]
    accuracy: float
    lost: list[str]

    def own_faults(self, name: str) -> list[Interval]:
        """When a device had a fault of its own."""
        own = [one for one in self.faults if one.name == name and one.kind not in OF_OTHERS]
        return [(one.begin_s, one.end_s + RECOVERY_S) for one in own]

    def rate(self, name: str, survivors: bool = True) -> float:
        """Steps a second of a device, without the times when it had a fault of its own."""
        begin_s, end_s = self.during
        out = [(max(a, begin_s), min(b, end_s)) for a, b in self.own_faults(name) if survivors]
        times = self.taken[name]
        kept = (times >= begin_s) & (times < end_s)
        for a, b in out:
            kept &= (times < a) | (times >= b)
        seconds = end_s - begin_s - _length(out)
        return float(kept.sum() / seconds) if seconds > 0 else math.nan

    def cost_s(self, moment: float, rates: dict[str, float]) -> float:
        """Seconds that devices without a fault of their own lost after a moment, in the mean."""
        until = min(moment + MOMENTS_S, self.during[1])
        lost = []
        for name, times in self.taken.items():
            is_well = all(until <= a or moment >= b for a, b in self.own_faults(name))
            if is_well and until > moment:
                steps = np.count_nonzero((times >= moment) & (times < until))
                lost.append(until - moment - steps / rates[name])
        return float(np.mean(lost)) if lost else math.nan


def _length(intervals: list[Interval]) -> float:
    """Of the union."""
    covered, reached = 0.0, -math.inf
    for a, b in sorted(intervals):
        covered += max(0.0, b - max(a, reached))
        reached = max(reached, b)
    return covered


def watch(mesh: Mesh, minutes: float, churn: Churn | None) -> Result:
    """Let a mesh train for some minutes."""
    for folder in mesh.folders:
        mesh.start(folder.name)
    while not all(len(_events(folder, "step")) > 3 for folder in mesh.folders):
        time.sleep(POLL_S)
    begin_s = time.monotonic()
    end_s = begin_s + 60 * minutes
    while (now := time.monotonic()) < end_s:
        if churn is not None:
            churn.act(resting=now > end_s - REST_S)
        time.sleep(POLL_S)
    during = (begin_s, end_s - REST_S)
    taken = {folder.name: _events(folder, "step")[:, 0] for folder in mesh.folders}
    return Result(
        taken, _editions(mesh), during, mesh.faults, _accuracy(mesh), _lost(mesh, taken, during)
    )


def _lost(mesh: Mesh, taken: dict[str, FloatArray], during: Interval) -> list[str]:
    """What must not happen: a device that stands still, or has ended."""
    still = [name for name, times in taken.items() if not (times > during[1]).any()]
    ended = {name: process.exitcode for name, process in mesh.processes.items()}
    own = {folder.name for folder in mesh.folders}  # newcomers are removed, and end with 0
    bad = {name: code for name, code in ended.items() if (code is not None and name in own) or code}
    return [
        *(f"{name} stood still" for name in still),
        *(f"{name} ended with {code}" for name, code in bad.items()),
    ]


def _events(folder: Path, kind: str) -> FloatArray:
    """(n, 2) when a device did what."""
    try:
        lines = (folder / TRACE).read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    parts = [line.split() for line in lines]
    found = [(float(one[0]), float(one[2])) for one in parts if len(one) == 3 and one[1] == kind]
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def _editions(mesh: Mesh) -> list[float]:
    """When each edition but the first began."""
    begun: dict[float, list[float]] = defaultdict(list)
    for folder in mesh.folders:
        for at_s, version in _events(folder, "edition").tolist():
            begun[version].append(at_s)
    return [float(np.median(times)) for version, times in sorted(begun.items()) if version]


def _accuracy(mesh: Mesh) -> float:
    return float(np.nanmean([_last_score(folder) for folder in mesh.folders]))


def _last_score(folder: Path) -> float:
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    scores = [json.loads(line)["score"] for line in lines if line.endswith("}")]
    return float(next((score for score in reversed(scores) if score == score), math.nan))


def costs(rough: Result, rates: dict[str, float]) -> list[dict[str, object]]:
    """What each fault cost those without one: a row each."""
    rows: list[dict[str, object]] = [
        {
            "kind": one.kind,
            "device": one.name,
            "other": one.other,
            "at_s": round(one.begin_s - rough.during[0], 2),
            "duration_s": round(one.end_s - one.begin_s, 2),
            "begin_cost_s": round(rough.cost_s(one.begin_s, rates), 3),
            "end_cost_s": round(rough.cost_s(one.end_s, rates), 3),
        }
        for one in rough.faults
    ]
    for at_s in rough.editions:
        cost_s = round(rough.cost_s(at_s - 0.5, rates), 3)
        row = {"kind": "edition", "at_s": round(at_s - rough.during[0], 2), "begin_cost_s": cost_s}
        rows.append({**row, "duration_s": 0.0})
    return rows


def print_costs(rows: list[dict[str, object]]) -> None:
    """A line for each kind of fault."""
    print("| kind | faults | seconds lost after it begins | after it ends |\n|---|---|---|---|")
    for kind in (*FAULTS, "edition"):
        own = [row for row in rows if row["kind"] == kind]
        if own:
            shown = " | ".join(_mean(own, key) for key in ("begin_cost_s", "end_cost_s"))
            print(f"| {kind} | {len(own)} | {shown} |")


def _mean(rows: list[dict[str, object]], key: str) -> str:
    """Of the rows that have a value."""
    values = np.array([float(str(row.get(key, "nan"))) for row in rows])
    known = values[~np.isnan(values)]
    return f"{known.mean():.2f}" if len(known) else "–"


def main() -> None:
    """Train twice and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--devices", type=int, default=24)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--calm-minutes", type=float, help="of the undisturbed run, if others")
    parser.add_argument("--every", type=float, default=10.0, help="seconds from fault to fault")
    parser.add_argument("--faults", nargs="*", choices=sorted(FAULTS), default=sorted(FAULTS))
    parser.add_argument("--pace", type=float, default=1.0, help="seconds that a step sleeps")
    parser.add_argument("--strict", action="store_true", help="as of ssdfl mesh init")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a new folder for the devices' files")
    parser.add_argument("--out", type=Path, help="a CSV file with a row for each fault")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that devices are ended
    calm, rough = (_run(options, disturbed) for disturbed in (False, True))
    rows = _report(calm, rough)
    if options.out:
        with options.out.open("w", newline="", encoding="utf-8") as lines:
            writer = csv.DictWriter(lines, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    sys.exit(1 if calm.lost + rough.lost else 0)


def _run(options: argparse.Namespace, disturbed: bool) -> Result:
    minutes = options.minutes if disturbed else options.calm_minutes or options.minutes
    with tempfile.TemporaryDirectory() as scratch:
        parent = options.keep or Path(scratch)
        folder = parent / ("disturbed" if disturbed else "calm")
        mesh = made_mesh(folder, options.devices, options.pace, not options.strict)
        churn = Churn(mesh, options.every, options.seed, options.faults) if disturbed else None
        try:
            return watch(mesh, minutes, churn)
        finally:
            mesh.close()


def _report(calm: Result, rough: Result) -> list[dict[str, object]]:
    rates = {name: calm.rate(name) for name in calm.taken}
    shares = np.array([rough.rate(name) / rate for name, rate in rates.items()])
    of_all = np.array([rough.rate(name, survivors=False) / rate for name, rate in rates.items()])
    rows = costs(rough, rates)
    print(f"undisturbed: {np.mean(list(rates.values())):.3f} steps a second")
    print_costs(rows)
    print(
        f"steps of devices without a fault: {np.nanmean(shares):.1%}, least {np.nanmin(shares):.1%}"
    )
    print(f"steps of all, faults included: {of_all.mean():.1%}")
    print(f"accuracy: {rough.accuracy:.1%}, undisturbed {calm.accuracy:.1%}")
    print("lost: " + ("; ".join(calm.lost + rough.lost) or "nothing"), flush=True)
    return rows


if __name__ == "__main__":
    main()
