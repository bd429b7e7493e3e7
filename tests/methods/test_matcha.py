"""MATCHA's optimisations, against closed forms and a solver of semidefinite programmes."""

import cvxpy as cp
import numpy as np
import pytest

from ssdfl.errors import InputError
from ssdfl.graph import load_network
from ssdfl.methods import ScheduleInputs, find_method, matcha
from ssdfl.methods.matcha import plan_matchings


def laplacians(plan, n):
    """Of each matching."""
    found = np.zeros((len(plan.probability), n, n))
    for i, j, k in zip(plan.i, plan.j, plan.matching, strict=True):
        e = np.zeros(n)
        e[i], e[j] = 1, -1
        found[k] += np.outer(e, e)
    return found


def connectivity(L):
    return np.linalg.eigvalsh(L)[1]


@pytest.mark.parametrize(
    "spec", ["sites:sites=3,size=4,seed=0", "ba:n=12,m=2,seed=1", "barbell:size=4"]
)
@pytest.mark.parametrize("budget", [0.2, 0.6])
def test_probabilities_connect_as_well_as_a_semidefinite_programme(spec, budget):
    network = load_network(spec)
    n = network.num_devices
    plan = plan_matchings(network.adjacency, budget)
    M, L = len(plan.probability), laplacians(plan, n)
    p, value = cp.Variable(M), cp.Variable()
    mean = sum(p[k] * L[k] for k in range(M))
    connected = mean + 100 * np.ones((n, n)) / n - value * np.eye(n) >> 0
    cp.Problem(cp.Maximize(value), [connected, p >= 0, p <= 1, cp.sum(p) <= budget * M]).solve()
    ours = connectivity(np.tensordot(plan.probability, L, 1))
    assert ours == pytest.approx(value.value, rel=2e-3)
    assert ours > 1.02 * connectivity(budget * L.sum(axis=0))
    assert plan.probability.sum() <= budget * M + 1e-9
    assert plan.probability.min() >= 0
    assert plan.probability.max() <= 1


@pytest.mark.parametrize("spec", ["ring:n=8", "complete:n=7", "torus:rows=3,cols=3"])
def test_the_weight_of_all_links_is_the_best_constant(spec):
    """W = I − α L agrees fastest with α = 2 / (λ₂ + λ_N), if that leaves no weight below 0."""
    network = load_network(spec)
    plan = plan_matchings(network.adjacency, 1.0)
    values = np.linalg.eigvalsh(laplacians(plan, network.num_devices).sum(axis=0))
    degree = network.adjacency.sum(axis=1).max()
    assert plan.weight == pytest.approx(min(2 / (values[1] + values[-1]), 1 / degree), abs=1e-4)


def test_the_weight_minimises_what_random_matchings_leave(monkeypatch):
    """ρ(α) from all 2^M draws, one by one, is least at the weight found; no limit on α here."""
    monkeypatch.setattr(matcha._Part, "largest_degree", 1)
    network = load_network("barbell:size=3")
    plan = plan_matchings(network.adjacency, 0.5)
    L, p = laplacians(plan, 6), plan.probability

    def rho(alpha):
        total = np.zeros((6, 6))
        for draw in np.ndindex(*[2] * len(p)):
            W = np.eye(6) - alpha * np.tensordot(np.array(draw, dtype=float), L, 1)
            total += np.prod(np.where(draw, p, 1 - p)) * W @ W
        return np.linalg.eigvalsh(total - 1 / 6)[-1]

    alphas = np.linspace(0.01, 1, 400)
    best = min(alphas, key=rho)
    assert plan.weight == pytest.approx(best, abs=5e-3)
    assert 0.02 < best < 0.99


def test_a_limit_keeps_weights_positive():
    """On a star the best constant, 2 / (1 + n), would leave the centre a weight below 0."""
    plan = plan_matchings(load_network("star:n=8").adjacency, 1.0)
    assert plan.weight == pytest.approx(1 / 7)


def test_matchings_are_used_as_often_as_their_probabilities_say():
    network = load_network("ba:n=12,m=2,seed=1")
    plan = plan_matchings(network.adjacency, 0.4)
    schedule = find_method("matcha:budget=0.4").schedule(ScheduleInputs(network, (), seed=2))
    up = np.mean([schedule(t).W.toarray()[plan.i, plan.j] > 0 for t in range(1500)], axis=0)
    assert np.ptp(plan.probability) > 0.1
    assert up == pytest.approx(plan.probability[plan.matching], abs=0.06)
    assert schedule(3).W.toarray()[plan.i, plan.j].max() == pytest.approx(plan.weight[0])


def test_parts_without_a_link_between_them_are_planned_apart():
    network = load_network("cliques:cliques=3,size=3")
    inside = ScheduleInputs(network, ((0, 1, 2), (3, 4, 5), (6, 7, 8))).inside(
        ((0, 1, 2), (3, 4, 5), (6, 7, 8))
    )
    plan = plan_matchings(inside, 0.5)
    assert len(plan.probability) == 9
    assert plan.probability == pytest.approx(0.5, abs=1e-3)


def test_too_many_links(monkeypatch):
    monkeypatch.setattr(matcha, "LINK_LIMIT", 5)
    with pytest.raises(InputError, match="links for matcha = 6"):
        plan_matchings(load_network("complete:n=4").adjacency, 0.5)
