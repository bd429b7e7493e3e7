"""Ranks compute together what the local engine computes alone, whatever carries their rows."""

import dataclasses
import os

import pytest
import torch

from rank_jobs import jobs
from ranks_help import in_ranks
from ssdfl.engine import run
from ssdfl.engine.boundary import FORBIDDEN, SHARED_MEMORY


@pytest.fixture(scope="module", params=["shared memory", "messages", "three ranks"])
def done(request, tmp_path_factory):
    more = {FORBIDDEN: "0"} if request.param == "messages" else {}
    number = 3 if request.param == "three ranks" else 2
    return in_ranks("rank_jobs:all_runs", number, tmp_path_factory.mktemp("ranks"), **more)


def test_ranks_compute_what_the_local_engine_does(done):
    for name, job in jobs().items():
        alone = list(run(job))
        records, X = done[0][name]
        assert len(records) == len(alone) == job.cycles
        assert torch.allclose(X, alone[-1][1].X, atol=2e-5), name
        for record, (expected, _) in zip(records, alone, strict=True):
            for field, value in dataclasses.asdict(expected).items():
                close = pytest.approx(value, rel=1e-3, abs=1e-4, nan_ok=True)
                assert record[field] == close, f"{name}: {field}"


def test_every_rank_has_the_same_records(done):
    assert all(
        repr(other[name][0]) == repr(of_run[0]) for other in done[1:] for name, of_run in done[0].items()
    )


def test_shared_memory_is_left_empty(done):
    assert not [name for name in os.listdir(SHARED_MEMORY) if name.startswith("ssdfl-")]
