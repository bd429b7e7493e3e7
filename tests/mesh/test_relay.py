"""Two devices that cannot be dialled, and what is between them."""

import asyncio
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from itertools import cycle

import grpc
import pytest

from machines import some_machines, why_not
from mesh_help import (
    ENVIRONMENT,
    final_parameters,
    finish,
    local_parameters,
    made,
    running,
    small,
)
from ssdfl.graph import make_network
from ssdfl.mesh.certificates import Authority
from ssdfl.mesh.hosts import Host, loopback_hosts
from ssdfl.mesh.mesh_pb2 import Piece, Ping, Pull, Refusal, Request, Response, Status
from ssdfl.mesh.names import certificate_name
from ssdfl.mesh.relay import MAX_CALLS, PEER_KEY, PIECE_BYTES, PURPOSE_KEY, Relay
from ssdfl.mesh.routes import routes_of
from ssdfl.mesh.server import event_loop, on_loop
from ssdfl.mesh.transport import Credentials, GrpcTransport, UnreachableError
from ssdfl.mesh.tunnels import _read

pytestmark = pytest.mark.mesh

AUTHORITY = Authority()
PING, PULL = Request(ping=Ping()), Request(pull=Pull())
LARGE = "x" * (1 << 20)
LINKS = [("ann", "bob"), ("ann", "hub"), ("bob", "hub"), ("cat", "hub"), ("hub", "other")]
LINKS += [("ann", "other"), ("bob", "other")]
NAMES = ("ann", "bob", "cat", "hub", "other")
NETWORK = make_network(5, [tuple(map(NAMES.index, link)) for link in LINKS], names=list(NAMES))
CREDENTIALS = {
    name: Credentials(*AUTHORITY.issue(name), AUTHORITY.certificate) for name in (*NAMES, "eve")
}


class Devices:
    """ann, bob and cat cannot be dialled; hub and other can. ann and bob are linked."""

    def __init__(self, stack):
        self._stack, self.addresses, self.asked = stack, {}, []

    def start(self, name, listens=False):
        near = [NAMES[j] for j in NETWORK.neighbours(NAMES.index(name))]
        neighbours = {other: self.addresses.get(other, "") for other in near}
        listen = "127.0.0.1:0" if listens else ""
        routes = routes_of(NETWORK, name, listen, neighbours)
        transport = GrpcTransport(listen, neighbours, CREDENTIALS[name], routes=routes)
        transport.start(lambda caller, request: self._answer(name, caller, request))
        self._stack.callback(transport.stop)
        self.addresses[name] = f"127.0.0.1:{transport.port}" if listens else ""
        return transport

    def _answer(self, name, caller, request):
        self.asked.append((caller, name))
        if request.HasField("ping"):
            return Response(status=Status(plan_digest=f"{name} to {caller}"))
        return Response(refusal=Refusal(reason=LARGE))

    def channel(self, name, to="hub"):
        """A raw connection, to do what honest devices do not."""
        own = CREDENTIALS[name]
        credentials = grpc.ssl_channel_credentials(own.authority, own.key, own.certificate)
        options = [("grpc.ssl_target_name_override", certificate_name(to))]
        return self._stack.enter_context(
            grpc.secure_channel(self.addresses[to], credentials, options)
        )

    def call(self, name, peer, pieces=None, purpose="talk"):
        """A raw call to the relay; what it sends are pieces, or nothing until the test ends."""
        ended = threading.Event()
        self._stack.callback(ended.set)
        relayed = self.channel(name).stream_stream(
            "/ssdfl.mesh.v1.Device/Relay",
            request_serializer=Piece.SerializeToString,
            response_deserializer=Piece.FromString,
        )
        asked = ((PEER_KEY, peer.encode()), (PURPOSE_KEY, purpose))
        call = relayed(_sent(pieces or (), ended), metadata=asked, timeout=60)
        self._stack.callback(call.cancel)
        return call


def _sent(pieces, ended):
    yield from pieces
    ended.wait(60)


@pytest.fixture
def devices():
    with ExitStack() as stack:
        yield Devices(stack)


def heard(transport, name, request=PING, within_s=90):
    """A neighbour's answer, as soon as there is one."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            return transport.ask(name, request, 10)
        except UnreachableError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def eventually(condition, within_s=60):
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def code(call):
    """How a call ended."""
    with pytest.raises(grpc.RpcError) as caught:
        next(call)
    return caught.value.code().name


def test_two_devices_that_cannot_be_dialled_ask_each_other(devices):
    devices.start("hub", listens=True)
    ann, bob = devices.start("ann"), devices.start("bob")
    assert heard(bob, "ann").status.plan_digest == "ann to bob"
    assert heard(ann, "bob").status.plan_digest == "bob to ann"
    assert set(devices.asked) == {("bob", "ann"), ("ann", "bob")}
    both = [(bob, "ann"), (ann, "bob")] * 3
    with ThreadPoolExecutor(6) as pool:
        answers = pool.map(lambda one: heard(*one, PULL).refusal.reason, both)
        assert all(answer == LARGE for answer in answers)


def test_the_order_in_which_devices_start_does_not_matter(devices):
    hub = devices.start("hub", listens=True)
    port = devices.addresses["hub"]
    hub.stop()
    bob = devices.start("bob")
    with pytest.raises(UnreachableError):
        bob.ask("ann", PING, 1)
    devices.start("ann")
    again = GrpcTransport(
        port, {"ann": "", "bob": ""}, CREDENTIALS["hub"],
        routes=routes_of(NETWORK, "hub", port, {"ann": "", "bob": ""}),
    )  # fmt: skip
    again.start(lambda *_: Response())
    try:
        assert heard(bob, "ann").status.plan_digest == "ann to bob"
    finally:
        again.stop()


def test_another_relay_takes_over_when_one_dies(devices):
    relays = [devices.start(name, listens=True) for name in ("hub", "other")]
    ann, bob = devices.start("ann"), devices.start("bob")
    heard(bob, "ann")
    heard(ann, "bob")
    relays[0].stop()
    assert heard(bob, "ann", PULL).refusal.reason == LARGE
    assert heard(ann, "bob", PULL).refusal.reason == LARGE


SPOILED = {
    "flips a bit": lambda pieces: [*pieces[:-1], bytes([*pieces[-1][:-1], pieces[-1][-1] ^ 1])],
    "repeats": lambda pieces: [*pieces, pieces[-1]],
    "drops": lambda pieces: pieces[:-1],
}


class Spoiler:
    """A relay that passes on some pieces, and then something else than it got."""

    def __init__(self, kind, relay_of):
        self.kind, self.relay_of, self.spoiled = kind, relay_of, 0

    async def copy(self, relay, source, target):
        number = 0
        while isinstance(piece := await source.read(), bytes):
            number += 1
            pieces = [piece]
            if relay is self.relay_of() and number > 6:  # the handshake is over
                self.spoiled += 1
                pieces = SPOILED[self.kind](pieces)
            for one in pieces:
                await target.write(one)


def spoil(monkeypatch, kind, relay_of):
    spoiler = Spoiler(kind, relay_of)

    async def copy(self, source, target):
        await spoiler.copy(self, source, target)

    monkeypatch.setattr(Relay, "_copy", copy)
    return spoiler


@pytest.mark.parametrize("kind", SPOILED)
def test_a_relay_that_changes_what_it_passes_on_is_noticed(devices, monkeypatch, kind):
    hub = devices.start("hub", listens=True)
    spoiler = spoil(monkeypatch, kind, lambda: hub._server.relay)
    ann, bob = devices.start("ann"), devices.start("bob")
    answers = []
    deadline = time.monotonic() + 90
    for transport, name in cycle([(bob, "ann"), (ann, "bob")]):
        with suppress(UnreachableError):
            answers.append(transport.ask(name, PULL, 2).refusal.reason)
        if spoiler.spoiled > 3:
            break
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert answers == []


def test_devices_turn_to_a_relay_that_changes_nothing(devices, monkeypatch):
    hub = devices.start("hub", listens=True)
    devices.start("other", listens=True)
    spoil(monkeypatch, "flips a bit", lambda: hub._server.relay)
    ann, bob = devices.start("ann"), devices.start("bob")
    assert heard(bob, "ann", PULL).refusal.reason == LARGE
    assert heard(ann, "bob", PULL).refusal.reason == LARGE


def test_strangers_cannot_use_a_relay(devices):
    hub = devices.start("hub", listens=True)
    devices.start("ann")
    assert code(devices.call("eve", "ann")) == "PERMISSION_DENIED"  # no neighbour
    assert hub.refused == {"eve": 1}
    assert code(devices.call("cat", "ann")) == "PERMISSION_DENIED"  # no neighbour of ann's
    assert code(devices.call("bob", "hub")) == "PERMISSION_DENIED"
    assert code(devices.call("bob", "bob")) == "PERMISSION_DENIED"
    assert code(devices.call("bob", "nobody")) == "PERMISSION_DENIED"
    assert code(devices.call("bob", "ann", purpose="another")) == "PERMISSION_DENIED"


def test_a_device_that_can_be_dialled_is_not_relayed_to(devices):
    devices.start("other", listens=True)
    devices.start("hub", listens=True)
    assert code(devices.call("ann", "other")) == "PERMISSION_DENIED"


def test_who_dials_a_device_that_does_not_wait_is_told_so(devices):
    devices.start("hub", listens=True)
    assert code(devices.call("bob", "ann")) == "UNAVAILABLE"


def test_a_device_has_a_few_calls_at_a_relay_and_no_more(devices):
    hub = devices.start("hub", listens=True)
    calls = [devices.call("ann", "bob") for _ in range(MAX_CALLS)]
    relay = hub._server.relay
    eventually(lambda: relay._calls["ann", "bob", "talk"] == MAX_CALLS)
    assert code(devices.call("ann", "bob")) == "RESOURCE_EXHAUSTED"
    assert next(devices.call("bob", "ann")).data == b""  # others are not held up
    calls[-1].cancel()
    eventually(lambda: relay._calls["ann", "bob", "talk"] == MAX_CALLS - 1)
    for call in calls:
        call.cancel()
    eventually(lambda: not relay._calls["ann", "bob", "talk"])
    assert not any(relay._waiting.values())
    assert code(devices.call("bob", "ann")) == "UNAVAILABLE"


def test_a_relay_takes_no_more_than_is_fetched(devices):
    """bob sends and sends, ann fetches nothing: what a relay holds stays small."""
    hub = devices.start("hub", listens=True)
    waiting = devices.call("ann", "bob")
    sent = []

    def pieces():
        for number in range(4000):
            sent.append(number)
            yield Piece(data=bytes(PIECE_BYTES))

    eventually(lambda: any(hub._server.relay._waiting.values()))
    dialling = devices.call("bob", "ann", pieces())
    assert next(dialling).data == b""
    eventually(lambda: _stands_still(sent))
    assert len(sent) * PIECE_BYTES < 32 << 20
    assert next(waiting).data == b""
    assert next(waiting).data == bytes(PIECE_BYTES)


def _stands_still(sent):
    before = len(sent)
    time.sleep(0.5)
    return before and len(sent) == before


def test_too_large_a_piece_ends_both_calls(devices):
    hub = devices.start("hub", listens=True)
    waiting = devices.call("ann", "bob")
    eventually(lambda: any(hub._server.relay._waiting.values()))
    dialling = devices.call("bob", "ann", [Piece(data=bytes(PIECE_BYTES + 17))])
    assert [piece.data for piece in dialling] == [b""]
    assert [piece.data for piece in waiting] == [b""]


def test_a_call_that_a_relay_cancels_does_not_end_the_task_that_reads_it():
    class Cancelled:
        async def read(self):
            raise asyncio.CancelledError

    with pytest.raises(ConnectionError, match="cancelled by the relay"):
        on_loop(_read(Cancelled()), 5)
    assert event_loop().is_running()


def hidden_pair(settings, tmp_path, address):
    """A mesh of a triangle in which only the device 2 can be dialled."""
    experiment = small("network.spec=complete:n=3", "clusters.number=1", *settings)
    hosts = [Host("0", ""), Host("1", ""), Host("2", address)]
    return experiment, made(experiment, tmp_path / "mesh", hosts=hosts)


def test_they_train_through_a_third_as_in_the_simulation(tmp_path):
    address = loopback_hosts(["2"])[0].address
    experiment, mesh = hidden_pair((), tmp_path, address)
    with running(mesh) as processes:
        finish(processes)
    expected, _ = local_parameters(experiment, "ssdfl")
    assert final_parameters(mesh) == pytest.approx(expected, abs=2e-5)
    assert "0 is reached through 2" in (mesh / "1" / "device.log").read_text()
    lines = [json.loads(path.read_text()) for path in mesh.glob("*/status.json")]
    assert [(one["bad_messages"], one["refused"]) for one in lines] == [(0, 0)] * 3


def test_they_train_on_machines_without_a_way_to_each_other(tmp_path):
    if reason := why_not():
        pytest.skip(reason)
    with some_machines(3) as machines:
        machines[0].lose_way_to(machines[1])
        machines[1].lose_way_to(machines[0])
        experiment, mesh = hidden_pair((), tmp_path, f"{machines[2].address}:7400")
        devices = [
            machine.starts("device", mesh / name, env={**os.environ, **ENVIRONMENT})
            for name, machine in zip("012", machines, strict=True)
        ]
        try:
            assert [device.wait(timeout=180) for device in devices] == [0, 0, 0]
        finally:
            for device in devices:
                device.kill()
    expected, _ = local_parameters(experiment, "ssdfl")
    assert final_parameters(mesh) == pytest.approx(expected, abs=2e-5)
