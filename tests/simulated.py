"""SSD-FL written anew on problems with known constants, and all quantities of the bounds."""

from dataclasses import dataclass, replace

import numpy as np

from ssdfl.clusters import labels_of, random_clusters
from ssdfl.graph import lazy, links_within, load_network, metropolis, smallest_eigenvalue, spectrum
from ssdfl.theory import (
    ClusterTerms,
    Constants,
    RegimeState,
    consensus_gaps,
    effective_gradient,
    effective_loss,
)

SPECS = (
    "er:n={n},p=0.3",
    "ba:n={n},m=1",
    "ring:n={n}",
    "star:n={n}",
    "complete:n={n}",
    "ws:n={n},k=4,p=0.3",
)


class Quadratic:
    """L_i(θ) = ½ (θ − c_i)ᵀ H_i (θ − c_i)."""

    def __init__(self, n, d, rng):
        roots = rng.standard_normal((n, d, d))
        self.H = roots @ roots.transpose(0, 2, 1) / d
        self.centres = 3 * rng.standard_normal((n, d))
        self.smoothness = float(np.linalg.eigvalsh(self.H)[:, -1].max())

    def gradients(self, X):
        return np.einsum("nij,nj->ni", self.H, X - self.centres)

    def losses(self, X):
        return 0.5 * np.einsum("ni,ni->n", X - self.centres, self.gradients(X))


class Logistic:
    """L_i(θ) = mean of log(1 + exp(−y xᵀθ)) over a device's samples."""

    def __init__(self, n, d, rng):
        self.Z = 2 * rng.standard_normal((n, 8, d)) * rng.choice([-1, 1], size=(n, 8, 1))
        squares = self.Z.transpose(0, 2, 1) @ self.Z / 8
        self.smoothness = float(np.linalg.eigvalsh(squares)[:, -1].max() / 4)

    def gradients(self, X):
        share = 1 / (1 + np.exp(np.einsum("nsd,nd->ns", self.Z, X)))
        return -np.einsum("ns,nsd->nd", share, self.Z) / 8

    def losses(self, X):
        return np.logaddexp(0, -np.einsum("nsd,nd->ns", self.Z, X)).mean(axis=1)


@dataclass(frozen=True)
class Cycle:
    """One simulated cycle: the state of each step, and what bounds need to know."""

    problem: object
    clusters: tuple
    A: object
    A_intra: object
    constants: Constants
    network: ClusterTerms
    terms: tuple
    states: list
    mixed: list

    def loss(self, q, cluster, X=None, centred=True):
        """L̃_s of step q, at its own parameters or at others."""
        rows = list(cluster)
        state = self.states[q]
        X = state.X if X is None else X
        part = RegimeState(X[rows], state.start[rows], state.history[rows], state.mu[rows])
        block = self.A_intra[rows][:, rows]
        return effective_loss(
            part, self.problem.losses(X)[rows], block, self.constants.learning_rate, centred
        )

    def gradient(self, q, X=None):
        """(N, d) ∇L̃ of step q, at its own parameters or at others."""
        state = self.states[q] if X is None else replace(self.states[q], X=X)
        gradients = self.problem.gradients(state.X)
        return effective_gradient(state, gradients, self.A_intra, self.constants.learning_rate)


def terms_of(W, rho, mu):
    """What bounds need to know of a mixing matrix and its devices."""
    if W.shape[0] == 1:
        return ClusterTerms(1, 0.0, 1.0, 0.0, float(rho.max()), float(mu.max()))
    return ClusterTerms(
        W.shape[0],
        spectrum(W).lambda_2,
        smallest_eigenvalue(W),
        0.0,
        float(rho.max()),
        float(mu.max()),
    )


def simulate(seed, spec=None, cycles=2):
    """The last of a few cycles of SSD-FL with full gradients on a random problem."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 11)), int(rng.integers(1, 4))
    network = load_network(
        (spec or rng.choice(SPECS[: 5 if n < 6 else 6])).format(n=n), default_seed=seed % 1000
    )
    n = network.num_devices
    weights = metropolis if rng.random() < 0.5 else lazy
    clusters = random_clusters(network, rng)
    inside = links_within(network.adjacency, labels_of(clusters, n))
    A, A_intra = weights(network.adjacency), weights(inside)
    problem = (Quadratic if rng.random() < 0.5 else Logistic)(n, d, rng)
    kinds = rng.integers(3, size=n)
    rho, mu = (
        np.where(kinds == 1, rng.uniform(0, 0.9, n), 0),
        np.where(kinds == 2, rng.uniform(0, 1, n), 0),
    )
    η = float(rng.uniform(0.02, 0.6) / (problem.smoothness + 1))
    τ_a, τ_r = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    X = np.repeat(3 * rng.standard_normal((1, d)), n, axis=0)
    largest = 0.0
    for _ in range(cycles):
        start, history, states = X, np.zeros_like(X), []
        for _ in range(τ_a):
            states.append(RegimeState(X, start, history, mu))
            G = problem.gradients(X)
            largest = max(largest, float(np.linalg.norm(G, axis=1).max()))
            X = X - η * effective_gradient(states[-1], G, A_intra, η)
            history = rho[:, None] * (history + G)
        states.append(RegimeState(X, start, history, mu))
        mixed = [X]
        for _ in range(τ_r):
            X = A @ X
            mixed.append(X)
    constants = Constants(
        learning_rate=η, tau_a=τ_a, tau_r=τ_r, gradient_bound=max(largest, 1e-9),
        smoothness=problem.smoothness, variance_floor=0.0,
    )  # fmt: skip
    terms = tuple(
        terms_of(A_intra[list(c)][:, list(c)], rho[list(c)], mu[list(c)]) for c in clusters
    )
    return Cycle(
        problem, clusters, A, A_intra, constants, terms_of(A, rho, mu), terms, states, mixed
    )


def measured_and_bounds(cycle, theory, centred):
    """(statement, measured, bound) of everything that a cycle can be held against."""
    constants, τ_a = cycle.constants, cycle.constants.tau_a
    gaps_before, _ = consensus_gaps(cycle.states[0].X, cycle.clusters)
    gaps_after, across = consensus_gaps(cycle.mixed[0], cycle.clusters)
    initials = [cycle.loss(0, cluster, centred=centred) for cluster in cycle.clusters]
    gradients = [cycle.gradient(q) for q in range(τ_a)]
    for s, (cluster, term) in enumerate(zip(cycle.clusters, cycle.terms, strict=True)):
        rows = list(cluster)
        for later in range(τ_a):
            for earlier in range(later):
                step = cycle.states[later].X[rows] - cycle.states[earlier].X[rows]
                distance = float(np.linalg.norm(step))
                change = gradients[later][rows] - gradients[earlier][rows]
                yield (
                    "Proposition 1",
                    np.linalg.norm(change),
                    theory.gradient_gap(constants, term, distance),
                )
                slope = float((gradients[earlier][rows] * step).sum())
                rise = cycle.loss(later, cluster, centred=centred) - cycle.loss(
                    earlier, cluster, centred=centred
                )
                extra = ()
                if centred:
                    moved = cycle.states[later].X[rows] - cycle.states[0].X[rows]
                    extra = (float(np.linalg.norm(moved)),)
                yield "Corollary 1", rise, theory.loss_gap(constants, term, slope, distance, *extra)
        squares = sum(float((g[rows] ** 2).sum()) for g in gradients)
        yield "Theorem 1", squares, theory.intra_convergence(constants, term, initials[s])
        yield "Lemma 1", gaps_after[s], theory.intra_consensus(constants, term, gaps_before[s])
    end = np.linalg.norm(cycle.mixed[-1] - cycle.mixed[-1].mean(axis=0))
    yield "Lemma 2", end, theory.inter_consensus(constants, cycle.network, across)
    while_mixing = [cycle.gradient(τ_a, X) for X in cycle.mixed[:-1]]
    total = sum(float((g**2).sum()) for g in [*gradients, *while_mixing])
    if centred:
        bound = theory.integrated_convergence(
            constants, cycle.network, cycle.terms, initials, across
        )
    else:
        start = np.linalg.norm(cycle.states[0].X - cycle.states[0].X.mean(axis=0))
        bound = theory.integrated_convergence(
            constants, cycle.network, cycle.terms, sum(initials), start
        )
    yield "Theorem 2", total, bound
