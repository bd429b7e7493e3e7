import pytest

from ssdfl.errors import InputError
from ssdfl.mesh.facts_file import read_facts, write_facts
from ssdfl.mesh.mesh_pb2 import Facts, SignedFact


def test_facts_are_read_back_unless_one_bit_has_flipped(tmp_path):
    path = tmp_path / "facts.binpb"
    facts = Facts(facts=[SignedFact(fact=b"distance 0.5 of device-00 and device-01")])
    write_facts(facts, path)
    assert read_facts(path) == facts
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(InputError, match="facts.binpb: expected a whole file"):
            read_facts(path)


def test_facts_that_are_missing_or_cut_short(tmp_path):
    path = tmp_path / "facts.binpb"
    for content in (None, b"", b"x" * 31):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(InputError, match="expected a whole file"):
            read_facts(path)
