"""A mesh of real processes computes what the local engine does."""

import json

import numpy as np
import pytest

from mesh_help import final_parameters, finish, local_parameters, made, running, small
from ssdfl.mesh.folder import device_folders
from ssdfl.mesh.processes import collected_rows
from ssdfl.methods import METHODS

pytestmark = pytest.mark.mesh

# A large epsilon, since Adam else turns the last bits of small gradients into whole steps.
ADAM = "optimizers.kind=adam:rate=0.005,epsilon=0.001"
MIXED = "optimizers.kind=mixed"
SCHEDULES = [(name, MIXED) for name, one in METHODS.items() if not one.reference]
RULES = [
    ("ssdfl+atc", ADAM),
    ("pdfl+helpers:Doubled", "optimizers.kind=effective:rho=0.5,mu=0.01"),
    ("sdfl+median", "optimizers.kind=nesterov:0.5"),
    ("ssdfl+gt", MIXED),
    ("ssdfl+choco:compressor=topk,fraction=0.05", MIXED),
    ("pdfl+median:compressor=sign", MIXED),
]
FRAME_BYTES = 8
"""What a message has beside its content at most: its step and kind."""


def check_bytes(rows, record):
    """What crossed the wire is what was accounted, within 2 % or the frames of small messages."""
    frames = FRAME_BYTES * record.transmissions
    assert sum(row["received"] for row in rows) == record.transmissions
    assert sum(row["received_bytes"] for row in rows) == pytest.approx(
        record.sent_bytes, rel=0.02, abs=frames
    )


def last_rows(mesh):
    """The last line that each device wrote."""
    return [
        json.loads(path.read_text().splitlines()[-1])
        for path in sorted(mesh.glob("*/metrics.jsonl"))
    ]


@pytest.mark.parametrize(("method", "optimizers"), [*SCHEDULES, *RULES])
def test_without_faults_a_mesh_equals_the_local_engine(method, optimizers, tmp_path):
    experiment = small(optimizers)
    mesh = made(experiment, tmp_path / "mesh", method, ping_deadline_s=30)
    with running(mesh) as processes:
        finish(processes)
    expected, record = local_parameters(experiment, method)
    assert final_parameters(mesh) == pytest.approx(expected, abs=2e-5)
    rows = last_rows(mesh)
    assert [row["bad_messages"] for row in rows] == [0] * len(rows)
    assert [row["score"] for row in rows] == pytest.approx(record.device_score, abs=1e-6)
    assert np.mean([row["loss"] for row in rows]) == pytest.approx(record.loss, rel=1e-4)
    check_bytes(rows, record)


def test_rounded_messages_differ_by_single_levels(tmp_path):
    """Engines differ in the last bits of 32, and int8 may then round a number the other way."""
    experiment, method = small(MIXED), "sdfl+ed:compressor=int8"
    mesh = made(experiment, tmp_path / "mesh", method, ping_deadline_s=30)
    with running(mesh) as processes:
        finish(processes)
    expected, record = local_parameters(experiment, method)
    apart = np.abs(final_parameters(mesh) - expected)
    assert np.mean(apart > 2e-5) < 0.01
    assert apart.max() < 5e-3
    check_bytes(last_rows(mesh), record)


def test_liars_are_the_same_on_a_mesh(tmp_path):
    experiment = small("faults.liars=2", "faults.attack=noise")
    mesh = made(experiment, tmp_path / "mesh", "ssdfl", ping_deadline_s=30)
    with running(mesh) as processes:
        finish(processes)
    expected, record = local_parameters(experiment, "ssdfl")
    assert final_parameters(mesh) == pytest.approx(expected, abs=2e-5)
    last = collected_rows(device_folders(mesh))[-1]
    assert last["score"] == pytest.approx(record.score, abs=1e-6)
    assert last["liar_score"] == pytest.approx(record.liar_score, abs=1e-6)
