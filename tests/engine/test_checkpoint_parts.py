"""Checkpoints in parts, as ranks write them: here one rank after the other, without the others."""

import dataclasses
import re
from unittest.mock import patch

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from helpers import tiny_job
from ssdfl.engine import checkpoint, load_state, run, save_state
from ssdfl.engine.checkpoint import load_parameters
from ssdfl.engine.checkpoint_parts import PARTS
from ssdfl.engine.saved_models import read_model
from ssdfl.engine.shares import RankShares
from ssdfl.engine.state import own_rows
from ssdfl.errors import InputError

TWO = (np.array([0, 2, 5]), np.array([1, 3, 4]))
THREE = (np.array([0, 1]), np.array([2, 3]), np.array([4, 5]))


class OneRank(RankShares):
    """One of several ranks; it knows what the others would tell."""

    def __init__(self, parts, number, ready_s):
        self.parts, self.devices, self._ready_s = parts, parts[number], ready_s

    def everyone(self, own):
        return torch.from_numpy(self._ready_s)


def save_in_parts(state, job, path, parts):
    """What ranks with these devices write of a state; rank 0 comes last, as it knows all parts."""
    written = {}
    for number in reversed(range(len(parts))):

        def told(checksum, number=number):
            written[number] = checksum
            return [written.get(rank, "") for rank in range(len(parts))]

        memory = own_rows(job, state.memory, parts[number])
        shares = OneRank(parts, number, state.ready_s)
        part = dataclasses.replace(state, X=state.X[parts[number]], memory=memory, shares=shares)
        ranks = {"rank": lambda number=number: number, "texts_of_ranks": told}
        with patch.multiple(checkpoint, **ranks):
            save_state(part, job, path)


@pytest.fixture
def job():
    """In the middle of a regime, so that momenta matter; some devices have none."""
    job = tiny_job("ssdfl", optimizers="mixed")
    return dataclasses.replace(job, schedule=lambda t: tiny_job("ssdfl").schedule(0))


@pytest.fixture
def state(job):
    _, state = next(run(job))
    return state


@pytest.fixture
def path(job, state, tmp_path):
    save_in_parts(state, job, tmp_path / "checkpoint.safetensors", TWO)
    return tmp_path / "checkpoint.safetensors"


@pytest.mark.parametrize("written", [TWO, THREE])
@pytest.mark.parametrize("read", [(np.arange(6),), TWO, THREE])
def test_any_number_of_ranks_reads_what_any_other_wrote(written, read, job, state, tmp_path):
    path = tmp_path / "c.safetensors"
    save_in_parts(state, job, path, written)
    for devices in read:
        found, memory = load_state(path, job, devices), own_rows(job, state.memory, devices)
        assert torch.equal(found.X, state.X[devices])
        assert found.memory.keys() == memory.keys()
        assert all(torch.equal(found.memory[name], rows) for name, rows in memory.items())
        assert found.ready_s.tolist() == state.ready_s.tolist()
        assert (found.step, found.transmissions) == (state.step, state.transmissions)


def test_a_run_continues_from_parts_with_the_same_bits(job, state, path):
    expected, found = (list(run(job, state=one)) for one in (state, load_state(path, job)))
    assert [record for record, _ in found] == [record for record, _ in expected]
    assert torch.equal(found[-1][1].X, expected[-1][1].X)


def test_models_in_parts_are_those_of_a_whole_checkpoint(job, state, path, tmp_path):
    whole = tmp_path / "whole" / "c.safetensors"
    save_state(state, job, whole)
    assert load_parameters(path).tolist() == load_parameters(whole).tolist()
    for device in (0, 3, "5", "mean"):
        found, expected = (read_model([one], device) for one in (path, whole))
        assert (found.device, found.cycle) == (expected.device, expected.cycle)
        assert found.state.keys() == expected.state.keys()
        for name, tensor in expected.state.items():
            assert torch.allclose(found.state[name], tensor, rtol=1e-6), name


def test_nobody_writes_the_rows_of_others(path):
    assert not any("model." in name for name in load_file(path))
    parts = [load_file(part) for part in path.parent.glob(PARTS)]
    assert [len(part["model.1.weight"]) for part in parts] == [3, 3]


def test_one_flipped_bit_of_a_part_is_refused_by_its_name(job, path):
    part = next(path.parent.glob("part-1-*"))
    whole = part.read_bytes()
    readers = (
        lambda: load_state(path, job),
        lambda: load_state(path, job, TWO[1]),
        lambda: read_model([path], "mean"),
        lambda: load_parameters(path),
    )
    for bit in range(0, 8 * len(whole), 1999):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        part.write_bytes(flipped)
        for read in readers:
            with pytest.raises(InputError, match=re.escape(str(part))):
                read()
    assert load_state(path, job, TWO[0]).step == 3


def test_a_missing_part_and_one_of_another_checkpoint_are_refused(job, state, path):
    first, second = sorted(path.parent.glob(PARTS))
    kept = second.read_bytes()
    second.write_bytes(first.read_bytes())
    with pytest.raises(InputError, match=r"part-1-.* expected the one that the checkpoint lists"):
        load_state(path, job)
    second.unlink()
    with pytest.raises(InputError, match=r"part-1-.* expected an existing file"):
        load_state(path, job)
    second.write_bytes(kept)
    assert torch.equal(load_state(path, job).X, state.X)


def test_only_the_parts_of_the_last_checkpoint_stay(job, state, path):
    left = path.parent / f"part-7-{16 * 'a'}.safetensors"
    left.write_bytes(b"of a rank that was killed")
    before = set(path.parent.glob(PARTS))
    save_in_parts(dataclasses.replace(state, step=6), job, path, THREE)
    after = set(path.parent.glob(PARTS))
    assert len(after) == 3
    assert not before & after
    save_in_parts(state, job, path, TWO)
    assert set(path.parent.glob(PARTS)) == before - {left}
    save_state(state, job, path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
