"""Repair against formation: how long it takes, and what its plans cost beside newly formed ones.

    python benchmarks/repair.py --quality         # 25 changes in a row on four networks, twice
    python benchmarks/repair.py --time            # seconds at 1,000 and 10,000 devices
    python benchmarks/repair.py --time --devices 1000 --json

A change is a device that joins or leaves, a link whose latency changes by a factor of up to five
either way, or a device that gets other data. Each plan is repaired from the one before, not from a
newly formed one, until repair says that forming a new plan is worth it; then the formed plan is
taken. Times are processor seconds of one thread.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ssdfl.clusters import Device, Plan, form_clusters, repair
from ssdfl.graph import Network, load_network, make_network
from ssdfl.rng import generator

QUALITY = (
    "sites:sites=5,size=8,density=0.5,links=2,seed=1",
    "rgeo:n=60,radius=0.2,seed=1",
    "er:n=50,p=0.1,seed=2",
    "ba:n=50,m=2,seed=1",
)
SIZES = (1000, 10_000)
SPECS = {
    "er": lambda n: f"er:n={n},p={6 / n:.6f},seed=1",
    "rgeo": lambda n: f"rgeo:n={n},radius={np.sqrt(6 / np.pi / n):.5f},seed=1",
    "sites": lambda n: f"sites:sites={n // 20},size=20,density=0.3,links=2,seed=1",
}
LABELS = 10


@dataclass(frozen=True)
class Facts:
    """A network and what its devices hold."""

    network: Network
    devices: tuple[Device, ...]


def some_device(rng: np.random.Generator) -> Device:
    """A device with three labels of ten."""
    return Device(np.bincount(rng.choice(LABELS, 3, replace=False), minlength=LABELS).astype(float))


def start(spec: str, rng: np.random.Generator) -> Facts:
    """A network whose links' times vary, and devices."""
    network = load_network(spec)
    factor = np.exp(rng.uniform(-1, 1, network.num_links))
    network = replace(network, latency_s=network.latency_s * factor)
    return Facts(network, tuple(some_device(rng) for _ in range(network.num_devices)))


def join(facts: Facts, rng: np.random.Generator, step: int) -> Facts:
    """A new device beside an old one, with links to it and to some of its neighbours."""
    network, n = facts.network, facts.network.num_devices
    twin = int(rng.integers(n))
    near = network.neighbours(twin)
    hosts = [twin, *rng.permutation(near)[: int(rng.integers(1, 4))].tolist()]
    like = rng.integers(network.num_links, size=len(hosts))
    joined = make_network(
        n + 1,
        [*network.links.tolist(), *((host, n) for host in hosts)],
        latency_s=[*network.latency_s, *network.latency_s[like]],
        bandwidth_Bps=[*network.bandwidth_Bps, *network.bandwidth_Bps[like]],
        compute_s=[*network.compute_s, float(network.compute_s[twin])],
        names=[*network.names, f"new-{step}"],
    )
    return Facts(joined, (*facts.devices, some_device(rng)))


def leave(facts: Facts, rng: np.random.Generator, step: int) -> Facts:
    """One device less; the network stays connected."""
    network, n = facts.network, facts.network.num_devices
    for device in rng.permutation(n).tolist():
        stay = np.delete(np.arange(n), device)
        kept = (network.links != device).all(axis=1)
        place = np.cumsum(np.arange(n) != device) - 1
        rest = make_network(
            n - 1,
            place[network.links[kept]],
            latency_s=network.latency_s[kept],
            bandwidth_Bps=network.bandwidth_Bps[kept],
            compute_s=network.compute_s[stay],
            names=[network.names[k] for k in stay],
        )
        if rest.components().max() == 0:
            return Facts(rest, tuple(facts.devices[k] for k in stay))
    return facts


def reprice(facts: Facts, rng: np.random.Generator, step: int) -> Facts:
    """A link up to five times as slow or as fast."""
    latency_s = facts.network.latency_s.copy()
    latency_s[int(rng.integers(len(latency_s)))] *= np.exp(rng.uniform(-1, 1) * np.log(5))
    return replace(facts, network=replace(facts.network, latency_s=latency_s))


def redeal(facts: Facts, rng: np.random.Generator, step: int) -> Facts:
    """Other data on a device."""
    device = int(rng.integers(len(facts.devices)))
    devices = [*facts.devices]
    devices[device] = some_device(rng)
    return replace(facts, devices=tuple(devices))


CHANGES: tuple[Callable[[Facts, np.random.Generator, int], Facts], ...] = (
    join,
    leave,
    reprice,
    redeal,
)


def changes(facts: Facts, count: int, rng: np.random.Generator) -> Iterator[Facts]:
    """The facts after each of some random changes in a row."""
    for step in range(count):
        change = CHANGES[int(rng.integers(len(CHANGES)))]
        facts = change(facts, rng, step)
        yield facts


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, and the result."""
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def score(plan: Plan) -> float:
    """What a plan is predicted to cost."""
    assert plan.chosen is not None
    return plan.chosen.score


def quality(spec: str, count: int, known: bool) -> dict[str, Any]:
    """Excess of repaired plans over those formed anew, over changes in a row."""
    rng = generator(0, "repairs", *spec.encode())
    facts = start(spec, rng)
    plan = form_clusters(facts.network, facts.devices if known else None)
    excess, advised, missed, repair_s, form_s = [], 0, 0, 0.0, 0.0
    for now in changes(facts, count, rng):
        devices = now.devices if known else None
        seconds, found = timed(partial(repair, plan, now.network, devices))
        repair_s += seconds
        seconds, formed = timed(partial(form_clusters, now.network, devices))
        form_s += seconds
        over = score(found.plan) / score(formed) - 1
        excess.append(over)
        missed += over > 0.05 and not found.worth_forming
        advised += found.worth_forming
        plan = formed if found.worth_forming else found.plan
    return {
        "network": spec,
        "devices": "known" if known else "unknown",
        "changes": count,
        "mean excess": f"{np.mean(excess):.2%}",
        "95th percentile": f"{np.quantile(excess, 0.95):.2%}",
        "worst": f"{max(excess):.2%}",
        "above 5 %": sum(over > 0.05 for over in excess),
        "of these not advised": missed,
        "advised to form anew": advised,
        "time of formation": f"{repair_s / form_s:.2%}",
    }


def speed(kind: str, num_devices: int, count: int) -> dict[str, Any]:
    """Processor seconds of repairs and of one formation, and the cost of the last repaired plan."""
    rng = generator(0, "repairs", *kind.encode())
    facts = start(SPECS[kind](num_devices), rng)
    form_s, plan = timed(partial(form_clusters, facts.network, facts.devices))
    first, seconds = plan, []
    for now in changes(facts, count, rng):
        spent, found = timed(partial(repair, plan, now.network, now.devices))
        seconds.append(spent)
        plan = found.plan
    again_s, formed = timed(partial(form_clusters, now.network, now.devices))
    return {
        "network": kind,
        "devices": num_devices,
        "clusters": first.num_clusters,
        "formation, s": f"{(form_s + again_s) / 2:.2f}",
        "repair, median s": f"{np.median(seconds):.3f}",
        "share": f"{2 * np.median(seconds) / (form_s + again_s):.2%}",
        "worst share": f"{2 * max(seconds) / (form_s + again_s):.2%}",
        f"excess after {count} changes": f"{score(plan) / score(formed) - 1:.2%}",
    }


def print_rows(rows: list[dict[str, Any]]) -> None:
    """A table in Markdown."""
    print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(str(value) for value in row.values()) + " |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--changes", type=int, help="of each network; by default 25, for times 10")
    parser.add_argument("--devices", type=int, nargs="*", default=SIZES, help="sizes for times")
    parser.add_argument("--network", nargs="*", help="only these specs, for times these kinds")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    if options.quality:
        for spec in options.network or QUALITY:
            rows += [quality(spec, options.changes or 25, known) for known in (True, False)]
    if options.time:
        kinds = options.network or SPECS
        rows += [speed(kind, n, options.changes or 10) for n in options.devices for kind in kinds]
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        print_rows(rows)


if __name__ == "__main__":
    main()
