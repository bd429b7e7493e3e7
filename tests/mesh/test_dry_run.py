"""What a device really sends is what a dry run says."""

import json
import threading
from collections import defaultdict

import numpy as np
import pytest
from google.protobuf.json_format import ParseDict

from commands import quick_command
from mesh_help import small
from own_data_help import NAMES, own_settings, write_files
from ssdfl.mesh import device
from ssdfl.mesh.device import RunningDevice
from ssdfl.mesh.dry_run import facts_to_tell
from ssdfl.mesh.folder import init_mesh
from ssdfl.mesh.member import Member
from ssdfl.mesh.mesh_pb2 import Descriptor, Fact, Response
from ssdfl.mesh.transport import GrpcTransport
from ssdfl.mesh.wire import unpack_samples

SETTINGS = {
    "default": (),
    "paper": ("share.samples=raw", "share.labels=counts"),
    "little": ("share.labels=rounded", "share.samples=sketch", "share.gradient_sketch=yes"),
    "nothing": ("share.labels=none", "share.samples=none", "share.gradient_sketch=no"),
}


SENT = defaultdict(list)


class Recorder(GrpcTransport):
    """A transport that keeps whatever leaves its device, by the listening address."""

    def start(self, handler):
        def answer(name, request):
            found = handler(name, request)
            response = Response.FromString(found) if isinstance(found, bytes) else found
            SENT[self._listen].append(response)
            return found

        super().start(answer)

    def ask(self, neighbour, request, timeout_s, wanted=lambda: True):
        SENT[self._listen].append(request)
        return super().ask(neighbour, request, timeout_s, wanted)


COMPUTING = threading.RLock()


def one_at_a_time(function):
    """Devices of one process share a model and PyTorch's generator: never two at a time."""

    def alone(*arguments):
        with COMPUTING:
            return function(*arguments)

    return alone


def run_together(folders, monkeypatch):
    """All devices as threads of this process; gives what each has sent, by name."""
    monkeypatch.setattr(device, "GrpcTransport", Recorder)
    for name in ("draw", "described", "measured"):
        monkeypatch.setattr(Member, name, one_at_a_time(getattr(Member, name)))
    SENT.clear()
    devices = [RunningDevice(folder) for folder in folders]
    finished = []
    threads = [
        threading.Thread(target=lambda one=one: finished.append(one.run())) for one in devices
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert finished == [True] * len(folders)
    for one in devices:
        seen = one.reading()
        assert (seen.done, seen.bad_messages_total, seen.refused_calls_total) == (1, 0, 0)
        assert (seen.step, seen.cycle) == (seen.last_step, one.member.experiment.cycles)
        assert seen.received_bytes_total > 0
        assert 0 <= seen.score <= 1
    return {one.config.name: SENT[one.config.listen] for one in devices}


def own_facts(name, sent):
    """Of all that left a device: what is about itself and its data, by kind; each fact once."""
    answers = [message for message in sent if isinstance(message, Response)]
    kinds = {message.WhichOneof("kind") for message in sent}
    facts = [Fact.FromString(signed.fact) for answer in answers for signed in answer.facts.facts]
    about = [fact.descriptor for fact in facts if fact.descriptor.device == name]
    held = [fact for answer in answers for fact in answer.held.devices if fact.device == name]
    links = {(fact.link.a, fact.link.b) for fact in facts if fact.link.a == name}
    samples = [answer.sample_batch for answer in answers if answer.HasField("sample_batch")]
    return kinds, about, held, links, samples


def check_alike(fact, expected):
    """The same fields with the same numbers; in one process the last bits may differ."""
    found, wanted = (dict(message.ListFields()) for message in (fact, expected))
    assert {field.name for field in found} == {field.name for field in wanted}
    for field, value in found.items():
        if field.name == "device":
            assert value == wanted[field]
        else:
            assert np.allclose(value, wanted[field], rtol=1e-4), field.name


def check_told(dry, sent):
    name = dry["device"]
    kinds, about, held, links, samples = own_facts(name, sent)
    to_all, to_neighbours = dry["to_all"], dry["to_neighbours"]
    assert about
    for fact in about:
        check_alike(fact, ParseDict(to_all["facts"], Descriptor()))
    assert {b for _, b in links} <= set(to_all["distances_of_data_to"])
    if to_all["data"] is None:
        assert not held
    else:
        assert all(json.loads(fact.summary) == to_all["data"]["summary"] for fact in held)
        assert all(fact.samples == to_all["data"]["samples"] for fact in held)
    shown = to_neighbours["samples"]
    for batch in samples:
        if shown is None:
            assert batch.rows == 0
            assert not batch.data
        else:
            assert np.allclose(unpack_samples(batch, len(shown[0])), shown)
    allowed = {
        "ping",
        "pull",
        "gossip",
        "samples",
        "holdings",
        "status",
        "parameters",
        "wait",
        "absent",
    }
    assert kinds <= allowed | {"facts", "sample_batch", "held"}
    sizes = {
        len(answer.parameters.data) for answer in sent if answer.WhichOneof("kind") == "parameters"
    }
    assert sizes == {to_neighbours["in_every_step"]["bytes"]}


@pytest.mark.mesh
@pytest.mark.parametrize("share", SETTINGS.values(), ids=SETTINGS)
def test_a_device_sends_what_its_dry_run_says(share, tmp_path, monkeypatch):
    network = ("network.spec=path:n=3", "clusters.number=0", "cycles=1")
    experiment = small(*network, *share)
    folders = init_mesh(experiment, tmp_path / "mesh", method="sdfl", seed=0, ping_deadline_s=30)
    dry = [facts_to_tell(folder) for folder in folders]
    sent = run_together(folders, monkeypatch)
    for one in dry:
        check_told(one, sent[one["device"]])


@pytest.mark.mesh
def test_a_device_with_its_own_data_sends_what_its_dry_run_says(tmp_path, monkeypatch):
    """Before anyone has shared anything the summary is exact; afterwards everything is."""
    files = write_files(tmp_path / "files")
    experiment = own_settings(
        tmp_path, f"data.name={files}", "data.weights=size", "clusters.number=0"
    )
    folders = init_mesh(experiment, tmp_path / "mesh", method="sdfl", seed=0, ping_deadline_s=30)
    for folder in folders:
        text = (folder / "experiment.toml").read_text().replace("encoding.json", "")
        (folder / "experiment.toml").write_text(text)
    before = [facts_to_tell(folder) for folder in folders]
    sent = run_together(folders, monkeypatch)
    after = [facts_to_tell(folder) for folder in folders]
    for early, late in zip(before, after, strict=True):
        assert "alone" in early["encoded_by"]
        assert early["to_all"]["data"] == late["to_all"]["data"]
        assert late["encoded_by"] == "summaries of all devices"
        check_told(late, sent[late["device"]])


def test_a_dry_run_sends_and_writes_nothing(tmp_path):
    files = write_files(tmp_path / "files")
    folders = init_mesh(
        own_settings(tmp_path, f"data.name={files}"), tmp_path / "mesh", method="sdfl", seed=0
    )
    before = sorted(path.name for path in folders[0].iterdir())
    done = quick_command("device", folders[0], "--dry-run")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["device"] in NAMES
    assert told["to_all"] == {
        "data": None,
        "facts": None,
        "distances_of_data_to": [],
    }  # clusters are given
    assert told["to_neighbours"]["samples"] is None
    assert sorted(path.name for path in folders[0].iterdir()) == before
