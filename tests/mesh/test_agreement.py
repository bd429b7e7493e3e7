"""With whom a device trains when some neighbours are silent or have another plan."""

import errno

import pytest

from helpers import tiny_job
from ssdfl.errors import InputError, NotYetError
from ssdfl.mesh import device
from ssdfl.mesh.agreement import (
    OtherPlanError,
    go_without,
    other_plans,
    refuse_other_plans,
    without_plan,
)
from ssdfl.mesh.mesh_pb2 import Status
from ssdfl.mesh.node import Node

NAMES = ("a", "b", "c", "d")


@pytest.fixture
def node():
    """Device a, linked with b, c and d."""
    found = Node(tiny_job("sdfl", "complete:n=4", clusters=1).network, 0, NAMES, transport=None)
    found.plan_digest = "ours"
    yield found
    found.stop()
    found._pulls.shutdown()


def hear(node, **plans):
    for name, plan in plans.items():
        node.neighbours.heard(name, Status(plan_digest=plan))


def test_one_silent_neighbour_does_not_stop_the_start_and_is_named(node, caplog):
    hear(node, b="ours", c="ours")
    assert without_plan(node) == ["d"]
    assert without_plan(node, but=["d"]) == []
    go_without(node, 300)
    assert caplog.messages[-1:] == ["d has no plan after 300 s: training without it until it has"]


@pytest.mark.parametrize("plans", [{"b": "ours"}, {}], ids=["half", "alone"])
def test_a_device_without_a_majority_waits_for_a_restart(node, plans):
    hear(node, **plans)
    missing = "c" if plans else "b"
    with pytest.raises(
        NotYetError, match=f"neighbour = {missing}: expected a plan within 300 s"
    ) as caught:
        go_without(node, 300)
    assert caught.value.exit_code == 75


def test_one_neighbour_with_another_plan_is_left_out_and_named(node, caplog):
    """Attack 17."""
    hear(node, b="ours", c="ours", d="a lie")
    assert other_plans(node) == {}
    assert caplog.messages[-1:] == ["d has another plan (a lie): training without it"]
    assert not node._there("d")
    assert node._there("b")


@pytest.mark.parametrize(
    ("plans", "refused"),
    [
        ({"b": "ours", "c": "x"}, False),
        ({"b": "x", "c": ""}, True),
        ({"b": "ours", "c": "x", "d": "x"}, True),
    ],
)
def test_most_neighbours_with_another_plan_end_it_with_a_code_that_allows_a_restart(
    node, plans, refused
):
    hear(node, **plans)
    others = other_plans(node)
    if not refused:
        assert not others
        return
    with pytest.raises(OtherPlanError, match="expected ours, as a has") as caught:
        refuse_other_plans(node, others)
    assert caught.value.exit_code == 75
    assert InputError.exit_code == 2


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, NotYetError), (errno.EMFILE, NotYetError), (errno.EISDIR, OSError)],
)
def test_a_full_disk_before_there_is_a_plan_allows_a_restart(number, kind, tmp_path, monkeypatch):
    def full(folder, data):
        raise OSError(number, "no room", "plan.json")

    monkeypatch.setattr(device, "read_device", lambda folder: None)
    monkeypatch.setattr(device, "RunningDevice", full)
    with pytest.raises(kind, match=r"plan.json") as caught:
        device.run_device(tmp_path)
    assert isinstance(caught.value, InputError) == (kind is NotYetError)
    assert "no room" in (tmp_path / "device.log").read_text()
