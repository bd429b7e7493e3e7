"""Changes of membership: who may make them, and in which order they are taken."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ssdfl.graph import make_network, to_json
from ssdfl.mesh.certificates import Authority
from ssdfl.mesh.change import (
    MAX_CHANGE_BYTES,
    BadChangeError,
    Change,
    Newcomer,
    read_change,
    signed_change,
    text_digest,
)
from ssdfl.mesh.membership import Membership
from ssdfl.mesh.mesh_pb2 import ChangesRequest, Request
from ssdfl.mesh.transport import MAX_MESSAGE_BYTES

NETWORK = "network.json"
BASE = text_digest(NETWORK)
AUTHORITY = Authority()


def change(version=1, previous=BASE, cycle=None, names=("a", "b", "c"), **more):
    network = make_network(len(names), [(k, k + 1) for k in range(len(names) - 1)], names=names)
    facts = {"addresses": dict.fromkeys(names, ""), "joins": {"c": Newcomer("sgd")}, **more}
    return Change(version, previous, cycle or 10 * version, to_json(network), **facts)


def chain(length):
    """Changes that follow each other, signed."""
    found = []
    for version in range(1, length + 1):
        before = found[-1].digest if found else BASE
        found.append(signed_change(change(version, before), AUTHORITY.key()))
    return found


def membership(folder, *known):
    found = Membership(folder, AUTHORITY.certificate, NETWORK)
    for one in known:
        assert found.take(one.text)
    return found


def test_a_signed_change_is_read_as_it_was_written():
    one = chain(1)[0]
    assert read_change(one.text, AUTHORITY.certificate) == one
    assert one.change.devices.names == ("a", "b", "c")


def test_every_changed_character_is_refused():
    text = chain(1)[0].text
    for k in range(0, len(text), 7):
        other = "0" if text[k] != "0" else "1"
        with pytest.raises(BadChangeError):
            read_change(text[:k] + other + text[k + 1 :], AUTHORITY.certificate)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"signature": 3}', "{" * 100_000, '{"signature": ""}']
)
def test_what_is_no_change_is_refused(text):
    with pytest.raises(BadChangeError):
        read_change(text, AUTHORITY.certificate)


def test_no_change_is_taken_that_is_larger_than_a_message_to_others():
    assert MAX_CHANGE_BYTES <= MAX_MESSAGE_BYTES


def test_a_change_may_be_as_large_as_the_limit(monkeypatch):
    one = chain(1)[0]
    monkeypatch.setattr("ssdfl.mesh.change.MAX_CHANGE_BYTES", len(one.text))
    assert read_change(one.text, AUTHORITY.certificate) == one
    with pytest.raises(BadChangeError, match="too large a change"):
        read_change(f"{one.text} ", AUTHORITY.certificate)


def test_a_change_of_another_authority_is_refused():
    stranger = signed_change(change(), Authority().key())
    with pytest.raises(BadChangeError, match="not signed"):
        read_change(stranger.text, AUTHORITY.certificate)


@pytest.mark.parametrize(
    "wrong",
    [
        replace(change(), cycle=0),
        replace(change(), addresses={"a": "", "b": ""}),
        replace(change(), joins={"eve": Newcomer("sgd")}),
        replace(change(), network="{}"),
        replace(change(), network=to_json(make_network(2, [], names=["a", "b"]))),
    ],
)
def test_a_signed_mistake_is_refused(wrong):
    with pytest.raises(BadChangeError):
        read_change(signed_change(wrong, AUTHORITY.key()).text, AUTHORITY.certificate)


def test_changes_are_taken_in_order_and_kept(tmp_path):
    one, two, three = chain(3)
    found = membership(tmp_path, one)
    with pytest.raises(BadChangeError, match="3 instead of 2"):
        found.take(three.text)
    assert found.take(two.text)
    assert not found.take(one.text)  # known already
    assert membership(tmp_path).version == 2  # as after a restart


def test_an_older_change_that_differs_is_refused(tmp_path):
    found = membership(tmp_path, *chain(2))
    other = signed_change(change(1, cycle=11), AUTHORITY.key())
    with pytest.raises(BadChangeError, match="another change 1"):
        found.take(other.text)
    assert found.changes[0].change.cycle == 10


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"previous": "0" * 64}, "follows others"), ({"cycle": 10}, "before the one before")],
)
def test_a_change_of_another_chain_is_refused(wrong, said, tmp_path):
    found = membership(tmp_path, *chain(1))
    fields = {"version": 2, "previous": found.changes[0].digest, **wrong}
    with pytest.raises(BadChangeError, match=said):
        found.take(signed_change(change(**fields), AUTHORITY.key()).text)


def test_a_half_written_file_is_read_again(tmp_path):
    one = chain(1)[0]
    found = membership(tmp_path)
    path = tmp_path / "changes" / "1.json"
    path.parent.mkdir()
    path.write_text(one.text[:100])
    found.read_folder()
    assert found.version == 0
    path.write_text(one.text)
    found.read_folder()
    assert found.version == 1


def neighbour(of, said=None):
    """A node whose neighbour b has another's changes."""
    known = SimpleNamespace(membership=of.version if said is None else said)
    return SimpleNamespace(
        neighbours=type("Known", (), {"alive": ("b",), "__getitem__": lambda self, name: known})(),
        transport=SimpleNamespace(ask=lambda name, request, timeout_s: of.answer(request)),
        bad_messages={"b": 0},
    )


def test_changes_flood_from_neighbour_to_neighbour(tmp_path):
    far = membership(tmp_path / "far", *chain(3))
    near = membership(tmp_path / "near", *chain(3)[:0])
    news = []
    near.poll(neighbour(far), lambda: news.append(near.version))
    assert news == [3]
    assert json.loads((tmp_path / "near" / "changes" / "3.json").read_text())["version"] == 3
    near.poll(neighbour(far), lambda: news.append(near.version))
    assert news == [3]


def test_a_neighbour_that_lies_about_changes_is_counted(tmp_path):
    near = membership(tmp_path)
    node = neighbour(near, said=5)
    stranger = signed_change(change(), Authority().key())
    node.transport.ask = lambda *_: SimpleNamespace(changed=SimpleNamespace(texts=[stranger.text]))
    near.poll(node, pytest.fail)
    assert node.bad_messages["b"] == 1
    assert near.version == 0


def test_answers_have_what_the_asker_lacks(tmp_path):
    found = membership(tmp_path, *chain(3))
    answer = found.answer(Request(changes=ChangesRequest(after=1))).changed.texts
    assert [json.loads(text)["version"] for text in answer] == [2, 3]
