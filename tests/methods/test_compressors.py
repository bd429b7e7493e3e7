"""Compressors are contractions, and travel as what they say."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import moment
from ssdfl.mesh.mesh_pb2 import Parameters
from ssdfl.mesh.wire import BadMessageError, pack, unpack
from ssdfl.methods import COMPRESSORS, Message, describe
from ssdfl.methods.compressors import find_compressor

NAMES = [name for name in COMPRESSORS if name != "randomk"]


def numbers(seed, n, count, kind=torch.float64):
    """Rows of very different magnitudes, some zeros among them."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, count)) * 10.0 ** rng.integers(-3, 4, size=(n, count))
    return torch.from_numpy(rows * (rng.random((n, count)) < 0.8)).to(kind)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31), count=st.integers(1, 700))
@pytest.mark.parametrize("name", NAMES)
def test_compressors_are_contractions(name, seed, count):
    """‖x − Q(x)‖² ≤ (1 − δ) ‖x‖² for every x and every draw."""
    compressor, rows = find_compressor(name, {}), numbers(seed, 1, count)
    left = (rows - compressor(rows, moment(seed % 100))).square().sum()
    delta = compressor.contraction(count)
    assert 0 < delta <= 1
    assert left <= (1 - delta) * rows.square().sum() * (1 + 1e-9) + 1e-12


def test_random_places_contract_on_average():
    compressor, rows = find_compressor("randomk", {"fraction": "0.3"}), torch.ones((1, 50)).double()
    rows[0, 20:] = 3
    left = [float((rows - compressor(rows, moment(t))).square().sum()) for t in range(500)]
    expected = (1 - compressor.contraction(50)) * float(rows.square().sum())
    assert np.mean(left) == pytest.approx(expected, rel=0.03)


def test_bytes_are_rounded_right_on_average():
    compressor, rows = find_compressor("int8", {"block": "16"}), numbers(1, 1, 40)
    seen = torch.stack([compressor(rows, moment(t)) for t in range(3000)])
    scale = rows.abs().max() / 127
    assert (seen.mean(0) - rows).abs().max() < 0.05 * scale
    assert (seen.std(0) > 0).any()


def test_bytes_stay_in_their_range_whatever_rounding_does(monkeypatch):
    """−x / (x / 127) is below −127 for some x, and rounded down where 0 is drawn."""
    nothing_drawn = SimpleNamespace(random=lambda count, dtype: np.zeros(count, dtype))
    monkeypatch.setattr("ssdfl.methods.compressors.generator", lambda *_: nothing_drawn)
    largest = torch.from_numpy(np.random.default_rng(0).random((500, 1), dtype=np.float32))
    at = moment(devices=np.arange(500))
    assert ((-largest * (1 / (largest / 127))).floor() < -127).any()
    _, whole = find_compressor("int8", {}).encoded(-largest, at)
    assert whole.min() == -127


@pytest.mark.parametrize("kind", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("count", [1, 8, 300, 70_000])
@pytest.mark.parametrize("name", COMPRESSORS)
def test_what_travels_is_what_rules_see_and_as_large_as_accounted(name, count, kind):
    compressor, at = find_compressor(name, {}), moment(3, device=2)
    exact = numbers(count, 1, count, kind)
    seen = compressor(exact, at)
    message = Message(seen, compressor=compressor, exact=exact)
    packed = pack(message, at)
    assert len(packed.data) == message.size_bytes
    assert packed.ByteSize() < message.size_bytes + 10
    own = Message(torch.zeros_like(seen), compressor=compressor, exact=exact)
    there = Parameters.FromString(packed.SerializeToString())
    assert torch.equal(unpack(there, own, at), seen[0])


def test_sizes_by_hand():
    sizes = {name: find_compressor(name, {}).size_bytes(1000, 4) for name in COMPRESSORS}
    assert sizes == {
        "none": 4000,
        "topk": 50 * (2 + 4),
        "randomk": 50 * 4,
        "int8": 4 * 4 + 1000,
        "sign": 4 * 4 + 125,
        "bf16": 2000,
    }
    assert find_compressor("topk", {}).size_bytes(100_000, 4) == 5000 * (4 + 4)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_rows_are_compressed_alike_alone_and_together(name):
    compressor, rows = find_compressor(name, {}), numbers(4, 5, 600)
    devices = np.array([1, 4, 5, 7, 8])
    together = compressor(rows, moment(9, devices=devices))
    for place, device in enumerate(devices):
        alone = compressor(rows[[place]], moment(9, device=device))
        assert torch.equal(together[[place]], alone)
    assert name not in ("randomk", "int8") or not torch.equal(
        together, compressor(rows, moment(10))
    )


def test_ties_are_broken_so_that_no_more_is_sent():
    compressor = find_compressor("topk", {"fraction": "0.5"})
    seen = compressor(torch.tensor([[1.0, -1, 1, 1], [1, 2, 3, 4], [0, 0, 0, 0]]), moment())
    assert (seen != 0).sum(1).tolist() == [2, 2, 0]
    assert seen[1].tolist() == [0, 0, 3, 4]


@pytest.mark.parametrize(
    ("name", "spoil", "reason"),
    [
        ("topk", lambda data: data[:-1], "bytes instead of"),
        ("topk", lambda data: data + b"0", "bytes instead of"),
        ("topk", lambda data: b"\xff\xff" + data[2:], "not below 300"),
        ("topk", lambda data: data[:2] * 15 + data[30:], "positions that repeat"),
        ("topk", lambda data: data[:30] + np.full(15, np.nan, "<f4").tobytes(), "not finite"),
        ("int8", lambda data: np.full(2, np.inf, "<f4").tobytes() + data[8:], "not finite"),
        ("sign", lambda data: np.full(2, 1e30, "<f4").tobytes() + data[8:], "beyond 1e"),
        ("bf16", lambda data: b"\x80\x7f" * 300, "not finite"),
        ("randomk", lambda data: b"", "0 bytes instead of 60"),
    ],
)
def test_bad_compressed_messages_are_refused_with_a_reason(name, spoil, reason):
    compressor, exact = find_compressor(name, {}), numbers(5, 1, 300, torch.float32)
    message = Message(compressor(exact, moment(4)), compressor=compressor, exact=exact)
    packed = pack(message, moment(4))
    packed.data = spoil(packed.data)
    with pytest.raises(BadMessageError, match=reason):
        unpack(packed, message, moment(4))


@pytest.mark.parametrize("name", COMPRESSORS)
def test_every_compressor_says_what_it_is(name):
    found = describe(COMPRESSORS[name])
    assert found.summary.startswith(f"`{name}`")
    assert found.equation.startswith("Q(x)")
    assert found.source or name == "none"
