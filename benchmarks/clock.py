"""What shared uplinks and downlinks cost the simulated clock, in seconds with and without.

    python benchmarks/clock.py                    # 10,000 devices, about half a minute

A cycle is timed as formation and runs do it: 5 training steps and 1 mixing step by two known
matrices, and a schedule that draws a new matrix in every step. Both clocks take turns; the least
time of each counts.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ssdfl.graph import Clock, Network, links_within, load_network, metropolis

CYCLES, ROUNDS = 10, 7


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--devices", type=int, default=10_000)
    n = parser.parse_args().devices
    free = load_network(f"er:n={n},p={10 / n:g},seed=1")
    shared = replace(free, uplink_Bps=np.full(n, 1e6), downlink_Bps=np.full(n, 1e6))
    print("| | unlimited ms | shared ms | ratio |\n|---|---|---|---|")
    for name, work in (("60 steps, two matrices", known), ("60 steps, a new matrix each", drawn)):
        unlimited_s, shared_s = least(work, (free, shared))
        ratio = shared_s / unlimited_s
        print(f"| {name} | {unlimited_s * 1e3:.1f} | {shared_s * 1e3:.1f} | {ratio:.2f} |")


def known(network: Network) -> float:
    """Seconds of cycles whose two matrices the clock keeps."""
    A = metropolis(network.adjacency)
    A_intra = metropolis(links_within(network.adjacency, np.arange(network.num_devices) // 100))
    start = time.perf_counter()
    clock, ready_s = Clock(network, 19_240), np.zeros(network.num_devices)
    for _ in range(CYCLES):
        for W, compute_s in [(A_intra, network.compute_s)] * 5 + [(A, 0 * network.compute_s)]:
            ready_s, _ = clock.advance(ready_s, W, compute_s)
    return time.perf_counter() - start


def drawn(network: Network) -> float:
    """Seconds of as many steps whose matrices the clock has never seen."""
    A = metropolis(network.adjacency)
    steps = [A.copy() for _ in range(6 * CYCLES)]
    start = time.perf_counter()
    clock, ready_s = Clock(network, 19_240), np.zeros(network.num_devices)
    for W in steps:
        ready_s, _ = clock.advance(ready_s, W, network.compute_s)
    return time.perf_counter() - start


def least(work: Callable[[Network], float], networks: Sequence[Network]) -> list[float]:
    """The least seconds of work on each network, taken in turns."""
    rounds = [[work(network) for network in networks] for _ in range(ROUNDS)]
    return [min(times) for times in zip(*rounds, strict=True)]


if __name__ == "__main__":
    main()
