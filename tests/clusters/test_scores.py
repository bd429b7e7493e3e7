import dataclasses
import math

import numpy as np
import pytest

from ssdfl.clusters import (
    SCORES,
    AmplificationSettings,
    Device,
    Exchange,
    FormationSettings,
    ScoreInputs,
    explain,
    form_clusters,
    optimizer_distance,
    unknown_devices,
)
from ssdfl.clusters.scores import STRONG_DRIFT, TRAINING, find_score
from ssdfl.errors import InputError
from ssdfl.graph import Clock, load_network, metropolis
from ssdfl.theory import ClusterTerms, Constants, published, slowdown
from ssdfl.theory.pilot import SIGNAL

ONE_LABEL_EACH = [Device(np.eye(4)[k % 4]) for k in range(12)]


def score_inputs(spec="sites:sites=3,size=4,seed=1", **changes):
    network = load_network(spec)
    return ScoreInputs(network, ONE_LABEL_EACH[: network.num_devices], **changes)


def ends(n):
    return (tuple(range(n)),), tuple((device,) for device in range(n))


@pytest.mark.parametrize("early", [True, False])
def test_time_is_the_clocks_cycle_times_the_predicted_slowdown(early):
    constants = Constants(tau_a=2, tau_r=1, local_steps=3)
    here = score_inputs(constants=constants, message_bytes=1000, sends_early=early)
    sites = tuple(tuple(range(4 * k, 4 * k + 4)) for k in range(3))
    clock = Clock(here.network, 1000, sends_early=early)
    ready = np.zeros(12)
    for _ in range(3):
        for W, steps in ((here.A_intra(sites), 3), (here.A_intra(sites), 3), (here.A, 0)):
            ready, _ = clock.advance(ready, W, here.network.compute_s * steps)
    expected = ready.max() / 3 * slowdown(here.disagreement(sites), 12)
    assert SCORES["time"](here, sites) == pytest.approx(expected)


def test_clusters_of_a_rule_that_sends_after_training_avoid_links_that_computing_would_hide():
    """Links of 1.8 s cost nothing behind 2 s of computing, but nearly double a step after it."""
    network = load_network("sites:sites=3,size=4,seed=1")
    across = network.links[:, 0] // 4 != network.links[:, 1] // 4
    latency_s = np.where(across, 1.8, 0.001)
    slow = dataclasses.replace(network, latency_s=latency_s, compute_s=np.ones(12))
    sites_differ = [Device(np.full(3, 0.85 / 3) + 0.15 * np.eye(3)[k // 4]) for k in range(12)]
    early, late = (
        form_clusters(
            slow, sites_differ, FormationSettings(message_bytes=1, sends_early=sends_early)
        )
        for sends_early in (True, False)
    )
    assert early.num_clusters == 1
    assert late.clusters == tuple(tuple(range(4 * k, 4 * k + 4)) for k in range(3))
    assert (early.exchange, late.exchange) == (Exchange(1), Exchange(1, sends_early=False))
    one_s = explain(slow, early).cycle_s
    assert one_s == pytest.approx(TRAINING.tau_a * 2 + TRAINING.tau_r * 1.8, rel=0.01)
    assert explain(slow, late).one_cluster_s == pytest.approx(
        one_s + TRAINING.tau_a * 1.8, rel=0.01
    )


def test_bytes_count_links_inside_clusters_in_training_steps_and_all_links_in_mixing_steps():
    here = ScoreInputs(
        load_network("ring:n=6"), unknown_devices(load_network("ring:n=6")), message_bytes=10
    )
    clusters = ((0, 1, 2), (3, 4, 5))
    assert SCORES["bytes"](here, clusters) == 10 * 2 * (5 * 4 + 1 * 6)


def test_unknown_devices_do_not_drift():
    network = load_network("er:n=9,p=0.3")
    here = ScoreInputs(network, unknown_devices(network))
    assert not here.devices_differ
    assert SCORES["drift"](here, ends(9)[1]) == 0


def test_drift_scales_with_the_square_of_the_step():
    one, two = (score_inputs(constants=Constants(learning_rate=η)) for η in (0.01, 0.02))
    alone = ends(12)[1]
    assert SCORES["drift"](two, alone) == pytest.approx(4 * SCORES["drift"](one, alone))
    assert SCORES["drift"](one, ends(12)[0]) < SCORES["drift"](one, alone)


def test_stationarity_is_the_mean_of_theorem_1():
    here = score_inputs("barbell:size=3")
    alone = ends(6)[1]
    expected = published.intra_convergence(
        here.constants, ClusterTerms(1), here.constants.initial_loss
    )
    assert SCORES["stationarity"](here, alone) == pytest.approx(expected)


def test_stationarity_rises_with_alpha_and_with_what_differences_contribute():
    one = ends(6)[0]
    plain = score_inputs("barbell:size=3", constants=Constants(learning_rate=1e-3))
    noisier = score_inputs(
        "barbell:size=3", constants=Constants(learning_rate=1e-3, variance_floor=0.5)
    )
    amplified = score_inputs(
        "barbell:size=3",
        constants=Constants(learning_rate=1e-3),
        amplification=AmplificationSettings(data_min=0.1, data_max=0.5),
    )
    score = SCORES["stationarity"]
    assert score(plain, one) < min(score(noisier, one), score(amplified, one))
    β = plain.terms(one[0]).amplification / 0.2
    assert amplified.terms(one[0]).amplification == pytest.approx(0.1 + 0.4 * β)


def test_integrated_prefers_the_bells_to_the_whole_barbell_but_single_devices_to_both():
    """As printed, γ^eff holds (1 − λ_N(Ã)) / η, which single devices lack; Φ_min excludes them."""
    network = load_network("barbell:size=5")
    constants = Constants(tau_a=5, learning_rate=0.002)
    here = ScoreInputs(network, unknown_devices(network), constants)
    bells = ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9))
    score = SCORES["integrated"]
    one, alone = ends(10)
    assert score(here, alone) < score(here, bells) < score(here, one)
    plan = form_clusters(network, None, FormationSettings(constants, score="integrated"))
    assert plan.choice == "feasible"
    assert all(len(cluster) > 1 for cluster in plan.clusters)


@pytest.mark.parametrize("name", SCORES)
def test_every_score_forms_a_plan_that_names_it(name):
    network = load_network("er:n=12,p=0.3,seed=2")
    plan = form_clusters(network, ONE_LABEL_EACH, FormationSettings(score=name))
    assert plan.score_name == name
    assert all(c.score == SCORES[name](inputs_of(network), c.clusters) for c in plan.candidates)


def inputs_of(network):
    return ScoreInputs(network, ONE_LABEL_EACH)


def test_a_score_of_ones_own_by_name():
    network = load_network("torus:rows=3,cols=4")
    settings = FormationSettings(
        Constants(learning_rate=1e-4), score="helpers:far_from_three_clusters"
    )
    assert form_clusters(network, unknown_devices(network), settings).num_clusters == 3
    with pytest.raises(InputError, match="score = nothing"):
        find_score("nothing")


def test_the_price_only_holds_for_predictions_of_known_devices():
    known, unknown = (
        score_inputs(),
        ScoreInputs(load_network("ring:n=5"), unknown_devices(load_network("ring:n=5"))),
    )
    assert FormationSettings(price=1.2).price_for(known) == 1.2
    assert FormationSettings(price=1.2).price_for(unknown) == math.inf
    assert FormationSettings(score="stationarity").price_for(known) == math.inf


def test_descriptors_must_match_the_network():
    with pytest.raises(InputError, match="number of device descriptors = 12: expected 5"):
        ScoreInputs(load_network("ring:n=5"), ONE_LABEL_EACH)


def test_mixing_matrices_are_the_networks_own():
    here = score_inputs("ring:n=6")
    assert (metropolis(here.network.adjacency) != here.A).nnz == 0


@pytest.mark.parametrize("score", [lambda *_: math.nan, lambda *_: None, lambda *_: 1 / 0])
def test_scores_that_are_no_numbers(score):
    network = load_network("ring:n=5")
    with pytest.raises(InputError, match="of 1 clusters"):
        form_clusters(network, unknown_devices(network), FormationSettings(score=score))


def test_a_negative_score_does_not_overrule_the_threshold():
    network = load_network("ring:n=6")
    settings = FormationSettings(score=lambda _, clusters: -len(clusters))
    plan = form_clusters(network, unknown_devices(network), settings)
    assert plan.choice == "feasible"
    assert plan.num_clusters == max(c.num_clusters for c in plan.candidates if c.feasible)


def test_terms_of_a_cluster_with_mixed_optimizers():
    network = load_network("path:n=4")
    labels = np.array([1.0, 1.0])
    devices = [
        Device(labels, rho=0.8),
        Device(labels, mu=0.1),
        Device(labels, rho=0.5),
        Device(labels, mu=0.3),
    ]
    inputs = ScoreInputs(network, devices)
    terms = inputs.terms((0, 1, 2))
    assert (terms.size, terms.rho, terms.mu) == (3, 0.8, 0.1)
    assert (inputs.terms((1,)).rho, inputs.terms((1,)).mu) == (0.0, 0.1)
    pairs = [optimizer_distance(a, b) for a in devices[:3] for b in devices[:3]]
    assert terms.amplification == pytest.approx(0.2 * np.mean(pairs) / 3)
    eigenvalues = np.linalg.eigvalsh(metropolis(load_network("path:n=3").adjacency).toarray())
    assert terms.lambda_2 == pytest.approx(eigenvalues[-2])
    assert terms.lambda_min == pytest.approx(eigenvalues[0])


def drifting(num_devices=12):
    """Devices with one label each on a thin network, where the law expects much drift."""
    devices = [Device(np.eye(4)[k % 4]) for k in range(num_devices)]
    return ScoreInputs(load_network(f"ba:n={num_devices},m=1,seed=1"), devices)


def test_learning_is_simulated_where_devices_drift_far():
    here = drifting()
    linear = dataclasses.replace(here, simulates=False)
    one, alone = ends(12)
    assert linear.slowdown(one) > STRONG_DRIFT
    assert linear.pilot is None
    assert here.slowdown(one) == linear.slowdown(one)
    expected = here.pilot.cycles(here.A_intra(alone)) / here.pilot.cycles(here.A)
    assert here.slowdown(alone) == pytest.approx(expected * linear.slowdown(one))
    assert SCORES["bytes"](here, alone) == SCORES["bytes"](linear, alone)


def test_learning_is_not_simulated_for_mild_drift_sketches_or_many_devices():
    balanced = [Device(np.ones(4)) for _ in range(12)]
    assert dataclasses.replace(drifting(), devices=balanced).pilot is None
    sketched = [Device(np.ones(1), sketch=9 * np.eye(4)[k % 4]) for k in range(12)]
    assert dataclasses.replace(drifting(), devices=sketched).pilot is None
    assert drifting(100).pilot is not None
    assert drifting(101).pilot is None


def test_the_simulation_knows_the_rule_and_takes_shorter_steps_with_smaller_rates():
    here = drifting()
    assert not here.pilot.corrects
    assert dataclasses.replace(here, corrects=True).pilot.corrects
    x, first = np.zeros((2, 12, 4)), []
    for learning_rate in (0.01, 0.05, 0.1, 0.3):
        constants = dataclasses.replace(TRAINING, learning_rate=learning_rate, local_steps=2)
        pilot = dataclasses.replace(here, constants=constants).pilot
        first.append(pilot._moves(x)[0].max())  # of a label that a device holds alone: 3/4 a
    np.testing.assert_allclose(np.divide(first, 0.75 * SIGNAL), [0.1, 0.5, 1.0, 1.0])


def test_a_rule_that_corrects_drift_is_simulated_at_any_drift():
    """Relative to devices that hold all labels, which no cluster slows down."""
    devices = [Device(np.ones(4) + 0.1 * np.eye(4)[k % 4]) for k in range(12)]
    mild = dataclasses.replace(drifting(), devices=devices)
    assert mild.pilot is None
    corrected = dataclasses.replace(mild, corrects=True)
    one, alone = ends(12)
    assert corrected.slowdown(one) == pytest.approx(1.0, abs=0.01)
    assert corrected.slowdown(one) <= corrected.slowdown(alone) < mild.slowdown(alone)
    alike = dataclasses.replace(corrected, devices=[Device(np.ones(4))] * 12)
    assert alike.pilot is None


def test_a_rule_that_corrects_drift_gets_more_clusters_where_links_are_slow():
    """Alone on a ring of slow links, devices drift far, which the correction undoes."""
    network = load_network("ring:n=10")
    slow = dataclasses.replace(network, latency_s=np.full(10, 60.0), compute_s=np.ones(10))
    devices = [Device(np.eye(10)[k]) for k in range(10)]
    plain, corrected = (
        form_clusters(slow, devices, FormationSettings(message_bytes=1, corrects=corrects))
        for corrects in (False, True)
    )
    assert plain.num_clusters < corrected.num_clusters
    assert corrected.exchange == Exchange(1, corrects=True)


def test_formation_scores_its_candidates_by_the_simulation():
    here = drifting()
    plan = form_clusters(here.network, here.devices, FormationSettings())
    quick = form_clusters(here.network, here.devices, FormationSettings(score="bytes"))
    for candidate in plan.candidates:
        assert candidate.score == SCORES["time"](here, candidate.clusters)
    assert len(plan.candidates) == len(quick.candidates) == 12
    assert min(plan.candidates, key=lambda one: one.score).score <= plan.chosen.score
