"""What ranks gain and cost on one machine, and from that an estimate for many.

    python benchmarks/scale.py              # some minutes; --quick: less of each; --json

Every figure is of whole cycles as `run` yields them, without testing. Configurations take turns and
the fastest cycle of each counts, since other work on the machine only ever adds time. "Computing"
is the time that the busiest rank's thread was on a core: what remains if waiting for others costs
nothing. "Messages" are ranks that may not share memory, as on two machines.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ssdfl.clusters import labels_of, spectral_bisection
from ssdfl.engine import Job, run
from ssdfl.engine.rank_mixing import shard_job
from ssdfl.engine.ranks import decide_on_rank_0, joined
from ssdfl.engine.row_exchange import FORBIDDEN
from ssdfl.graph import load_network
from ssdfl.learning import build_model, draw_optimizers, iid, make_dataset, make_task
from ssdfl.methods import METHODS, ScheduleInputs

TAU_A, TAU_R = 5, 1
NETWORK_BYTES_PER_S = 1.25e9
NETWORK_LATENCY_S = 1e-4
MACHINES, CORES, DEVICES = 8, 32, 100_000


@dataclass(frozen=True)
class Case:
    """A configuration: model, method, sites of ten devices, engine, ranks; 0 ranks is `local`.

    Attributes:
        messages: ranks may not share memory.
        apart: each rank runs all of the job by itself, at the same time as the others: what the
            machine allows.
    """

    model: str
    method: str
    sites: int
    ranks: int
    messages: bool = False
    apart: bool = False

    @property
    def devices(self) -> int:
        """N."""
        return 10 * self.sites


def make_job(case: Case) -> Job:
    """Random images of the model's usual size; nobody learns anything, but it takes as long."""
    size = 28 if case.model == "cnn" else 8
    rng = np.random.default_rng(0)
    count = max(4000, 4 * case.devices)
    images = rng.integers(0, 255, (count, 1, size, size)).astype(np.uint8)
    labels = np.arange(count) % 10
    data = make_dataset((images, labels), (images[:200], labels[:200]))
    network = load_network(f"sites:sites={case.sites},size=10,seed=0")
    setting = ScheduleInputs(network, spectral_bisection(network, case.sites), TAU_A, TAU_R)
    model = build_model(case.model, data.input_shape, data.num_classes, 0, {})
    return Job(
        task=make_task(model, data, iid(data.train_targets, case.devices, rng)),
        network=network,
        schedule=METHODS[case.method].schedule(setting),
        optimizers=draw_optimizers("sgd", case.devices, rng),
        cycles=10**6,
        steps_per_cycle=TAU_A + TAU_R,
        learning_rate=1e-3,
        evaluate_every=10**6,
    )


def cycle_times(case: Case, seconds: float) -> dict[str, float]:
    """In a process or rank: the fastest cycle, its thread's computing time, bytes over loopback."""
    job = make_job(case)
    engine = "distributed" if case.ranks and not case.apart else "local"
    times, start, last, before, busy_s = [], time.monotonic(), 0.0, 0, 0.0
    for record, _ in run(job, engine, in_place=True):
        now = time.monotonic()
        if record.cycle == 2:
            before, busy_s = loopback_bytes(), time.thread_time()
        if record.cycle > 2:
            times.append(now - last)
        if record.cycle >= 4 and decide_on_rank_0(now - start > seconds):
            break
        last = time.monotonic()
    return {
        "cycle_s": min(times),
        "busy_s": (time.thread_time() - busy_s) / len(times),
        "loopback_bytes": (loopback_bytes() - before) / len(times),
    }


def loopback_bytes() -> int:
    """What has gone over loopback since the machine started."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    return next(
        int(line.split(":")[1].split()[8]) for line in lines if line.strip().startswith("lo:")
    )


def minimum_bytes(case: Case) -> int:
    """Parameters that have to cross between ranks in a cycle: the boundary rows of each step."""
    job = make_job(case)
    owner = labels_of(shard_job(job, case.ranks), case.devices)
    rows = 0
    for t in range(job.steps_per_cycle):
        entries = job.schedule(t).W.tocoo()
        apart = owner[entries.row] != owner[entries.col]
        rows += len(
            set(zip(entries.row[apart].tolist(), owner[entries.col[apart]].tolist(), strict=True))
        )
    return rows * job.message_bytes


def measure(case: Case, seconds: float) -> dict[str, float]:
    """Run a case in processes of their own, one thread each."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, __file__, "--case", json.dumps(asdict(case))]
        words += ["--seconds", str(seconds), "--out"]
        fixed = {
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
            FORBIDDEN: "0" if case.messages else "1",
        }
        processes = []
        for number in range(max(1, case.ranks)):
            place = {"RANK": str(number), "WORLD_SIZE": str(case.ranks), "MASTER_ADDR": "127.0.0.1"}
            variables = {
                **os.environ,
                **fixed,
                **(place | {"MASTER_PORT": port} if case.ranks else {}),
            }
            processes.append(subprocess.Popen([*words, f"{folder}/{number}"], env=variables))
        codes = [process.wait() for process in processes]
        if any(codes):
            raise RuntimeError(f"{case} failed")
        found = [json.loads(path.read_text()) for path in Path(folder).iterdir()]
        return {key: max(values[key] for values in found) for key in found[0]}


def take_turns(cases: dict[str, Case], seconds: float, rounds: int) -> dict[str, dict[str, float]]:
    """The best of each case, measured in turns."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for name, case in cases.items():
            found = measure(case, seconds)
            kept = best.setdefault(name, found)
            best[name] = {key: min(kept[key], found[key]) for key in kept}
    return best


def speed(
    model: str, sites: int, seconds: float, rounds: int, show: Callable[..., None]
) -> dict[str, float]:
    """Overhead, speed-up and bytes of one model; constants for the estimate."""
    small = sites // 2
    cases = {
        "local": Case(model, "ssdfl", sites, 0),
        "one": Case(model, "ssdfl", sites, 1),
        "two": Case(model, "ssdfl", sites, 2),
        "apart": Case(model, "ssdfl", sites, 2, messages=True),
        "apart, every step": Case(model, "sdfl", sites, 2, messages=True),
        "half": Case(model, "ssdfl", small, 1),
        "twice": Case(model, "ssdfl", small, 2, apart=True),
    }
    found = take_turns(cases, seconds, rounds)
    cycle = {name: values["cycle_s"] for name, values in found.items()}
    N = cases["local"].devices
    busy = {name: values["busy_s"] for name, values in found.items()}
    for what, of_case in (("seconds", cycle), ("computing", busy)):
        start = f"{model}, N = {N}, {what}"
        show(f"{start}: one rank / local", of_case["one"] / of_case["local"], "×")
        show(f"{start}: one rank / two, shared memory", of_case["one"] / of_case["two"], "×")
        show(f"{start}: one rank / two, messages", of_case["one"] / of_case["apart"], "×")
        show(
            f"{start}: one rank / two, messages at every step",
            of_case["one"] / of_case["apart, every step"],
            "×",
        )
        show(
            f"{start}: one rank with N = {10 * small} / two", of_case["half"] / of_case["two"], "×"
        )
        show(
            f"{start}: the same of two that share nothing", of_case["half"] / of_case["twice"], "×"
        )
    for name in ("apart", "apart, every step"):
        least = minimum_bytes(cases[name])
        method = cases[name].method
        show(f"{model}, {method}: boundary rows of a cycle", least / 1e6, "MB")
        show(
            f"{model}, {method}: bytes over loopback / boundary rows",
            found[name]["loopback_bytes"] / least,
            "×",
        )
    return {
        "step_s": busy["one"] / N / TAU_A,
        "row_bytes": float(make_job(cases["half"]).message_bytes),
    }


def estimate(model: str, step_s: float, row_bytes: float, show: Callable[..., None]) -> None:
    """A cycle of 100,000 devices in sites of ten on eight machines.

    Training: a device's step on one core (measured here), times devices of a machine over its
    cores. Network: boundary rows of a machine over its line, at least twice the number of sites
    that a ring of sites cuts. Here each machine cuts one site in a hundred, as a poor partition
    would.
    """
    training_s = TAU_A * step_s * DEVICES / MACHINES / CORES
    boundary = DEVICES / 10 / MACHINES / 100 * 2
    network_s = TAU_R * (
        boundary * row_bytes / NETWORK_BYTES_PER_S + (MACHINES - 1) * NETWORK_LATENCY_S
    )
    reduction_s = 2 * row_bytes / NETWORK_BYTES_PER_S + 2 * np.log2(MACHINES) * NETWORK_LATENCY_S
    show(f"{model}: {DEVICES:,} devices on {MACHINES} machines: training", training_s, "s")
    show(f"{model}: boundary rows", network_s, "s")
    show(f"{model}: the mean of all", reduction_s, "s")
    show(f"{model}: parameters on a machine, twice", 2 * DEVICES / MACHINES * row_bytes / 1e9, "GB")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--case")
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.case:
        with joined():
            result = cycle_times(Case(**json.loads(options.case)), options.seconds)
            Path(options.out).write_text(json.dumps(result))
        return
    rows: list[tuple[str, float, str]] = []

    def show(name: str, value: float, unit: str) -> None:
        rows.append((name, value, unit))
        if not options.json:
            print(f"| {name} | {value:.3g} {unit} |", flush=True)

    seconds, rounds = (options.seconds or 4.0, 1) if options.quick else (options.seconds or 8.0, 2)
    if not options.json:
        print("| figure | measured |\n|---|---|")
    for model, sites in (("mlp", 40), ("cnn", 4)):
        constants = speed(model, sites, seconds, rounds, show)
        estimate(model, constants["step_s"], constants["row_bytes"], show)
    if options.json:
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
