"""Predicted against measured seconds of a cycle: real devices on shaped links.

    python benchmarks/predicted.py                # 20 networks, twenty minutes; resumes
    python benchmarks/predicted.py --networks 2   # only the first ones
    python benchmarks/predicted.py --report       # the table and the figure again
    python benchmarks/predicted.py --first 20 --results docs/images/predicted-fresh.csv
                                                  # other networks, for a check that is held out

Six devices of the mesh, each a process in its own network namespace, train a small model by SSD-FL:
with the clusters that formation chooses, with one cluster, and with none. Links are slow, so that
this machine's speed does not matter; messages are real TCP, TLS and gRPC. Needs root; skipped with
the reason where there are no namespaces. Results: docs/images/predicted.csv, predicted.png beside
it.
"""

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from shaped import address, machines, why_not

from ssdfl.clusters import Clusters, Device, FormationSettings, form_clusters
from ssdfl.clusters.scores import TRAINING
from ssdfl.graph import Clock, Network, from_json, load_network, make_network, to_json
from ssdfl.methods import ScheduleInputs, find_method
from ssdfl.rng import generator

RESULTS = Path(__file__).parents[1] / "docs" / "images" / "predicted.csv"
DEVICES, NETWORKS = 6, 20
KINDS = (
    "sites:sites=2,size=3", "ring:n=6", "complete:n=6", "star:n=6", "sites:sites=3,size=2,links=2",
    "er:n=6,p=0.5,seed=1", "grid:rows=2,cols=3", "barbell:size=3",
)  # fmt: skip
HIDDEN = 200
MESSAGE_BYTES = 4 * (75 * HIDDEN + 10)
TAU_A, TAU_R = 3, 1
WARM_UP, CYCLES = {"plan": 5, "one cluster": 2, "no clusters": 8}, 3
"""Cycles until TCP's windows and timeouts settle, after eight exchanges, and those measured."""
PORTS = count(20_000)
FIELDS = ("network", "kind", "shared", "arm", "clusters", "predicted_s", "measured_s")


def drawn_network(number: int) -> Network:
    """A network of some kind with costs drawn at random; some have shared uplinks and downlinks."""
    rng = generator(number, "predicted")
    kind = load_network(KINDS[number % len(KINDS)])
    slow = kind.latency_s > kind.latency_s.min()  # between sites
    latency_s = rng.uniform(0.02, 0.06, kind.num_links) * np.where(slow, 2, 1)
    bandwidth_Bps = rng.uniform(0.8e5, 3e5, kind.num_links) / np.where(slow, 1.3, 1)
    shared = (number + number // len(KINDS)) % 2 == 1
    limits_Bps = rng.uniform(2.5e5, 6e5, (2, DEVICES)) if shared else np.full((2, DEVICES), np.inf)
    return make_network(
        DEVICES, kind.links, latency_s=latency_s, bandwidth_Bps=bandwidth_Bps, compute_s=0.005,
        uplink_Bps=limits_Bps[0], downlink_Bps=limits_Bps[1],
        names=[f"d{k}" for k in range(DEVICES)],
    )  # fmt: skip


def arms(network: Network) -> dict[str, Clusters]:
    """Clusters that formation chooses for devices that differ, one cluster, and none.

    Of candidates with several clusters, the best. One cluster or none may be better still, so there
    are three plans to time.
    """
    rng = generator(0, "labels")
    devices = [
        Device(np.bincount(rng.choice(10, 2, replace=False), minlength=10).astype(float))
        for _ in range(DEVICES)
    ]
    constants = TRAINING.__class__(**{**TRAINING.__dict__, "tau_a": TAU_A, "tau_r": TAU_R})
    settings = FormationSettings(constants=constants, message_bytes=MESSAGE_BYTES, price=1.0)
    several = [
        candidate
        for candidate in form_clusters(network, devices, settings).candidates
        if 1 < candidate.num_clusters < DEVICES
    ]
    plan = min(several, key=lambda candidate: candidate.score)
    everyone = tuple(range(DEVICES))
    return {
        "plan": plan.clusters,
        "one cluster": (everyone,),
        "no clusters": tuple((k,) for k in everyone),
    }


def predicted_s(network: Network, clusters: Clusters) -> float:
    """Seconds of a cycle as plans show them."""
    step = find_method("ssdfl").schedule(
        ScheduleInputs(network, clusters, tau_a=TAU_A, tau_r=TAU_R)
    )
    clock = Clock(network, MESSAGE_BYTES)
    cost = clock.cycle_cost(step(TAU_A).W, step(0).W, TAU_A, TAU_R, network.compute_s)
    return cost.time_s


class Workers:
    """The devices' processes, each in its namespace, told by lines of JSON what to run."""

    def __init__(self, names: Sequence[str], folder: Path) -> None:
        command = [sys.executable, str(Path(__file__)), "--worker"]
        self.processes = [
            subprocess.Popen(
                ["ip", "netns", "exec", name, *command, str(device), "--folder", str(folder)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                stderr=(folder / f"errors{device}.txt").open("w"),
            )
            for device, name in enumerate(names)
        ]  # fmt: skip
        self._answers()

    def run(self, order: dict[str, Any]) -> list[list[float]]:
        """Let all devices do a run; when each of them ended each cycle."""
        self._tell(order)
        self._answers()  # they have met
        self._tell({})
        times: list[list[float]] = self._answers()
        self._tell({})  # all have finished, so none needs the others any more
        return times

    def _tell(self, order: dict[str, Any]) -> None:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()

    def _answers(self) -> list[Any]:
        lines = [process.stdout.readline() if process.stdout else "" for process in self.processes]
        if not all(lines):
            sys.exit(f"device {lines.index('')} ended")
        return [json.loads(line) for line in lines]

    def stop(self) -> None:
        """End all."""
        for process in self.processes:
            process.terminate()
            process.wait()


def measured_s(times: Sequence[Sequence[float]]) -> float:
    """Seconds of a cycle of the last device after the warm-up: the median, since load varies."""
    durations_s = np.diff(np.max(times, axis=0))
    print("  cycles:", *(f"{time_s:.2f}" for time_s in durations_s), flush=True)
    return float(np.median(durations_s[-CYCLES:]))


def measure(numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Predicted and measured seconds of all arms of some networks."""
    with tempfile.TemporaryDirectory() as text, machines(DEVICES) as (names, router):
        folder = Path(text)
        make_credentials(folder)
        workers = Workers(names, folder)
        try:
            list(measure_network(0, workers, router))  # first runs load what later ones have
            for number in numbers:
                yield from measure_network(number, workers, router)
        finally:
            workers.stop()


def measure_network(number: int, workers: Workers, router: Any) -> Iterator[dict[str, Any]]:
    """All arms of a network; arms with the same clusters are run once."""
    network = drawn_network(number)
    router.shape(network)
    known: dict[Clusters, float] = {}
    for arm, clusters in arms(network).items():
        if clusters not in known:
            port = next(PORTS)
            cycles = WARM_UP[arm] + CYCLES
            order = {
                "network": to_json(network),
                "clusters": clusters,
                "port": port,
                "cycles": cycles,
            }
            known[clusters] = measured_s(workers.run(order))
        yield {
            "network": number,
            "kind": KINDS[number % len(KINDS)].partition(":")[0],
            "shared": int(network.is_shared),
            "arm": arm,
            "clusters": len(clusters),
            "predicted_s": f"{predicted_s(network, clusters):.4f}",
            "measured_s": f"{known[clusters]:.4f}",
        }


def make_credentials(folder: Path) -> None:
    """Keys and certificates of all devices."""
    from ssdfl.mesh.certificates import Authority

    authority = Authority()
    (folder / "authority.pem").write_bytes(authority.certificate)
    for k in range(DEVICES):
        key, certificate = authority.issue(f"d{k}")
        (folder / f"d{k}.key").write_bytes(key)
        (folder / f"d{k}.pem").write_bytes(certificate)


def work(device: int, folder: Path) -> None:
    """One device's process: run what the lines of the standard input order."""
    from ssdfl.engine.threads import use_cores
    from ssdfl.learning import load_dataset
    from ssdfl.preparation.draw import draw
    from ssdfl.records import make_experiment

    use_cores(1)
    experiment = make_experiment(
        {
            "model": {"options": {"hidden": HIDDEN}},
            "optimizers": {"kind": "sgd"},
            "evaluate": {"samples": 16},
        }
    )
    _, task, optimizers = draw(
        experiment, 0, load_dataset("digits"), load_network(f"ring:n={DEVICES}")
    )
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        run_order(device, folder, json.loads(line), task, optimizers)


def run_order(device: int, folder: Path, order: dict[str, Any], task: Any, optimizers: Any) -> None:
    """Meet the neighbours, wait for the start, take all steps, and print when cycles ended."""
    from ssdfl.engine import Job
    from ssdfl.mesh.device_engine import device_steps
    from ssdfl.mesh.node import Node
    from ssdfl.mesh.transport import Credentials, GrpcTransport

    network = from_json(order["network"], title="shaped")
    clusters = tuple(map(tuple, order["clusters"]))
    inputs = ScheduleInputs(network, clusters, tau_a=TAU_A, tau_r=TAU_R)
    job = Job(
        task=task, network=network, schedule=find_method("ssdfl").schedule(inputs),
        optimizers=optimizers,
        cycles=order["cycles"], steps_per_cycle=TAU_A + TAU_R, learning_rate=0.01, batch_size=4,
        evaluate_every=order["cycles"],
    )  # fmt: skip
    files = [folder / f"d{device}.key", folder / f"d{device}.pem", folder / "authority.pem"]
    near = {f"d{j}": f"{address(j)}:{order['port']}" for j in network.neighbours(device).tolist()}
    credentials = Credentials(*(file.read_bytes() for file in files))
    transport = GrpcTransport(f"{address(device)}:{order['port']}", near, credentials)
    node = Node(network, device, network.names, transport, ping_deadline_s=20.0)
    transport.start(node.handle)
    node.neighbours.start()
    node.neighbours.wait(lambda: len(node.neighbours.alive) == len(near), 60.0)
    print(json.dumps(len(node.neighbours.alive)), flush=True)
    sys.stdin.readline()
    times = [time.monotonic() for _, record in device_steps(job, node, None) if record is not None]
    print(json.dumps(times), flush=True)
    sys.stdin.readline()
    node.close()


def read(results: Path) -> list[dict[str, str]]:
    """What was measured."""
    if not results.exists():
        return []
    with results.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def append(rows: Iterator[dict[str, Any]], results: Path) -> None:
    """Add lines to the results, each as it comes."""
    fresh = not results.exists()
    with results.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        for row in rows:
            writer.writerow(row)
            file.flush()
            print(*row.values(), flush=True)


def errors(rows: Sequence[dict[str, str]]) -> list[float]:
    """How far each measured time is from its prediction, as a share of the measured one."""
    return [abs(float(row["predicted_s"]) / float(row["measured_s"]) - 1) for row in rows]


def orders(rows: Sequence[dict[str, str]]) -> tuple[int, int, int]:
    """Networks, those whose best arm is predicted right, and those with all arms in order."""
    networks = sorted({row["network"] for row in rows})
    best = alike = 0
    for network in networks:
        of_network = [row for row in rows if row["network"] == network]
        by = {
            name: [row["arm"] for row in sorted(of_network, key=lambda row: float(row[name]))]
            for name in ("predicted_s", "measured_s")
        }
        best += by["predicted_s"][0] == by["measured_s"][0]
        alike += by["predicted_s"] == by["measured_s"]
    return len(networks), best, alike


def report_table(rows: Sequence[dict[str, str]]) -> str:
    """The errors by arm and by what is shared, as Markdown."""
    groups = {
        arm: [row for row in rows if row["arm"] == arm]
        for arm in ("plan", "one cluster", "no clusters")
    }
    groups |= {
        "unlimited uplinks": [row for row in rows if row["shared"] == "0"],
        "shared uplinks and downlinks": [row for row in rows if row["shared"] == "1"],
        "all": list(rows),
    }
    lines = [
        "| | runs | seconds a cycle | median error | worst |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, group in groups.items():
        found, times = errors(group), [float(row["measured_s"]) for row in group]
        span = f"{min(times):.2f} … {max(times):.2f}"
        lines.append(
            f"| {name} | {len(group)} | {span} | {np.median(found):.1%} | {max(found):.1%} |"
        )
    return "\n".join(lines)


def draw(rows: Sequence[dict[str, str]], path: Path) -> None:
    """Measured against predicted seconds, with the line where they are equal."""
    from matplotlib.figure import Figure

    from ssdfl.report import save
    from ssdfl.report.figures import COLOURS

    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    axes = figure.add_subplot()
    for colour, arm in zip(COLOURS, ("plan", "one cluster", "no clusters"), strict=False):
        for shared, marker in (("0", "o"), ("1", "^")):
            chosen = [row for row in rows if row["arm"] == arm and row["shared"] == shared]
            x, y = ([float(row[name]) for row in chosen] for name in ("predicted_s", "measured_s"))
            label = f"{arm}, shared uplinks" if shared == "1" else arm
            axes.loglog(x, y, marker, color=colour, alpha=0.8, label=label)
    ends = np.array(
        [min(axes.get_xlim()[0], axes.get_ylim()[0]), max(axes.get_xlim()[1], axes.get_ylim()[1])]
    )
    axes.plot(ends, ends, color="#888888", linewidth=1)
    axes.fill_between(ends, ends * 0.9, ends * 1.1, color="#888888", alpha=0.2, label="within 10 %")
    axes.set(xlabel="predicted seconds of a cycle", ylabel="measured", xlim=ends, ylim=ends)
    axes.legend(fontsize=7)
    save(figure, path)


def report(results: Path) -> None:
    """Print the table, draw the figure."""
    rows = read(results)
    networks, best, alike = orders(rows)
    print(report_table(rows))
    print(
        f"\nOf {networks} networks the best of three is predicted in {best}, "
        f"the order of all in {alike}."
    )
    draw(rows, results.with_suffix(".png"))


def main() -> None:
    """Measure and report, or be one of the devices."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--networks", type=int, default=NETWORKS)
    parser.add_argument("--first", type=int, default=0, help="number of the first network")
    parser.add_argument("--results", type=Path, default=RESULTS, help="CSV file of the results")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--worker", type=int)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    if args.worker is not None:
        work(args.worker, args.folder)
        return
    if not args.report:
        if reason := why_not():
            sys.exit(f"skipped: {reason}")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that namespaces are removed
        os.setpriority(os.PRIO_PROCESS, 0, -10)
        done = {int(row["network"]) for row in read(args.results)}
        wanted = range(args.first, args.first + args.networks)
        append(measure([number for number in wanted if number not in done]), args.results)
    report(args.results)


if __name__ == "__main__":
    main()
