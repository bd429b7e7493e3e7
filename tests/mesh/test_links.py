"""Links of a mesh: strangers, bad messages, devices that cannot be dialled, and cuts that heal."""

import dataclasses
import errno
import itertools
import re
import socket
import threading
import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from datetime import timedelta
from pathlib import Path

import grpc
import numpy as np
import pytest
import torch

from helpers import moment, tiny_job
from mesh_help import (
    check_as_good,
    come_together,
    final_parameters,
    finish,
    local_parameters,
    made,
    running,
    small,
    train_on,
    wait_for_step,
    wait_for_words,
)
from ssdfl.clusters import read_plan
from ssdfl.errors import InputError, NotYetError
from ssdfl.experiments import run_experiment
from ssdfl.learning import load_dataset
from ssdfl.mesh import device, mesh_pb2
from ssdfl.mesh.certificates import Authority
from ssdfl.mesh.device_engine import device_steps, initial_device_state
from ssdfl.mesh.hosts import Host, loopback_hosts
from ssdfl.mesh.mesh_pb2 import (
    Absent,
    Gossip,
    Parameters,
    Ping,
    Pull,
    Refusal,
    Request,
    Response,
    Samples,
    Status,
    Wait,
)
from ssdfl.mesh.neighbours import PING_DEADLINE_S
from ssdfl.mesh.node import Node
from ssdfl.mesh.outbox import MOST_KEPT
from ssdfl.mesh.transport import Credentials, GrpcTransport, UnreachableError, UnreadableError
from ssdfl.mesh.wire import BadMessageError, pack, pack_samples, unpack, unpack_samples
from ssdfl.methods import Message
from ssdfl.preparation import prepare

pytestmark = pytest.mark.mesh


def credentials(authority, name):
    return Credentials(*authority.issue(name), authority.certificate)


@pytest.fixture
def server():
    """A device called alice whose only neighbour is bob."""
    authority = Authority()
    transport = GrpcTransport(
        "127.0.0.1:0", {"bob": "127.0.0.1:1"}, credentials(authority, "alice")
    )
    asked = []

    def handle(name, request):
        asked.append(name)
        return Response(status=Status(step=7))

    transport.start(handle)
    yield authority, transport, asked
    transport.stop()


def caller(credentials, port, name="alice"):
    transport = GrpcTransport("", {name: f"127.0.0.1:{port}"}, credentials)
    transport.start(lambda *_: Response())
    return transport


def test_a_neighbour_is_answered(server):
    authority, transport, asked = server
    bob = caller(credentials(authority, "bob"), transport.port)
    assert bob.ask("alice", Request(ping=Ping()), 5).status.step == 7
    assert asked == ["bob"]
    bob.stop()


@pytest.mark.parametrize("name", ["São Paulo", "7", "10.0.0.1", "Rack_1.Host-2"])
def test_devices_are_known_by_the_names_that_the_network_has(name):
    authority = Authority()
    asked = []

    def handle(caller, request):
        asked.append(caller)
        return Response(status=Status(step=7))

    served = GrpcTransport("127.0.0.1:0", {name: ""}, credentials(authority, name))
    served.start(handle)
    bob = caller(credentials(authority, name), served.port, name=name)
    try:
        assert bob.ask(name, Request(ping=Ping()), 5).status.step == 7
    finally:
        bob.stop()
        served.stop()
    assert asked == [name]


def test_strangers_are_turned_away(server):
    authority, transport, asked = server
    eve = caller(
        credentials(authority, "eve"), transport.port
    )  # a valid certificate, but no neighbour
    with pytest.raises(UnreachableError, match="PERMISSION_DENIED"):
        eve.ask("alice", Request(ping=Ping()), 5)
    foreign = caller(
        credentials(Authority(), "bob"), transport.port
    )  # another authority's certificate
    with pytest.raises(UnreachableError, match="UNAVAILABLE"):
        foreign.ask("alice", Request(ping=Ping()), 5)
    trusting = Credentials(
        *Authority().issue("bob"), authority.certificate
    )  # trusts alice, untrusted by her
    distrusted = caller(trusting, transport.port)
    with pytest.raises(UnreachableError):
        distrusted.ask("alice", Request(ping=Ping()), 5)
    for channel in (
        grpc.insecure_channel(f"127.0.0.1:{transport.port}"),
        grpc.secure_channel(
            f"127.0.0.1:{transport.port}",
            grpc.ssl_channel_credentials(authority.certificate),
            options=[("grpc.ssl_target_name_override", "alice")],
        ),
    ):  # plain text, and no certificate at all
        ask = channel.unary_unary("/ssdfl.mesh.v1.Device/Ask")
        with pytest.raises(grpc.RpcError):
            ask(Request(ping=Ping()).SerializeToString(), timeout=5)
        channel.close()
    for one in (eve, foreign, distrusted):
        one.stop()
    assert asked == []
    assert transport.refused["eve"] >= 1


def test_a_device_that_is_not_who_it_should_be_is_not_asked(server):
    authority, transport, asked = server
    bob = caller(credentials(authority, "bob"), transport.port, name="carol")
    with pytest.raises(UnreachableError):
        bob.ask("carol", Request(ping=Ping()), 5)
    bob.stop()
    assert asked == []


def test_an_expired_certificate_is_refused(server, monkeypatch):
    authority, transport, asked = server
    with monkeypatch.context() as past:
        past.setattr("ssdfl.mesh.certificates.VALID_FOR", timedelta(hours=-1))
        expired = caller(credentials(authority, "bob"), transport.port)
    with pytest.raises(UnreachableError):
        expired.ask("alice", Request(ping=Ping()), 5)
    expired.stop()
    good = caller(credentials(authority, "bob"), transport.port)
    assert good.ask("alice", Request(ping=Ping()), 5).status.step == 7
    good.stop()
    assert asked == ["bob"]


def test_messages_beyond_the_limit_are_not_taken(server):
    authority, transport, asked = server
    bob = caller(credentials(authority, "bob"), transport.port)
    huge = Request(gossip=Gossip(known=["x" * (65 << 20)]))
    with pytest.raises(UnreachableError, match="RESOURCE_EXHAUSTED"):
        bob.ask("alice", huge, 20)
    bob.stop()
    assert asked == []


GOOD = torch.arange(6.0)


def packed(row, step):
    return pack(Message(row[None]), moment(step))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda m: setattr(m, "step", 3), "step 3 instead of 4"),
        (lambda m: setattr(m, "dtype", "float64"), "dtype 'float64'"),
        (lambda m: setattr(m, "data", m.data[:-1]), "in 23 bytes"),
        (lambda m: setattr(m, "data", m.data + b"12345678"), "in 32 bytes"),
        (lambda m: setattr(m, "count", 7), "7 numbers"),
        (lambda m: setattr(m, "data", np.full(6, np.nan, "<f4").tobytes()), "not finite"),
        (lambda m: setattr(m, "data", np.full(6, np.inf, "<f4").tobytes()), "not finite"),
        (lambda m: setattr(m, "data", np.full(6, -1e30, "<f4").tobytes()), "beyond 1e\\+12"),
    ],
)
def test_bad_parameters_are_refused_with_a_reason(spoil, reason):
    message, own = packed(GOOD, 4), Message(GOOD[None])
    assert torch.equal(unpack(message, own, moment(4)), GOOD)
    spoil(message)
    with pytest.raises(BadMessageError, match=reason):
        unpack(message, own, moment(4))


def test_bad_samples_are_refused():
    samples = np.ones((3, 2))
    assert unpack_samples(pack_samples(samples), 2) == pytest.approx(samples)
    with pytest.raises(BadMessageError, match="instead of 5"):
        unpack_samples(pack_samples(samples), 5)
    with pytest.raises(BadMessageError, match="not finite"):
        unpack_samples(pack_samples(samples * np.nan), 2)
    with pytest.raises(BadMessageError):
        unpack_samples(Samples(rows=2**40, columns=2, data=b""), 2)


class Liar:
    """A transport on which the one neighbour answers pulls with what it is told to."""

    def __init__(self, answer):
        self.answer = answer

    def start(self, handler):
        pass

    def ask(self, neighbour, request, timeout_s, wanted=None):
        if request.WhichOneof("kind") == "ping":
            return Response(status=Status())
        return self.answer(request)

    def stop(self):
        pass


@pytest.mark.parametrize(
    "answer",
    [
        lambda request: Response(parameters=Parameters(step=request.pull.step, dtype="float32")),
        lambda request: Response(
            parameters=packed(torch.full((68,), torch.nan), request.pull.step)
        ),
        lambda request: Response(parameters=packed(torch.ones(68), request.pull.step + 1)),
        lambda request: Response(),
    ],
    ids=["truncated", "nan", "replayed", "empty"],
)
def test_what_a_lying_neighbour_sends_is_counted_and_not_mixed(answer):
    job = tiny_job("sdfl", "path:n=2", clusters=1, cycles=1, optimizers="sgd")
    alone = tiny_job("pdfl", "path:n=2", clusters=1, cycles=1, optimizers="sgd", steps_per_cycle=2)
    node = Node(job.network, 0, ("a", "b"), Liar(answer))
    node.neighbours.heard("b", Status())
    *_, (state, _) = device_steps(job, node, None)
    assert node.bad_messages["b"] == 3
    from ssdfl.engine import run

    *_, (_, expected) = run(alone)
    assert torch.allclose(state.X, expected.X[:1], atol=1e-6)
    node.close()


def test_a_slow_neighbour_is_waited_for_up_to_a_limit():
    job = tiny_job("sdfl", "path:n=2", clusters=1, cycles=1, steps_per_cycle=1)
    node = Node(
        job.network, 0, ("a", "b"), Liar(lambda request: Response(wait=Wait())), patience_s=0.4
    )
    node.neighbours.heard("b", Status())
    start = time.monotonic()
    list(device_steps(job, node, None))
    assert 0.3 < time.monotonic() - start < 5
    assert not node.bad_messages
    node.close()


def test_waiting_in_vain_costs_less_each_time():
    """It answers pings and every pull at once with `Wait`."""
    job = tiny_job("sdfl", "path:n=2", clusters=1, cycles=2)
    asked = []
    liar = Liar(lambda request: asked.append(request.pull.step) or Response(wait=Wait()))
    node = Node(job.network, 0, ("a", "b"), liar, patience_s=0.8)
    node.neighbours.heard("b", Status())
    start = time.monotonic()
    assert len(list(device_steps(job, node, None))) == 6
    assert time.monotonic() - start < 5  # 6 × 0.8 s without halving, 1.6 s with it
    polls = [asked.count(step) for step in range(6)]
    assert polls[0] <= 17  # 0.05 s apart
    assert polls[1:] == sorted(polls[1:], reverse=True)  # the second was asked for ahead, too
    assert polls[5] <= 2
    node.close()


@pytest.mark.parametrize("answer", ["undecodable", "too large"])
def test_an_answer_that_cannot_be_read_is_counted_and_not_waited_for(answer):
    def unreadable(request):
        raise UnreadableError(answer)

    job = tiny_job("sdfl", "path:n=2", clusters=1, cycles=1)
    node = Node(job.network, 0, ("a", "b"), Liar(unreadable), patience_s=60)
    node.neighbours.heard("b", Status())
    start = time.monotonic()
    list(device_steps(job, node, None))
    assert time.monotonic() - start < 20
    assert node.bad_messages == {"b": 3}
    node.close()


def test_garbage_and_answers_beyond_the_limit_are_told_from_silence():
    authority = Authority()
    large = Response(refusal=Refusal(reason="x" * 4096))
    for content in (b"\xff\xff\xff", large.SerializeToString()):
        alice = GrpcTransport("127.0.0.1:0", {"bob": ""}, credentials(authority, "alice"))
        alice.start(lambda *_, content=content: content)
        bob = GrpcTransport(
            "",
            {"alice": f"127.0.0.1:{alice.port}"},
            credentials(authority, "bob"),
            max_message_bytes=2048,
        )
        bob.start(lambda *_: Response())
        with pytest.raises(UnreadableError):
            bob.ask("alice", Request(gossip=Gossip()), 10)
        bob.stop()
        alice.stop()


def test_a_neighbour_whose_step_oscillates_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr("ssdfl.mesh.node.LINGER_S", 0.01)
    job = tiny_job("sdfl", "path:n=2", clusters=1)
    node = Node(job.network, 0, ("a", "b"), Liar(None))
    places = itertools.cycle([Status(step=2), Status(step=1)])
    monkeypatch.setattr(
        node.neighbours, "wait", lambda *_: node.neighbours.heard("b", next(places))
    )
    node.neighbours.heard("b", Status(step=1))
    lingering = threading.Thread(target=node.linger, daemon=True)
    lingering.start()
    lingering.join(10)
    assert not lingering.is_alive()
    node.close()


def test_a_step_beyond_the_last_is_ignored():
    job = tiny_job("sdfl", "path:n=2", clusters=1, cycles=10)
    node = Node(job.network, 0, ("a", "b"), Liar(lambda request: Response(absent=Absent())))
    node.neighbours.heard("b", Status())
    steps = []
    for state, _ in device_steps(job, node, None):
        steps.append(state.step)
        node.neighbours.heard("b", Status(step=2**63))
    assert steps == list(range(1, 31))
    node.close()


def test_being_asked_does_not_prove_that_one_can_ask():
    job = tiny_job("sdfl", "path:n=2", clusters=1)
    node = Node(job.network, 0, ("a", "b"), Liar(None))
    node.handle("b", Request(ping=Ping()))
    assert node.neighbours.alive == ()
    node.close()


def test_the_outbox_is_bounded_and_messages_sent_are_counted_on():
    job = tiny_job("sdfl", "path:n=2", clusters=1, cycles=30)
    node = Node(job.network, 0, ("a", "b"), Liar(lambda request: Response(absent=Absent())))
    node.neighbours.heard("b", Status())  # stays at step 0 for ever
    start = dataclasses.replace(initial_device_state(job, 0), transmissions=55)
    kept = [
        (state.transmissions, len(node.outbox._messages))
        for state, _ in device_steps(job, node, start)
    ]
    assert {sent for sent, _ in kept} == {55}
    assert max(messages for _, messages in kept) == MOST_KEPT < 90
    node.close()


def test_a_lead_that_the_schedule_allows_is_none():
    """Two devices that do not mix for long may be far apart in steps; nobody jumps."""
    job = tiny_job("pdfl", "path:n=2", clusters=1, cycles=2)
    never = dataclasses.replace(job, schedule=lambda t: job.schedule(0))
    node = Node(job.network, 0, ("a", "b"), Liar(None))
    node.neighbours.heard("b", Status(step=6))
    assert len(list(device_steps(never, node, None))) == 6
    node.close()


@pytest.mark.parametrize(("method", "goes_on"), [("pdfl", False), ("sdfl", True)])
def test_a_neighbour_ahead_is_no_reason_to_start_without_the_others(
    method, goes_on, tmp_path, monkeypatch
):
    """Unless it has passed a step at which it should have waited for this device."""
    monkeypatch.setattr(device, "GATHER_S", 0.3)
    experiment = small("network.spec=star:n=5", "clusters.number=1", "schedule.tau_a=5")
    one = device.RunningDevice(made(experiment, tmp_path / "mesh", method) / "0")
    plan = one._plan()
    job = one.member.job(plan)
    alike = dataclasses.replace(job, schedule=lambda t: job.schedule(0))
    one.node.plan_digest = "same"
    one.node.neighbours.heard("1", Status(step=8, plan_digest="same"))
    if goes_on:
        one._wait_for_plans(alike, initial_device_state(alike, 0), plan)
    else:
        with pytest.raises(NotYetError, match="neighbour = 2: expected a plan"):
            one._wait_for_plans(alike, initial_device_state(alike, 0), plan)
    one.node.close()


def test_a_full_disk_does_not_stop_training(tmp_path, monkeypatch, caplog):
    mesh = made(small("network.spec=path:n=2", "clusters.number=1"), tmp_path / "mesh")

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("ssdfl.engine.checkpoint.write_tensors", full)
    one = device.RunningDevice(mesh / "0")
    with caplog.at_level("ERROR"):
        job = one.member.job(one._plan())
        one._save(initial_device_state(job, 0), job)
    assert "No space left on device" in caplog.text
    assert "training continues" in caplog.text
    assert not (mesh / "0" / device.CHECKPOINT).exists()
    one.node.close()


@pytest.mark.parametrize("method", ["central", "tthf", "hier"])
def test_what_needs_a_server_is_refused_before_anything_starts(method, tmp_path):
    with pytest.raises(
        InputError, match=f"method = {method}: expected one that mixes linked devices only"
    ):
        run_experiment(small("engine.name=mesh", f"methods=['{method}']"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_wire_format_is_the_documented_one(tmp_path):
    """The Python code of the messages is what the compiler makes of mesh.proto."""
    protoc = pytest.importorskip("grpc_tools.protoc")
    source = Path(mesh_pb2.__file__).parents[2]
    name = "ssdfl/mesh/mesh.proto"
    assert protoc.main(["", f"-I{source}", f"--python_out={tmp_path}", str(source / name)]) == 0
    made_now = (tmp_path / "ssdfl/mesh/mesh_pb2.py").read_text()
    descriptor = re.search(r"AddSerializedFile\((.*)\)", made_now)[1]
    assert (
        descriptor
        == re.search(r"AddSerializedFile\((.*)\)", Path(mesh_pb2.__file__).read_text())[1]
    )


def test_unknown_requests_are_refused_and_counted(monkeypatch):
    monkeypatch.setattr("ssdfl.mesh.outbox.POLL_S", 0.1)
    job = tiny_job("sdfl", "path:n=2", clusters=1)
    node = Node(job.network, 0, ("a", "b"), Liar(None))
    assert node.handle("b", Request()).refusal.reason
    assert sum(node.bad_messages.values()) == 1
    assert node.handle("b", Request(pull=Pull(step=0))).WhichOneof("kind") == "wait"
    node.close()


def test_devices_that_cannot_be_dialled_take_part(tmp_path):
    experiment = small("network.spec=star:n=4", "clusters.number=1")
    names = tuple("0123")
    hosts = [loopback_hosts(names)[0], *(Host(name, "") for name in names[1:])]
    mesh = made(experiment, tmp_path / "mesh", hosts=hosts)
    with running(mesh) as processes:
        finish(processes)
    expected, _ = local_parameters(experiment, "ssdfl")
    assert final_parameters(mesh) == pytest.approx(expected, abs=2e-5)


def test_every_device_forms_the_plan_that_one_machine_would(tmp_path):
    share = ("share.samples=sketch", "share.labels=rounded")
    experiment = small("clusters.number=0", "cycles=1", "optimizers.kind='mixed'", *share)
    mesh = made(experiment, tmp_path / "mesh")
    with running(mesh) as processes:
        finish(processes)
    plans = [read_plan(path) for path in sorted(mesh.glob("*/plan.json"))]
    expected = prepare(experiment, 0, load_dataset(experiment.data.name)).plan
    assert len(plans) == 8
    assert {plan.clusters for plan in plans} == {expected.clusters}
    chosen = expected.chosen
    assert plans[0].chosen.score == pytest.approx(chosen.score, rel=1e-9)
    assert plans[0].settings["gradient_bound"] == expected.settings["gradient_bound"]


class Cable:
    """A TCP link between two devices that can be cut and healed, and may be slow."""

    def __init__(self, target, bytes_per_s=float("inf")):
        self.target, self.whole, self._open = target, True, []
        self._bytes_per_s, self._turn = bytes_per_s, threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        self.whole = False
        for one in self._open:
            one.close()
        self._open = []

    def heal(self):
        self.whole = True

    def close(self):
        self.cut()
        self._listener.close()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            host, port = self.target.rsplit(":", 1)
            try:
                far = socket.create_connection((host, int(port)), timeout=2) if self.whole else None
            except OSError:
                far = None
            if far is None:
                near.close()
                continue
            far.settimeout(None)
            self._open += [near, far]
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=ends, daemon=True).start()

    def _pump(self, source, sink):
        try:
            while data := source.recv(1 << 13):
                with self._turn:
                    time.sleep(len(data) / self._bytes_per_s)
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            one.close()


def test_a_link_that_is_busy_is_not_dead(server):
    authority, transport, _ = server
    cable = Cable(f"127.0.0.1:{transport.port}", bytes_per_s=200e3)
    bob = caller(credentials(authority, "bob"), cable.address.rsplit(":")[1])
    bob.ask("alice", Request(ping=Ping()), 5)
    bob.ask("alice", Request(pull=Pull()), 5)
    large = Request(gossip=Gossip(known=["x" * 1_000_000]))
    sending = threading.Thread(target=bob.ask, args=("alice", large, 30))
    sending.start()
    answered = 0
    while sending.is_alive():
        bob.ask(
            "alice", Request(ping=Ping()), 2 * PING_DEADLINE_S
        )  # raises if there is none in time
        answered += sending.is_alive()
        time.sleep(0.2)
    assert answered >= 5
    bob.stop()
    cable.close()


def test_one_neighbour_cannot_take_all_threads():
    authority, leave = Authority(), threading.Event()
    neighbours = {"bob": "127.0.0.1:1", "carol": "127.0.0.1:1"}
    transport = GrpcTransport("127.0.0.1:0", neighbours, credentials(authority, "alice"))

    def handle(name, request):
        if name == "bob":
            leave.wait(20)
        return Response(status=Status(step=7))

    transport.start(handle)
    bob, carol = (caller(credentials(authority, name), transport.port) for name in ("bob", "carol"))
    with ThreadPoolExecutor(12) as pool:
        greedy = [pool.submit(bob.ask, "alice", Request(pull=Pull()), 20) for _ in range(12)]
        refused, _ = wait(greedy, timeout=15, return_when=FIRST_EXCEPTION)
        assert carol.ask("alice", Request(ping=Ping()), 5).status.step == 7
        assert "RESOURCE_EXHAUSTED" in str(refused.pop().exception())
        leave.set()
    assert (
        8 <= sum(one.exception() is None for one in greedy) < 12
    )  # one may ask after others have left
    for one in (bob, carol, transport):
        one.stop()


@pytest.mark.xdist_group("endless meshes")
def test_a_network_that_is_cut_trains_on_in_its_parts_and_heals(tmp_path):
    import json

    mesh = made(small("cycles=100000", "evaluate.every=20"), tmp_path / "mesh", patience_s=20)
    bridge, cables = (mesh / "3", mesh / "4"), []  # the one link between the two cliques
    for here, there in (bridge, bridge[::-1]):
        config = json.loads((here / "device.json").read_text())
        cables.append(Cable(config["neighbours"][there.name]))
        config["neighbours"][there.name] = cables[-1].address
        (here / "device.json").write_text(json.dumps(config))
    with running(mesh) as processes:
        wait_for_step(processes, 30)
        for cable in cables:
            cable.cut()
        wait_for_words(bridge[0] / "device.log", "4 is gone")
        wait_for_words(bridge[1] / "device.log", "3 is gone")
        train_on(processes)  # nobody waits for the other part
        for cable in cables:
            cable.heal()
        come_together(processes)
    for cable in cables:
        cable.close()
    assert "4 is gone" in (bridge[0] / "device.log").read_text()
    assert (bridge[0] / "device.log").read_text().count("4 is there") >= 2
    check_as_good(mesh)
