"""One table over every method, then what is special about each."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import eye_array

from helpers import TOPOLOGY_SPECS
from ssdfl.clusters import labels_of, random_clusters, spectral_bisection
from ssdfl.errors import InputError
from ssdfl.graph import (
    averaging,
    check_mixing,
    fastest,
    lazy,
    links_within,
    load_network,
    metropolis,
)
from ssdfl.methods import METHODS, ScheduleInputs, find_method, period_of
from ssdfl.rng import generator

TAU_A, TAU_R = 3, 2


def setting_on(spec, clusters=2, **changes):
    network = load_network(spec)
    return ScheduleInputs(
        network, spectral_bisection(network, clusters), tau_a=TAU_A, tau_r=TAU_R, **changes
    )


def same(W, V):
    return abs(W - V).max() < 1e-12


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("spec", TOPOLOGY_SPECS)
def test_every_method_on_every_topology(method, spec):
    setting = setting_on(spec)
    schedule, again = METHODS[method].schedule(setting), METHODS[method].schedule(setting)
    # References mix devices without a link.
    adjacency = None if METHODS[method].reference else setting.network.adjacency
    for t in (*range(2 * (TAU_A + TAU_R)), 997):
        step = schedule(t)
        assert step.train.dtype == bool
        assert step.train.tolist() == [t % (TAU_A + TAU_R) < TAU_A] * setting.network.num_devices
        check_mixing(step.W, adjacency)
    # Seekable: asked for in another order, by another schedule, steps are the same.
    for t in (997, 4, 0, 7):
        assert same(schedule(t).W, again(t).W)


def test_ssdfl_mixes_inside_clusters_then_everywhere():
    setting = setting_on("barbell:size=4")
    schedule = METHODS["ssdfl"].schedule(setting)
    labels = np.arange(8) // 4
    assert same(schedule(0).W, metropolis(links_within(setting.network.adjacency, labels)))
    assert same(schedule(TAU_A).W, metropolis(setting.network.adjacency))


@pytest.mark.parametrize(("clusters", "twin"), [(1, "sdfl"), (8, "pdfl")])
def test_ends_of_ssdfl(clusters, twin):
    setting = setting_on("barbell:size=4", clusters=clusters)
    ours, other = METHODS["ssdfl"].schedule(setting), METHODS[twin].schedule(setting)
    assert all(same(ours(t).W, other(t).W) for t in range(10))


def test_pdfl_trains_alone():
    assert same(METHODS["pdfl"].schedule(setting_on("ring:n=5"))(0).W, eye_array(5))


@pytest.mark.parametrize(("probability", "twin"), [(1.0, "sdfl"), (0.0, None)])
def test_limits_of_stc(probability, twin):
    setting = setting_on("er:n=9,p=0.3", link_probability=probability)
    expected = METHODS[twin].schedule(setting)(0).W if twin else eye_array(9)
    assert all(same(METHODS["stc"].schedule(setting)(t).W, expected) for t in range(6))


def test_stc_draws_each_link_with_its_probability():
    setting = setting_on("complete:n=6", link_probability=0.3)
    schedule = METHODS["stc"].schedule(setting)
    up = np.mean([(schedule(t).W.toarray()[np.triu_indices(6, 1)] > 0) for t in range(400)], axis=0)
    assert up == pytest.approx(np.full(15, 0.3), abs=0.1)


def test_cstc_never_crosses_its_clusters_while_training():
    setting = setting_on("ring:n=12", link_probability=1.0, seed=2)
    schedule = METHODS["cstc"].schedule(setting)
    clusters = random_clusters(setting.network, generator(setting.seed, "clusters"))
    labels = labels_of(clusters, 12)
    assert 1 < len(clusters) < 12
    for t in (0, 1, 2, 5):
        mixed = np.argwhere(schedule(t).W.toarray() > 0)
        assert (labels[mixed[:, 0]] == labels[mixed[:, 1]]).all()
    assert same(schedule(TAU_A).W, metropolis(setting.network.adjacency))
    seeds = [
        METHODS["cstc"].schedule(setting_on("ring:n=12", link_probability=1.0, seed=s))(0).W.nnz
        for s in range(8)
    ]
    assert len(set(seeds)) > 1


@settings(max_examples=60, deadline=None)
@given(
    method=st.sampled_from(list(METHODS)),
    kind=st.sampled_from(["er:n={n},p=0.3", "ba:n={n},m=2", "rgeo:n={n},radius=0.4", "path:n={n}"]),
    n=st.integers(3, 14),
    seed=st.integers(0, 5),
    t=st.integers(0, 10**6),
)
def test_every_step_on_random_networks_is_doubly_stochastic(method, kind, n, seed, t):
    network = load_network(kind.format(n=n), default_seed=seed)
    setting = ScheduleInputs(network, spectral_bisection(network, min(3, n)), tau_r=2, seed=seed)
    adjacency = None if METHODS[method].reference else network.adjacency
    check_mixing(METHODS[method].schedule(setting)(t).W, adjacency)


def test_gossip_pairs_devices_until_no_pair_is_left():
    setting = setting_on("er:n=12,p=0.3,seed=3")
    schedule = METHODS["gossip"].schedule(setting)
    seen = np.zeros((12, 12))
    for t in range(60):
        W = schedule(t).W.toarray()
        linked = W - np.diag(np.diag(W))
        assert set(np.unique(linked)) <= {0, 0.5}
        assert (np.count_nonzero(linked, axis=1) <= 1).all()
        alone = np.flatnonzero(np.diag(W) == 1)
        assert setting.network.adjacency[alone][:, alone].nnz == 0
        seen += linked
    assert ((seen > 0) == setting.network.adjacency.toarray()).all()


@pytest.mark.parametrize("method", ["cgossip", "cmatcha"])
def test_clustered_ones_stay_inside_the_plans_clusters_while_training(method):
    setting = setting_on("sites:sites=3,size=3,seed=1", clusters=3)
    labels = labels_of(setting.clusters, 9)
    schedule = METHODS[method].schedule(setting)
    crossed = 0
    for t in range(60):
        i, j = np.nonzero(schedule(t).W.toarray())
        crosses = bool((labels[i] != labels[j]).any())
        assert not (crosses and t % (TAU_A + TAU_R) < TAU_A)
        crossed += crosses
    assert crossed > 0


def test_tthf_is_central_where_everyone_is_linked_and_weighs_the_same():
    setting = setting_on("complete:n=6", clusters=1)
    tthf, central = METHODS["tthf"].schedule(setting), METHODS["central"].schedule(setting)
    for t in range(TAU_A + 1):
        assert same(tthf(t).W, central(t).W)
        assert same(tthf(t).W, averaging(6))


@pytest.mark.parametrize("method", ["tthf", "hier"])
def test_servers_average_once_a_cycle(method):
    setting = setting_on("barbell:size=4")
    schedule = METHODS[method].schedule(setting)
    assert period_of(schedule) == TAU_A + TAU_R
    assert same(schedule(TAU_A).W, averaging(8))
    assert same(schedule(TAU_A + 1).W, eye_array(8))
    assert same(schedule(2 * TAU_A + TAU_R).W, averaging(8))


def test_tthf_trains_as_ssdfl_and_hier_by_the_mean_of_each_cluster():
    setting = setting_on("sites:sites=2,size=4,density=0.6,seed=1")
    ssdfl, tthf, hier = (METHODS[name].schedule(setting)(0).W for name in ("ssdfl", "tthf", "hier"))
    assert same(tthf, ssdfl)
    X = np.arange(8.0)
    means = [X[list(cluster)].mean() for cluster in setting.clusters]
    assert hier @ X == pytest.approx(np.array(means)[labels_of(setting.clusters, 8)])


def test_matcha_with_budget_1_uses_every_link_at_every_step():
    setting = setting_on("er:n=9,p=0.3,seed=1")
    schedule = find_method("matcha:budget=1").schedule(setting)
    assert period_of(schedule) == TAU_A + TAU_R
    W = schedule(5).W.toarray()
    assert ((W - np.diag(np.diag(W)) > 0) == setting.network.adjacency.toarray()).all()


@pytest.mark.parametrize("budget", ["0", "1.5", "-1", "nan"])
def test_matcha_refuses_a_budget_that_cannot_be(budget):
    with pytest.raises(InputError, match="budget = .*: expected a number above 0, at most 1"):
        find_method(f"matcha:budget={budget}").schedule(setting_on("ring:n=5"))


def test_matcha_refuses_an_option_that_it_does_not_have():
    with pytest.raises(
        InputError, match="method matcha: bugdet = 1: expected one of the options budget"
    ):
        find_method("matcha:bugdet=1")


@pytest.mark.parametrize("rule", [lazy, fastest])
def test_other_weights(rule):
    setting = setting_on("barbell:size=3", weights=rule)
    assert same(METHODS["sdfl"].schedule(setting)(0).W, rule(setting.network.adjacency))
    check_mixing(METHODS["stc"].schedule(setting)(0).W, setting.network.adjacency)


@pytest.mark.parametrize("change", [{"tau_a": 0}, {"tau_r": 0}, {"link_probability": 1.5}])
def test_impossible_settings(change):
    network = load_network("ring:n=4")
    with pytest.raises(InputError, match=next(iter(change))):
        ScheduleInputs(network, (), **change)


def test_find_method():
    assert find_method("ssdfl") == METHODS["ssdfl"]
    own = find_method("ssdfl.methods.schedules:pdfl")
    assert own.schedule is METHODS["pdfl"].schedule
    assert own.needs_plan
    assert own.name == "ssdfl.methods.schedules:pdfl"
    with pytest.raises(InputError, match="method = sdffl: expected one of ssdfl, sdfl"):
        find_method("sdffl")
    with pytest.raises(InputError, match="expected a function"):
        find_method("ssdfl.methods.schedules:METHODS")
