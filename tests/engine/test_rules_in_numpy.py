"""Every rule's iterates against a loop written anew in NumPy, as the papers print it."""

import numpy as np
import pytest

from problems import DIMENSION, make_problem, problem_job
from ssdfl.engine import run
from ssdfl.methods import RULES

STEPS, RATE = 50, 0.1
GRAPHS = ("ring:n=6", "star:n=6", "er:n=6,p=0.5,seed=2")


def cta(X, W, g):
    while True:
        X = W @ X - RATE * g(X)
        yield X


def atc(X, W, g):
    while True:
        X = W @ (X - RATE * g(X))
        yield X


def gt(X, W, g):
    G = g(X)
    Y = G
    while True:
        X, Y = W @ (X - RATE * Y), W @ Y
        Y, G = Y + g(X) - G, g(X)
        yield X


def ed(X, W, g):
    W_bar = (np.eye(len(W)) + W) / 2
    before = X - RATE * g(X)
    X = W_bar @ before
    yield X
    while True:
        adapted = X - RATE * g(X)
        X, before = W_bar @ (adapted + X - before), adapted
        yield X


def extra(X, W, g):
    identity = np.eye(len(W))
    before, X = X, W @ X - RATE * g(X)
    yield X
    while True:
        bent = (identity + W) @ X - (identity + W) / 2 @ before - RATE * (g(X) - g(before))
        before, X = X, bent
        yield X


def qgm(X, W, g):
    beta, M = 0.9, np.zeros_like(X)
    while True:
        mixed = W @ (X - RATE * (beta * M + g(X)))
        M = beta * M + (1 - beta) * (X - mixed) / RATE
        X = mixed
        yield X


def choco(X, W, g):
    public = np.zeros((len(X), *X.shape))  # public[i, j]: what i knows of j
    while True:
        half = X - RATE * g(X)
        for j in range(len(X)):
            change = half[j] - public[j, j]
            largest = np.argsort(-np.abs(change))[: DIMENSION // 2]
            sent = np.zeros_like(change)
            sent[largest] = change[largest]
            public[:, j] += sent
        pulls = [
            sum(W[i, j] * (public[i, j] - public[i, i]) for j in range(len(X)))
            for i in range(len(X))
        ]
        X = half + 0.4 * np.stack(pulls)
        yield X


def outer(X, W, g):
    start, velocity = X, np.zeros_like(X)
    while True:
        inner = atc(start, W, g)
        for _ in range(4):
            yield next(inner)
        moved = start - next(inner)
        velocity = 0.5 * velocity + moved
        start = start - 0.8 * (moved + 0.5 * velocity)
        yield start


def clipped(X, W, g):
    while True:
        after = X - RATE * g(X)
        for i in range(len(X)):
            neighbours = [j for j in np.flatnonzero(W[i]) if j != i]
            lengths = sorted(np.linalg.norm(X[j] - X[i]) for j in neighbours)
            radius = lengths[-2] if len(lengths) > 1 else lengths[0]
            for j in neighbours:
                apart = X[j] - X[i]
                length = np.linalg.norm(apart)
                after[i] += W[i, j] * apart * (min(1, radius / length) if length else 1)
        X = after
        yield X


def by_coordinates(combine):
    def loop(X, W, g):
        while True:
            heard = [X[np.flatnonzero(W[i])] for i in range(len(X))]
            X = np.stack([combine(rows, X[i]) for i, rows in enumerate(heard)]) - RATE * g(X)
            yield X

    return loop


trimmed = by_coordinates(lambda rows, own: np.sort(rows, 0)[1:-1].mean(0) if len(rows) > 2 else own)
median = by_coordinates(lambda rows, own: np.median(rows, 0))

LOOPS = {
    "cta": (cta, "cta"),
    "atc": (atc, "atc"),
    "gt": (gt, "gt"),
    "ed": (ed, "ed"),
    "extra": (extra, "extra"),
    "qgm": (qgm, "qgm"),
    "choco": (choco, "choco:fraction=0.5,gamma=0.4"),
    "outer": (outer, "outer:rule=atc,rate=0.8,momentum=0.5"),
    "clipped": (clipped, "clipped"),
    "trimmed": (trimmed, "trimmed"),
    "median": (median, "median"),
}


def test_every_rule_has_a_loop():
    assert LOOPS.keys() == RULES.keys()


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", LOOPS)
def test_iterates_agree_with_numpy(name, graph):
    loop, rule = LOOPS[name]
    problem = make_problem("quadratic", 6)
    cycle = {"steps_per_cycle": 5, "cycles": STEPS // 5}
    job = problem_job(problem, rule, graph, STEPS, RATE, **cycle)
    W = job.step(0).W.toarray()
    expected = loop(np.zeros((6, DIMENSION)), W, problem.gradients)
    for _, state in run(job):
        for _ in range(5):
            X = next(expected)
        assert np.abs(state.X.numpy() - X).max() < 1e-10
