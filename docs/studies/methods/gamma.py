"""Which γ suits `choco`: least squares on five networks, each compressor with many γ.

    python docs/studies/methods/gamma.py topk randomk    # a minute of a core; prints Markdown
    python docs/studies/methods/gamma.py                 # all compressors, two minutes

Device i holds f_i(x) = ½ ‖x − b_i‖² with b_i normal, and takes steps with η = 0.1. The measure
is the devices' final distance from the mean of all b_i, against the best γ of the grid on that
network.
"""

from __future__ import annotations

import argparse
import math
from statistics import median

import numpy as np
import torch
from torch import Tensor

from ssdfl.graph import load_network, metropolis
from ssdfl.methods import Compressor, Moment
from ssdfl.methods.compressors import find_compressor
from ssdfl.rng import generator

NETWORKS = (
    "ring:n=20",
    "er:n=20,p=0.2",
    "ba:n=20,m=2",
    "complete:n=20",
    "cliques:cliques=4,size=5",
)
COMPRESSORS = (
    ("topk", "fraction", (0.01, 0.05, 0.1, 0.3)),
    ("randomk", "fraction", (0.05,)),
    ("sign", "block", (256,)),
    ("int8", "block", (256,)),
    ("bf16", "", (0,)),
)
GAMMAS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
NUMBERS, STEPS, RATE = 512, 200, 0.1


def error(W: Tensor, compressor: Compressor, gamma: float) -> float:
    """The devices' distance from the optimum after CHOCO-SGD, over that at the start."""
    b = torch.from_numpy(generator(0, "benchmark").standard_normal((len(W), NUMBERS)))
    x, public = torch.zeros_like(b), torch.zeros_like(b)
    mixed = torch.zeros_like(b)
    for t in range(STEPS):
        half = x - RATE * (x - b)
        sent = compressor(half - public, Moment(t, np.arange(len(W)), 0, RATE))
        public = public + sent
        mixed = mixed + W @ sent
        x = half + gamma * (mixed - public)
        if not x.abs().max() < 1e6:
            return math.inf
    return float((x - b.mean(0)).norm() / b.mean(0).expand_as(x).norm())


def made(name: str, option: str, value: float) -> Compressor:
    """A compressor with one option."""
    return find_compressor(name, {option: str(value)} if option else {})


def line(name: str, option: str, value: float) -> list[str]:
    """Over networks: the best γ, and what the default and others lose against it."""
    compressor = made(name, option, value)
    grid = sorted({*GAMMAS, compressor.gamma})
    best, lost = [], []
    for spec in NETWORKS:
        W = torch.from_numpy(metropolis(load_network(spec, default_seed=0).adjacency).toarray())
        errors = {gamma: error(W, compressor, gamma) for gamma in grid}
        best.append(min(errors, key=errors.__getitem__))
        lost.append(errors[compressor.gamma] / min(errors.values()))
    of = f"`{name}`" + (f", `{option}={value:g}`" if option == "fraction" else "")
    return [
        of,
        f"{compressor.contraction(NUMBERS):.3g}",
        " ".join(f"{gamma:.2g}" for gamma in best),
        f"{compressor.gamma:.2g}",
        f"{median(lost):.2f}",
        f"{max(lost):.2f}",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("compressors", nargs="*", help="all by default")
    asked = parser.parse_args().compressors
    heads = [
        "compressor",
        "δ",
        "best γ on each network",
        "default γ",
        "error / best: median",
        "most",
    ]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name, option, values in COMPRESSORS:
        for value in values if name in asked or not asked else ():
            print(f"| {' | '.join(line(name, option, value))} |", flush=True)


if __name__ == "__main__":
    main()
