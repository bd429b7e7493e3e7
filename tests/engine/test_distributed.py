"""Ranks compute together what the local engine computes alone, whatever carries their rows."""

import dataclasses
from functools import cache

import numpy as np
import pytest
import torch

from helpers import tiny_job
from rank_jobs import contract_jobs, jobs
from ranks_help import in_ranks
from ssdfl.clusters import labels_of
from ssdfl.engine import run
from ssdfl.engine.rank_mixing import divide_mixing, shard_job
from ssdfl.graph import load_network, metropolis

pytestmark = pytest.mark.xdist_group("ranks")  # which start once, in one worker


@pytest.fixture(scope="module")
def of_two(tmp_path_factory):
    """What two ranks found, by what was asked of them: for each rank its answer."""
    ranks = in_ranks("rank_jobs:everything", 2, tmp_path_factory.mktemp("two"))
    return {asked: [found[asked] for found in ranks] for asked in ranks[0]}


@pytest.fixture(scope="module")
def of_three(tmp_path_factory):
    return in_ranks("rank_jobs:some_runs", 3, tmp_path_factory.mktemp("three"))


@pytest.fixture(params=["shared memory", "messages", "three ranks"])
def done(request):
    if request.param == "three ranks":
        return request.getfixturevalue("of_three")
    return request.getfixturevalue("of_two")[request.param]


@pytest.fixture(scope="module")
def alone():
    """What the local engine yields for a job by its name; computed once, whoever asks."""
    every_job = jobs()
    return cache(lambda name: list(run(every_job[name])))


def test_ranks_compute_what_the_local_engine_does(done, alone):
    for name, (records, X) in done[0].items():
        *_, (_, state) = alone(name)
        assert len(records) == len(alone(name)) > 0
        assert torch.allclose(X, state.X, atol=2e-5), (name, (X - state.X).abs().max())
        for record, (expected, _) in zip(records, alone(name), strict=True):
            for field, value in dataclasses.asdict(expected).items():
                close = pytest.approx(value, rel=1e-3, abs=1e-4, nan_ok=True)
                assert record[field] == close, f"{name}: {field}"


def test_ranks_compute_what_the_reference_does_for_every_schedule_rule_and_optimizer(of_two):
    """In 64 bit, since Adam turns the last bits of small gradients into whole steps."""
    found, _ = of_two["contract"]
    every_job = contract_jobs()
    assert found.keys() == every_job.keys()
    for name, (records, X) in found.items():
        *_, (expected, state) = run(every_job[name], "reference")
        assert torch.allclose(X, state.X, atol=1e-9), (name, (X - state.X).abs().max())
        for field, value in dataclasses.asdict(expected).items():
            close = pytest.approx(value, rel=1e-6, abs=1e-9, nan_ok=True)
            assert records[-1][field] == close, f"{name}: {field}"


def test_every_rank_has_the_same_records(done):
    assert all(
        repr(other[name][0]) == repr(of_run[0])
        for other in done[1:]
        for name, of_run in done[0].items()
    )


def test_one_rank_computes_the_bits_of_the_local_engine():
    for method in ("ssdfl", "stc", "central"):
        job = tiny_job(method, optimizers="mixed")
        for (first, a), (second, b) in zip(run(job, "distributed"), run(job), strict=True):
            assert first == second
            assert torch.equal(a.X, b.X)


@pytest.mark.parametrize("carrier", ["shared memory", "messages"])
def test_only_boundary_rows_move_and_only_when_clusters_mix(carrier, of_two):
    ranks = of_two[f"traffic by {carrier}"]
    job = tiny_job("sdfl", "sites:sites=4,size=3,seed=0", clusters=4)
    owner = labels_of(
        shard_job(tiny_job("ssdfl", "sites:sites=4,size=3,seed=0", clusters=4), 2), 12
    )
    i, j = job.network.links.T
    cut = owner[i] != owner[j]
    boundary = [len(set(i[cut & (owner[i] == r)]) | set(j[cut & (owner[j] == r)])) for r in (0, 1)]
    row = 4 * job.task.num_parameters
    for number, sent in enumerate(ranks):
        assert sent["ssdfl"] == [0, 0, boundary[number] * row] * 2
        assert sent["pdfl"] == [0, 0, boundary[number] * row] * 2
        assert sent["sdfl"] == [boundary[number] * row] * 6
        assert sent["central"] == [row] * 6


def test_ranks_prepare_each_matrix_of_a_period_once(of_two):
    """Of each W two parts: between a rank's own devices, and from the other rank."""
    assert of_two["matrices"] == [80, 80]


def test_shared_memory_is_left_empty(of_two):
    for used, left in of_two["shared memory left"]:
        assert used == {"ssdfl": 2, "sdfl": 2}
        assert left == {"ssdfl": [], "sdfl": []}


def test_all_ranks_end_with_the_same_mistake(of_two):
    first, second = of_two["mistakes"]
    assert [text for _, text in first] == [text for _, text in second]
    assert [kind for kind, _ in first] == ["InputError"] * 2
    assert [kind for kind, _ in second] == ["OtherRankError"] * 2
    assert "diverged at step" in first[0][1]
    assert first[1][1] == "colour = red: expected blue. Paint it."


@pytest.mark.parametrize(
    "spec", ["er:n=9,p=0.2,seed=1", "complete:n=6", "sites:sites=3,size=3,seed=1"]
)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_divided_mixing_still_mixes_the_same(spec, ranks):
    W = metropolis(load_network(spec).adjacency)
    N = W.shape[0]
    owner = np.arange(N) * ranks // N
    X = np.random.default_rng(0).normal(size=(N, 5))
    for rank in range(ranks):
        part, own = divide_mixing(W, owner, rank), np.flatnonzero(owner == rank)
        mixed = part.inner @ X[own]
        for peer in part.peers:
            there = np.flatnonzero(owner == peer.rank)
            back = next(
                other for other in divide_mixing(W, owner, peer.rank).peers if other.rank == rank
            )
            rows = X[there[back.rows]]
            mixed[peer.rows] += peer.weights @ (
                rows.mean(0, keepdims=True) if back.summed else rows
            )
        assert np.allclose(mixed, (W @ X)[own])
