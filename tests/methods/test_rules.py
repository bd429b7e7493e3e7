"""Rules by their text, their limits, and what every rule owes."""

import inspect

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import in_double, moment, tiny_job, tiny_task
from ssdfl.engine import run
from ssdfl.engine.moves import Standstill
from ssdfl.errors import InputError
from ssdfl.methods import METHODS, RULES, Heard, Inbox, describe, find_method, find_rule
from ssdfl.methods.rules.robust import _exchanges

LINEAR = [name for name in RULES if find_rule(name).linear]


def final(method, **changes):
    job = tiny_job(method, task=in_double(tiny_task(6)), cycles=3, local_steps=2, **changes)
    return list(run(job))[-1][1].X


@pytest.mark.parametrize(
    ("rule", "limit"),
    [
        ("choco:compressor=none,gamma=1", "atc"),
        ("outer:rule=cta,rate=1,momentum=0", "cta"),
        ("outer:rule=gt,rate=1,momentum=0", "gt"),
        ("outer:rule=choco,compressor=sign,rate=1,momentum=0", "choco:compressor=sign"),
        ("clipped:radius=inf", "cta"),
        ("clipped:liars=0", "cta"),
        ("qgm:beta=0", "atc"),
        ("cta:compressor=none", "cta"),
        ("gt:compressor=topk,fraction=1", "gt"),
        ("median:compressor=randomk,fraction=1", "median"),
    ],
)
@pytest.mark.parametrize("method", ["ssdfl", "sdfl"])
def test_limits(method, rule, limit):
    assert torch.allclose(final(f"{method}+{rule}"), final(f"{method}+{limit}"), atol=1e-10)


@pytest.mark.parametrize(
    "rule", ["outer:rule=gt", "clipped", "choco", "cta:compressor=sign", "qgm"]
)
def test_away_from_their_limits_rules_differ(rule):
    assert not torch.allclose(final(f"sdfl+{rule}"), final("sdfl+cta"), atol=1e-3)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 7),
    trains=st.booleans(),
    compressor=st.sampled_from(["", "topk", "randomk", "int8", "sign", "bf16"]),
)
@pytest.mark.parametrize("name", LINEAR)
def test_mixing_keeps_the_mean(name, seed, n, trains, compressor):
    """Whatever a linear rule keeps and however it compresses: without a move, Σ x⁺ = Σ x."""
    rng = np.random.default_rng(seed)
    rule = find_rule(f"{name}:compressor={compressor}" if compressor else name)
    theta = torch.from_numpy(rng.normal(size=(n, 9)))
    at = moment(int(rng.integers(99)), trains=False, training=trains)
    at = type(at)(**{**vars(at), "devices": np.arange(n)})
    W = torch.from_numpy(doubly_stochastic(n, rng))
    memory = {key: rows.clone() for key, rows in rule.init(theta[:1]).items()}
    memory = {key: rows.repeat(n, 1) for key, rows in memory.items()}
    still = Standstill(theta)
    message, memory = rule.send(at, theta, None if rule.early else still, memory)
    kept = 0 if message.kept is None else message.kept
    heard = Heard(lambda: W @ message.rows + kept, lambda: message.rows + kept)
    after, _ = rule.receive(at, theta, still, memory, heard)
    assert after.sum(0).numpy() == pytest.approx(theta.sum(0).numpy(), abs=1e-10)


def doubly_stochastic(n, rng):
    """A symmetric one."""
    W = np.eye(n)
    for _ in range(n):
        i, j = rng.integers(n, size=2)
        weight = rng.uniform(0, 0.5)
        exchange = np.eye(n)
        exchange[[i, j], [i, j]] -= weight * (i != j)
        exchange[[i, j], [j, i]] += weight * (i != j)
        W = exchange @ W @ exchange
    return W


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    liars=st.integers(0, 3),
    honest=st.integers(0, 9),
    g=st.integers(1, 3),
)
def test_robust_rules_stay_where_the_honest_are(seed, liars, honest, g):
    """Every coordinate is between the least and the largest of own and honest values."""
    rng = np.random.default_rng(seed)
    own = torch.from_numpy(rng.normal(size=(g, 5)))
    truths = torch.from_numpy(rng.normal(size=(honest, g, 5)))
    lies = torch.from_numpy(rng.choice([-1e9, 1e9, 0.3], size=(liars, g, 5)))
    rows = torch.cat([truths, lies])[torch.from_numpy(rng.permutation(honest + liars))]
    weights = torch.full((honest + liars, g), 0.1).double()
    inbox = Inbox(torch.arange(g), weights, rows, np.zeros(weights.shape, dtype=np.int64))
    known = torch.cat([own[None], truths])
    low, high = known.amin(0) - 1e-9, known.amax(0) + 1e-9
    rules = [find_rule(f"trimmed:liars={liars}")]
    if liars < (honest + liars + 1) / 2:
        rules.append(find_rule("median"))
    for rule in rules if honest + liars else []:
        combined = rule.combined(own, inbox)
        assert ((combined >= low) & (combined <= high)).all()


@pytest.mark.parametrize("count", range(1, 20))
def test_exchanges_bring_the_values_of_sorting_to_the_wanted_places_in_any_order(count):
    rows = np.random.default_rng(count).normal(size=(count, 50))
    for wanted in (range(count), range(count // 2, count // 2 + 1), range(1, max(2, count - 1))):
        mine = rows.copy()
        for low, high, needed in _exchanges(count, wanted):
            values = {
                low: np.minimum(mine[low], mine[high]),
                high: np.maximum(mine[low], mine[high]),
            }
            for place in (low, high):
                mine[place] = values[place] if place in needed else np.nan
        places = [place for place in wanted if place < count]
        assert (np.sort(mine[places], axis=0) == np.sort(rows, axis=0)[places]).all()


def test_clipping_pulls_no_further_than_the_radius():
    own, far = torch.zeros((1, 3)), torch.tensor([[[3.0, 4.0, 0.0]], [[0.0, 0.0, 0.5]]])
    inbox = Inbox(torch.arange(1), torch.full((2, 1), 0.5), far, np.array([[0], [1]]))
    clipped = find_rule("clipped:radius=1").combined(own, inbox)
    assert clipped[0].tolist() == pytest.approx([0.3, 0.4, 0.25])
    adaptive = find_rule("clipped:liars=1").combined(own, inbox)
    assert adaptive[0].tolist() == pytest.approx([0.15, 0.2, 0.25])


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_short_and_says_what_it_is(name):
    found = describe(RULES[name])
    assert found.summary.endswith(".")
    assert "⁺" in found.equation
    assert found.source
    assert any(year in found.source for year in map(str, range(2009, 2027)))
    assert len(inspect.getsource(RULES[name]).splitlines()) <= 45


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("ssdfl+choco:fraction=2", "fraction = 2.0: expected a share above 0 and at most 1"),
        ("ssdfl+choco:fraction=0", "fraction = 0.0: expected a share"),
        (
            "ssdfl+choco:colour=red",
            "compressor topk: colour = red: expected one of the options fraction",
        ),
        ("ssdfl+choco:gamma=1.5", "gamma = 1.5"),
        ("ssdfl+choco:matrices=2", "compressor topk: matrices = 2"),
        ("ssdfl+gt:colour=red", "rule gt: colour = red: expected no options"),
        ("ssdfl+gt:fraction=0.1", "rule gt: fraction = 0.1: expected no options"),
        ("ssdfl+cta:compressor=zip", "compressor = zip: expected one of none, topk"),
        (
            "ssdfl+cta:compressor=int8,fraction=0.1",
            "compressor int8: fraction = 0.1: expected .* block",
        ),
        ("ssdfl+cta:compressor=int8,block=0", "block = 0"),
        ("ssdfl+qgm:beta=1", r"beta = 1.0: expected a number in \[0, 1\)"),
        ("ssdfl+outer:momentum=1", "momentum = 1.0"),
        ("ssdfl+outer:rule=nothing", "rule = nothing"),
        ("ssdfl+outer:rule=gt,colour=red", "rule gt: colour = red"),
        ("ssdfl+trimmed:liars=-1", "liars = -1"),
        ("ssdfl+clipped:radius=nan", "radius = nan"),
        ("ssdfl+helpers:gossip", "rule = helpers:gossip: expected|rule helpers:gossip"),
    ],
)
def test_bad_options_are_refused(method, message):
    with pytest.raises(InputError, match=message):
        find_method(method)


@pytest.mark.parametrize("rule", ["choco", "outer:rule=choco"])
def test_a_rule_that_needs_the_same_links_refuses_schedules_that_draw_them(rule):
    with pytest.raises(InputError, match="schedule of Choco = one whose links change at random"):
        tiny_job(f"stc+{rule}")


def test_choco_keeps_a_public_copy_for_each_matrix():
    names = {
        name: set(tiny_job(f"{name}+choco").rule.init(torch.zeros(1, 2)))
        for name in ("ssdfl", "sdfl")
    }
    assert names["sdfl"] == {"public0", "sum0"}
    assert names["ssdfl"] == names["sdfl"] | {"public1", "sum1"}


def test_outer_passes_on_what_the_rule_within_is_like():
    outer = find_rule("outer:rule=choco,compressor=int8,block=64,rate=0.5")
    inner = find_rule("choco:compressor=int8,block=64")
    assert (outer.rule, outer.rate, outer.compressor) == (inner, 0.5, inner.compressor)
    assert (outer.early, outer.linear, outer.steady, outer.additive) == (False, True, True, False)


def test_methods_of_the_registry_are_still_plain():
    assert all(method.rule == find_rule("cta") for method in METHODS.values())
