"""What a device believes of others' summaries of their data."""

from collections import Counter
from types import SimpleNamespace

import pytest

from ssdfl.errors import InputError
from ssdfl.learning.summaries import NUMBER, ColumnSummary, Summary
from ssdfl.mesh.certificates import Authority
from ssdfl.mesh.holdings import HOLDINGS, Holders, _statement, save_holdings, saved_holdings
from ssdfl.mesh.mesh_pb2 import Holding, Holdings, HoldingsRequest, Request, Response, Wait
from ssdfl.mesh.runtime import REAL
from ssdfl.mesh.signing import Signer
from ssdfl.mesh.transport import Credentials

NAMES = ("a", "b", "c")


def text(name="x", count=2, mean=1.0):
    return Summary((ColumnSummary(name, NUMBER, count, count, mean, 0.0),), ()).to_json()


AUTHORITY = Authority()
SIGNERS = {
    name: Signer(Credentials(*AUTHORITY.issue(name), AUTHORITY.certificate)) for name in NAMES
}


def holding(device, by=None, **changes):
    """What a device says, signed by it or by another."""
    found = Holding(**{"device": device, "summary": text(), "samples": 7, **changes})
    signer = SIGNERS.get(by or device)
    if signer is not None:
        found.signature.CopyFrom(signer.sign(_statement(found)))
    return found


def holders(*told, answer=None):
    """Device a of the path a – b – c, whose neighbour b tells these."""
    response = answer or Response(held=Holdings(devices=told))
    node = SimpleNamespace(
        name="a",
        names=NAMES,
        answers={},
        bad_messages=Counter(),
        neighbours=SimpleNamespace(alive=("b",)),
        runtime=REAL,
        transport=SimpleNamespace(ask=lambda *_: response),
        stopped=False,
    )
    found = Holders(node, NAMES, holding("a"), SIGNERS["a"])
    found.tell()
    return found


def test_all_are_gathered_and_merged_in_the_networks_order(tmp_path):
    found = holders(holding("c", summary=text(mean=4.0), samples=1), holding("b"))
    found.gather(10)
    assert found.summary().inputs[0].mean == pytest.approx(2.0)
    assert found.sizes().tolist() == [7, 7, 1]
    assert not found.node.bad_messages
    save_holdings(found, tmp_path)
    assert saved_holdings(tmp_path) == found.known
    (tmp_path / HOLDINGS).write_bytes(b"\xff")
    assert saved_holdings(tmp_path) == {}


@pytest.mark.parametrize(
    "bad",
    [
        holding("eve"),
        holding("b", by="c"),
        Holding(device="b", summary=text(), samples=7),
        Holding(device="b", summary=text(), samples=8, signature=holding("b").signature),
        holding("b", summary="no JSON"),
        holding("b", summary=""),
        holding("b", samples=0),
        holding("b", samples=1 << 60),
    ],
    ids=[
        "stranger",
        "signed by another",
        "unsigned",
        "changed",
        "text",
        "no summary",
        "no samples",
        "too many",
    ],
)
def test_an_impossible_summary_is_refused_and_counted(bad):
    found = holders(bad)
    found._ask_neighbours()
    assert set(found.known) == {"a"}
    assert found.node.bad_messages == {"b": 1}


def test_a_neighbour_that_is_not_so_far_is_asked_again():
    found = holders(answer=Response(wait=Wait()))
    found._ask_neighbours()
    assert not found.node.bad_messages
    with pytest.raises(InputError, match="summaries of devices' data missing = 2"):
        found.gather(0)


def test_a_device_whose_columns_differ_is_named():
    found = holders(holding("b"), holding("c", summary=text("other")))
    found.gather(10)
    with pytest.raises(InputError, match="data of c: columns = other: expected x"):
        found.summary()


def test_only_what_is_lacking_is_told():
    found = holders()
    told = found.node.answers["holdings"](Request(holdings=HoldingsRequest(known=["a"])))
    assert not told.held.devices
    told = found.node.answers["holdings"](Request(holdings=HoldingsRequest()))
    assert [one.device for one in told.held.devices] == ["a"]
