"""Ranks compute together what the local engine computes alone, whatever carries their rows."""

import dataclasses

import numpy as np
import pytest
import torch

from helpers import tiny_job
from rank_jobs import contract_jobs, jobs
from ranks_help import in_ranks
from ssdfl.clusters import labels_of
from ssdfl.engine import run
from ssdfl.engine.rank_mixing import divide_mixing, shard_job
from ssdfl.engine.row_exchange import FORBIDDEN
from ssdfl.graph import load_network, metropolis


@pytest.fixture(scope="module", params=["shared memory", "messages", "three ranks"])
def done(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    if request.param == "three ranks":
        return in_ranks("rank_jobs:some_runs", 3, folder)
    return in_ranks(
        "rank_jobs:all_runs", 2, folder, **({FORBIDDEN: "0"} if request.param == "messages" else {})
    )


def test_ranks_compute_what_the_local_engine_does(done):
    every_job = jobs()
    for name, (records, X) in done[0].items():
        job = every_job[name]
        alone = list(run(job))
        assert len(records) == len(alone) == job.cycles
        assert torch.allclose(X, alone[-1][1].X, atol=2e-5), (name, (X - alone[-1][1].X).abs().max())
        for record, (expected, _) in zip(records, alone, strict=True):
            for field, value in dataclasses.asdict(expected).items():
                close = pytest.approx(value, rel=1e-3, abs=1e-4, nan_ok=True)
                assert record[field] == close, f"{name}: {field}"


def test_ranks_compute_what_the_reference_does_for_every_schedule_rule_and_optimizer(tmp_path):
    """In 64 bit, since Adam turns the last bits of small gradients into whole steps."""
    found, _ = in_ranks("rank_jobs:contract_runs", 2, tmp_path)
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
        repr(other[name][0]) == repr(of_run[0]) for other in done[1:] for name, of_run in done[0].items()
    )


def test_one_rank_computes_the_bits_of_the_local_engine():
    for method in ("ssdfl", "stc", "central"):
        job = tiny_job(method, optimizers="mixed")
        for (first, a), (second, b) in zip(run(job, "distributed"), run(job), strict=True):
            assert first == second
            assert torch.equal(a.X, b.X)


@pytest.mark.parametrize("shared", ["1", "0"])
def test_only_boundary_rows_move_and_only_when_clusters_mix(shared, tmp_path):
    ranks = in_ranks("rank_jobs:traffic", 2, tmp_path, **{FORBIDDEN: shared})
    job = tiny_job("sdfl", "sites:sites=4,size=3,seed=0", clusters=4)
    owner = labels_of(shard_job(tiny_job("ssdfl", "sites:sites=4,size=3,seed=0", clusters=4), 2), 12)
    i, j = job.network.links.T
    cut = owner[i] != owner[j]
    boundary = [len(set(i[cut & (owner[i] == r)]) | set(j[cut & (owner[j] == r)])) for r in (0, 1)]
    row = 4 * job.task.num_parameters
    for number, sent in enumerate(ranks):
        assert sent["ssdfl"] == [0, 0, boundary[number] * row] * 2
        assert sent["pdfl"] == [0, 0, boundary[number] * row] * 2
        assert sent["sdfl"] == [boundary[number] * row] * 6
        assert sent["central"] == [row] * 6


def test_ranks_prepare_each_matrix_of_a_period_once(tmp_path):
    """Of each W two parts: between a rank's own devices, and from the other rank."""
    assert in_ranks("rank_jobs:matrices_built", 2, tmp_path) == [80, 80]


def test_shared_memory_is_left_empty(tmp_path):
    for used, left in in_ranks("rank_jobs:shared_memory", 2, tmp_path):
        assert used == {"ssdfl": 2, "sdfl": 2}
        assert left == {"ssdfl": [], "sdfl": []}


def test_all_ranks_end_with_the_same_mistake(tmp_path):
    first, second = in_ranks("rank_jobs:mistakes", 2, tmp_path)
    assert [text for _, text in first] == [text for _, text in second]
    assert [kind for kind, _ in first] == ["InputError"] * 2
    assert [kind for kind, _ in second] == ["OtherRankError"] * 2
    assert "diverged at step" in first[0][1]
    assert first[1][1] == "colour = red: expected blue. Paint it."


@pytest.mark.parametrize("spec", ["er:n=9,p=0.2,seed=1", "complete:n=6", "sites:sites=3,size=3,seed=1"])
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
            back = next(other for other in divide_mixing(W, owner, peer.rank).peers if other.rank == rank)
            rows = X[there[back.rows]]
            mixed[peer.rows] += peer.weights @ (rows.mean(0, keepdims=True) if back.summed else rows)
        assert np.allclose(mixed, (W @ X)[own])
