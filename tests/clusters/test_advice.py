import itertools
import math
from dataclasses import replace

import pytest

from ssdfl.clusters import Candidate, FormationSettings, choose, form_clusters
from ssdfl.clusters.advice import reweighed
from ssdfl.graph import Conductance
from ssdfl.theory import Constants

THIN_SITES = "sites:sites=4,size=12,density=0.4,links=2"


def candidate(num_clusters, score, conductance, threshold=0.5):
    clusters = tuple((k,) for k in range(num_clusters))
    return Candidate(
        clusters, score, threshold, Conductance(conductance, conductance, ()), (), "bisection"
    )


def test_of_equal_predicted_cost_fewer_clusters_win_though_none_is_feasible():
    one, ten, many = candidate(1, 2.0, 0.1), candidate(10, 1.0, 0.2), candidate(32, 0.99, 0.4)
    assert choose([one, ten, many], indifference=1.03) == (ten, "fewest")
    assert choose([one, ten, many]) == (many, "nearest")  # a score that predicts no cost
    assert choose([one, ten, candidate(32, 0.99, 0.6)], indifference=1.03)[1] == "feasible"
    assert choose([one, candidate(10, 1.1, 0.2), many], indifference=1.03) == (many, "nearest")
    assert (
        choose([candidate(2, math.inf, 0.2), candidate(3, 1.0, 0.4)], indifference=1.03)[1]
        == "nearest"
    )


def test_of_equal_predicted_cost_fewer_clusters_win_over_feasible_ones_if_devices_are_unknown():
    four, eight = candidate(4, 1.01, 0.2), candidate(8, 1.0, 0.6)

    def choice(candidates, assumed=lambda c: c.score):
        return choose(candidates, indifference=1.03, assumed=assumed)

    assert choice([four, eight]) == (four, "fewest")
    assert choice([four, eight], assumed=None) == (eight, "feasible")  # strict
    assert choice([candidate(4, 1.1, 0.2), eight]) == (eight, "feasible")
    assert choice([candidate(16, 0.5, 0.2), eight]) == (eight, "feasible")
    one = candidate(1, 1.0, 0.1)  # as cheap as the others: clusters save nothing
    assert choice([one, four, eight]) == (eight, "feasible")
    assert choice([candidate(1, 1.1, 0.1), four, eight]) == (four, "fewest")


def wide_area(tmp_path):
    """Four sites of six devices, meshed inside; one slow link between each two sites."""
    inside = [
        f"{site}{i},{site}{j},0.5,125e6"
        for site in "abcd"
        for i in range(6)
        for j in range(i)
        if i - j < 3
    ]
    between = [f"{a}0,{b}0,30,12.5e6" for a, b in itertools.combinations("abcd", 2)]
    path = tmp_path / "wan.csv"
    path.write_text("\n".join(["source,target,latency_ms,bandwidth_Bps", *inside, *between]))
    return path


def test_sites_are_not_split_to_reach_the_threshold(tmp_path):
    network = wide_area(tmp_path)
    plan = form_clusters(network)
    strict = form_clusters(network, None, FormationSettings(price=math.inf))
    assert strict.chosen.feasible
    assert strict.num_clusters > 4
    assert plan.choice == "fewest"
    assert plan.num_clusters <= 4
    assert plan.chosen.score <= 1.03 * strict.chosen.score
    site_of = {name: name[0] for name in plan.names}
    clusters = [{site_of[plan.names[i]] for i in cluster} for cluster in plan.clusters]
    assert sum(map(len, clusters)) == 4  # every site is whole
    assert "the same time with fewer clusters as the best that keeps to it" in plan.remark


def test_sites_are_found_without_devices_though_they_conduct_too_little():
    plan = form_clusters(THIN_SITES)
    assert (plan.num_clusters, plan.choice) == (4, "assumed")
    assert sorted(map(len, plan.clusters)) == [12] * 4


def test_advice_is_tried(tmp_path):
    plan = form_clusters(THIN_SITES)
    assert "Tried: " in plan.remark
    advised = plan.remark.partition("lower the learning rate from 0.05 to ")[2]
    rate = float(advised.partition(",")[0])
    constants = replace(FormationSettings().constants, learning_rate=rate)
    again = form_clusters(THIN_SITES, None, FormationSettings(constants))
    assert again.chosen.feasible
    assert again.clusters == plan.clusters
    assert f"S = {again.num_clusters} reaches it" in advised
    assert again.remark == ""


def test_scores_within_a_percent_are_equal_to_advice_only_if_they_predict_costs():
    plan = form_clusters("er:n=16,p=0.25,seed=1", None, FormationSettings(score="drift"))
    assert (plan.choice, plan.num_clusters) == ("nearest", 5)
    near = tuple(replace(c, score=1 + abs(c.num_clusters - 5) / 1000) for c in plan.candidates)
    assert "S = 5 reaches it" in replace(plan, candidates=near).remark
    assert "S = 4 reaches it" in replace(plan, candidates=near, score_name="time").remark


def test_candidates_weighed_again_are_those_that_formation_weighs():
    settings = FormationSettings(
        Constants(learning_rate=0.02, tolerance=20.0), threshold_step="eta_E"
    )
    formed = form_clusters("sites:sites=3,size=4,seed=1")
    other = form_clusters("sites:sites=3,size=4,seed=1", None, settings)
    again = reweighed(formed.candidates, other.settings)
    assert [c.threshold for c in again] == pytest.approx([c.threshold for c in other.candidates])


def test_no_advice_is_given_that_does_not_help():
    plan = form_clusters("path:n=60", None, FormationSettings(Constants(learning_rate=40.0)))
    assert "Tried" not in plan.remark
    assert (
        "Neither a tolerance up to 100 times as large nor a learning rate down to 1/100"
        in plan.remark
    )
