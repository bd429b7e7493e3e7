"""Liars: the same in every engine, whatever the rule; results are those of honest devices."""

import dataclasses

import numpy as np
import pytest
import torch

from helpers import tiny_job
from ssdfl.engine import run
from ssdfl.engine.reference import ReferenceEngine
from ssdfl.methods import ATTACKS, among_liars, find_attack, find_rule

LIARS = (1, 4)
RULES = (
    "cta",
    "atc",
    "gt",
    "choco:compressor=topk,fraction=0.3,gamma=0.4",
    "cta:compressor=int8",
    "median",
)


def among(job, attack, liars=LIARS):
    return dataclasses.replace(job, rule=among_liars(job.rule, liars, attack), liars=liars)


def job_with(rule="cta", **changes):
    return tiny_job("ssdfl", spec="er:n=6,p=0.7,seed=1", rule=find_rule(rule), cycles=2, **changes)


def truth(hearing):
    return hearing.liars


def final(job, engine="local"):
    return list(run(job, engine))[-1]


@pytest.mark.parametrize("rule", RULES)
def test_liars_that_tell_the_truth_change_nothing(rule):
    honest, told = (final(job)[1].X for job in (job_with(rule), among(job_with(rule), truth)))
    assert torch.allclose(honest, told, atol=1e-6)


@pytest.mark.parametrize("engine", ["local", "distributed"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_engines_agree_on_every_attack(attack, engine):
    job = among(job_with(), find_attack(attack))
    (expected, X), (record, Y) = (
        (one, state.X) for one, state in (final(job, "reference"), final(job, engine))
    )
    assert torch.allclose(X, Y, atol=2e-5)
    assert record.score == pytest.approx(expected.score, abs=1e-6)
    assert record.liar_score == pytest.approx(expected.liar_score, abs=1e-6)
    plain = final(job_with())[1].X
    assert not torch.allclose(plain, Y, atol=1e-2)


@pytest.mark.parametrize("rule", RULES)
def test_engines_agree_on_lies_to_every_rule(rule):
    job = among(job_with(rule), find_attack("noise"))
    assert torch.allclose(final(job, "reference")[1].X, final(job)[1].X, atol=5e-5)


def test_a_step_by_hand():
    """One mixing-only step of `cta`: honest devices mix liars' negatives, liars mix the truth."""
    job = among(job_with(), find_attack("sign-flip"))
    states = [state for _, state in run(job, "reference")]
    X, W = states[0].X, job.schedule(2).W.toarray()
    after = ReferenceEngine(job).advance(states[0], job.schedule(2), 2).X.numpy()
    for i in range(6):
        sign = np.where(np.isin(np.arange(6), LIARS) & (i not in LIARS), -1.0, 1.0)
        assert after[i] == pytest.approx((W[i] * sign) @ X.numpy(), abs=1e-5)


def test_results_are_those_of_honest_devices():
    job = among(job_with(), find_attack("same-value:value=0.3"))
    record, state = final(job)
    honest = [i for i in range(6) if i not in LIARS]
    accuracy = np.array(record.device_score)
    assert len(accuracy) == 6
    assert record.score == pytest.approx(accuracy[honest].mean())
    assert record.score_worst == pytest.approx(accuracy[honest].min())
    assert record.score_std == pytest.approx(accuracy[honest].std())
    assert record.liar_score == pytest.approx(accuracy[list(LIARS)].mean())
    X = state.X.numpy()[honest].astype(float)
    expected = np.sqrt(((X - X.mean(0)) ** 2).sum(1).mean())
    assert record.consensus_distance == pytest.approx(expected, rel=1e-4)


def test_nobody_lies_by_default():
    record, _ = final(job_with())
    assert np.isnan(record.liar_score)
    rule = find_rule("gt")
    assert among_liars(rule, (), truth) is rule


def test_lies_repeat_and_can_be_gone_on_from():
    job = among(dataclasses.replace(job_with("gt"), cycles=3), find_attack("noise"))
    whole = list(run(job))
    again = list(run(job, state=whole[0][1]))
    assert [record for record, _ in again] == [record for record, _ in whole[1:]]
