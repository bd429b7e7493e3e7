"""Who can hold up a device by calling it: nobody, neighbour or not."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import grpc
import pytest

from ssdfl.mesh import server as server_module
from ssdfl.mesh.certificates import Authority
from ssdfl.mesh.mesh_pb2 import Gossip, Ping, Pull, Refusal, Request, Response, Status
from ssdfl.mesh.names import certificate_name
from ssdfl.mesh.transport import Credentials, GrpcTransport, UnreachableError

AUTHORITY = Authority()
CREDENTIALS = {
    name: Credentials(*AUTHORITY.issue(name), AUTHORITY.certificate)
    for name in ("alice", "bob", "carol", "eve")
}
OPEN = Path("/proc/self/fd")
PING = Request(ping=Ping())


def alice(handle=lambda name, request: Response(status=Status(step=7)), **neighbours):
    """A device with the neighbours bob and carol."""
    known = {"bob": "127.0.0.1:1", "carol": "127.0.0.1:1", **neighbours}
    transport = GrpcTransport("127.0.0.1:0", known, CREDENTIALS["alice"])
    transport.start(handle)
    return transport


def caller(name, transport):
    found = GrpcTransport("", {"alice": f"127.0.0.1:{transport.port}"}, CREDENTIALS[name])
    found.start(lambda *_: Response())
    return found


@pytest.fixture
def stack():
    with ExitStack() as found:
        yield found


def channel(name, transport, stack):
    """A raw connection to alice."""
    own = CREDENTIALS[name]
    credentials = grpc.ssl_channel_credentials(own.authority, own.key, own.certificate)
    options = [("grpc.ssl_target_name_override", certificate_name("alice"))]
    return stack.enter_context(
        grpc.secure_channel(f"127.0.0.1:{transport.port}", credentials, options)
    )


def idle_calls(name, transport, stack, number=40):
    """Calls whose message never comes; they end with the test."""
    leave = threading.Event()
    stack.callback(leave.set)

    def never():
        leave.wait(60)
        yield from ()

    ask = channel(name, transport, stack).stream_unary("/ssdfl.mesh.v1.Device/Ask")
    return [ask.future(never(), timeout=60) for _ in range(number)]


@pytest.mark.parametrize(
    ("name", "code"), [("bob", "RESOURCE_EXHAUSTED"), ("eve", "PERMISSION_DENIED")]
)
def test_calls_whose_message_never_comes_make_nobody_deaf(name, code, stack):
    """Attacks 27 and 28."""
    transport = alice()
    stack.callback(transport.stop)
    idle = idle_calls(name, transport, stack)
    carol = caller("carol", transport)
    stack.callback(carol.stop)
    for _ in range(5):
        assert carol.ask("alice", PING, 5).status.step == 7
        assert carol.ask("alice", Request(pull=Pull()), 5).status.step == 7
    refused = [call for call in idle if call.done()]
    assert {call.exception().code().name for call in refused} == {code}
    assert len(refused) == (32 if name == "bob" else 40)
    assert transport.refused == ({} if name == "bob" else {"eve": 40})
    assert len(transport._server._threads._threads) <= 5  # calls that wait have taken none


def test_a_message_that_does_not_come_in_time_ends_its_call(stack, monkeypatch):
    monkeypatch.setattr(server_module, "RECEIPT_S", 0.3)
    transport = alice()
    stack.callback(transport.stop)
    idle = idle_calls("bob", transport, stack, 8)
    assert {call.exception(20).code().name for call in idle} == {"DEADLINE_EXCEEDED"}
    bob = caller("bob", transport)
    stack.callback(bob.stop)
    assert bob.ask("alice", PING, 5).status.step == 7


def test_pings_are_answered_while_all_other_threads_wait(stack):
    leave = threading.Event()

    def handle(name, request):
        if not request.HasField("ping"):
            leave.wait(30)
        return Response(status=Status(step=7))

    transport = alice(handle)
    stack.callback(transport.stop)
    callers = [caller(name, transport) for name in ("bob", "carol")]
    for one in callers:
        stack.callback(one.stop)
    with ThreadPoolExecutor(14) as pool:
        pulls = [
            pool.submit(one.ask, "alice", Request(pull=Pull()), 30)
            for one in callers
            for _ in range(7)
        ]
        time.sleep(0.5)
        for one in callers:
            assert one.ask("alice", PING, 5).status.step == 7
        leave.set()
        assert all(pull.result().status.step == 7 for pull in pulls)


def test_what_is_no_request_is_refused(stack):
    transport = alice()
    stack.callback(transport.stop)
    ask = channel("bob", transport, stack).unary_unary("/ssdfl.mesh.v1.Device/Ask")
    with pytest.raises(grpc.RpcError) as caught:
        ask(b"\xff\xff\xff", timeout=5)
    assert caught.value.code().name == "INVALID_ARGUMENT"


def open_files():
    return len(list(OPEN.iterdir()))


@pytest.mark.skipif(not OPEN.exists(), reason="counts open files as Linux shows them")
def test_idle_connections_leave_files_free_and_end(stack, monkeypatch, tmp_path):
    """Attack 29: TCP connections that never say anything, without a certificate."""
    monkeypatch.setattr(server_module, "connections_allowed", lambda: 40)
    monkeypatch.setattr(server_module, "HANDSHAKE_MS", 1500)
    transport = alice()
    stack.callback(transport.stop)
    bob = caller("bob", transport)
    stack.callback(bob.stop)
    assert bob.ask("alice", PING, 5).status.step == 7
    before = open_files()
    idle = [socket.create_connection(("127.0.0.1", transport.port)) for _ in range(300)]
    for one in idle:
        stack.callback(one.close)
    time.sleep(0.5)
    taken = open_files() - before - len(idle)  # both ends are in this process
    assert taken <= 40
    (tmp_path / "checkpoint").write_text("can be written")
    assert bob.ask("alice", PING, 5).status.step == 7  # who was connected stays so
    carol = caller("carol", transport)
    stack.callback(carol.stop)
    deadline = time.monotonic() + 20
    while True:  # who was not is let in once the silent ones are dropped
        try:
            assert carol.ask("alice", PING, 2).status.step == 7
            break
        except UnreachableError:
            assert time.monotonic() < deadline


def test_requests_flooded_down_an_open_call_wait_at_their_sender(stack, monkeypatch):
    """A neighbour asks over and over on a call that this device keeps open, and reads nothing."""
    monkeypatch.setattr("ssdfl.mesh.transport._MAX_UNANSWERED", 3)
    leave, asked = threading.Event(), []

    def handle(name, request):
        asked.append(request)
        leave.wait(30)
        return Response(status=Status())

    transport = GrpcTransport("127.0.0.1:0", {"bob": ""}, CREDENTIALS["alice"])
    transport.start(lambda *_: Response())
    stack.callback(transport.stop)
    bob = GrpcTransport("", {"alice": f"127.0.0.1:{transport.port}"}, CREDENTIALS["bob"])
    stack.callback(bob.stop)
    stack.callback(leave.set)
    bob.start(handle)
    call = transport._reverse_calls["bob", "talk"]
    deadline = time.monotonic() + 20
    while call._send.__name__ == "_nowhere":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for number in range(2000):
        call._send(Request(id=number, gossip=Gossip(known=["x" * 1000])))
    time.sleep(1)
    assert len(asked) == 3  # of six threads
    leave.set()


def test_answers_that_are_not_fetched_are_not_piled_up(stack):
    """A neighbour asks for large answers and reads none of them."""
    asked, large = [], Response(refusal=Refusal(reason="x" * (24 << 20)))

    def handle(name, request):
        asked.append(name)
        return large if request.HasField("pull") else Response(status=Status(step=7))

    transport = alice(handle)
    stack.callback(transport.stop)
    ask = channel("bob", transport, stack).stream_stream("/ssdfl.mesh.v1.Device/Ask")
    pull = Request(pull=Pull()).SerializeToString()
    calls = [ask(iter([pull]), timeout=120) for _ in range(8)]  # not iterated, so not read
    stack.callback(lambda: [call.cancel() for call in calls])
    writing = transport._server._writing["bob"]
    expected = 8 - server_module.MAX_WRITES
    deadline = time.monotonic() + 60
    while len(writing._waiters or ()) < expected:  # else answers are still being made
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.3)
    assert len(asked) == 8
    assert writing.locked()
    assert len(writing._waiters) == expected
    carol = caller("carol", transport)
    stack.callback(carol.stop)
    assert len(carol.ask("alice", Request(pull=Pull()), 30).refusal.reason) == 24 << 20


def test_devices_that_start_at_once_share_one_loop(monkeypatch):
    """Else calls of one server end on the loop of another."""

    @cache
    def started():
        time.sleep(0.05)
        return object()

    monkeypatch.setattr(server_module, "_started_loop", started)
    with ThreadPoolExecutor(4) as pool:
        loops = set(pool.map(lambda _: server_module.event_loop(), range(4)))
    assert len(loops) == 1
