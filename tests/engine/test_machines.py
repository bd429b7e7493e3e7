"""Two machines with a network between them: ranks and a mesh on both, also under faults."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import torch

from machines import two_machines, why_not
from mesh_help import (
    ENVIRONMENT,
    check_as_good,
    made,
    small,
    wait_for_words,
)
from ranks_help import TINY, children, environment, finish_in_ranks, parameters
from ssdfl.engine.row_exchange import FORBIDDEN
from ssdfl.mesh.hosts import Host
from ssdfl.records.folder import RunFolder

pytestmark = [pytest.mark.mesh, pytest.mark.xdist_group("endless meshes")]


@pytest.fixture
def machines():
    if reason := why_not():
        pytest.skip(reason)
    with two_machines() as both:
        yield both


def torchruns(machines, settings, folder):
    """One torchrun on each machine, with one rank each, as docs/cluster.md has it."""
    asked = [word for setting in settings for word in ("--set", setting)]
    for place, machine in enumerate(machines):
        words = [
            "-m",
            "torch.distributed.run",
            "--nnodes",
            2,
            "--nproc-per-node",
            1,
            "--max-restarts",
            3,
        ]
        words += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{machines[0].address}:29500"]
        words += ["--rdzv-conf", f"is_host={1 - place}", "--local-addr", machine.address]
        words += ["-m", "ssdfl", "run", *asked, "--engine", "distributed", "--out", folder]
        yield subprocess.Popen(
            machine.runs(sys.executable, *words),
            env=environment(
                GLOO_SOCKET_IFNAME="eth0",
                TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1",
                **{FORBIDDEN: "0"},
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def end(running):
    """End processes, which end their own."""
    for one in running:
        one.terminate()
    for one in running:
        one.communicate()


def test_ranks_of_two_machines_survive_a_death(machines, tmp_path):
    settings = [*TINY, "cycles=100", "evaluate.every=50", 'methods=["ssdfl"]']
    settings += ["model.name=rank_jobs:unhurried_cnn"]
    alone, together = tmp_path / "alone", tmp_path / "together"
    finish_in_ranks([*settings, "engine.name=distributed"], alone, tmp_path)
    running = list(torchruns(machines, settings, together))
    try:
        deadline = time.monotonic() + 120
        while not (together / "seed-0" / "ssdfl" / "checkpoint.safetensors").exists():
            assert time.monotonic() < deadline
            assert all(one.poll() is None for one in running), [
                one.communicate() for one in running
            ]
            time.sleep(0.02)
        assert len(RunFolder(together).read_rows(0, "ssdfl")) < 100
        os.kill(children(running[1].pid)[-1], signal.SIGKILL)
        said = [one.communicate(timeout=240)[1] for one in running]
    finally:
        end(running)
    assert [one.returncode for one in running] == [0, 0], said
    assert said[0].count("demo: helpers:tiny_data") == 2  # it was started twice
    assert torch.equal(parameters(together, "ssdfl"), parameters(alone, "ssdfl"))
    rows = [RunFolder(folder).read_rows(0, "ssdfl") for folder in (together, alone)]
    assert repr(rows[0]) == repr(rows[1])


def test_a_mesh_of_two_hosts_trains_on_while_the_cable_is_out(machines, tmp_path):
    experiment = small("cycles=100000", "evaluate.every=20")
    names = [str(k) for k in range(8)]
    hosts = [Host(name, f"{machines[k // 4].address}:{7000 + k}") for k, name in enumerate(names)]
    mesh = made(experiment, tmp_path / "mesh", patience_s=20, hosts=hosts)
    places = [tmp_path / "first", tmp_path / "second"]
    for k, name in enumerate(names):
        places[k // 4].mkdir(exist_ok=True)
        (mesh / name).rename(places[k // 4] / name)
    running = [
        machine.starts(
            *("mesh", "up", place),
            function="mesh_help:run_command",
            env={**os.environ, **ENVIRONMENT},
        )
        for machine, place in zip(machines, places, strict=True)
    ]

    def steps():
        texts = [path.read_text() for place in places for path in place.glob("*/status.json")]
        return [json.loads(text)["step"] for text in texts if text] if len(texts) == 8 else [0]

    def wait_for_step(step, timeout_s=240):
        deadline = time.monotonic() + timeout_s
        while min(steps()) < step:
            assert time.monotonic() < deadline, steps()
            assert all(one.poll() is None for one in running)
            time.sleep(0.1)

    try:
        wait_for_step(30)
        machines[1].pull_cable()
        at = time.time()
        wait_for_words(places[0] / "3" / "device.log", "4 is gone")
        wait_for_words(places[1] / "4" / "device.log", "3 is gone")
        wait_for_step(max(steps()) + 6, timeout_s=18)  # less than the patience: nobody waits
        machines[1].plug_cable()
        wait_for_step(max(steps()) + 150)
    finally:
        for one in running:
            one.terminate()
        for one in running:
            one.wait()
    for place in places:
        for name in names:
            if (place / name).exists():
                (place / name).rename(mesh / name)
    log = (mesh / "3" / "device.log").read_text()
    gone = re.search(r"^(\S+ \S+),(\d+) WARNING 4 is gone", log, flags=re.M)
    assert gone, log
    assert time.mktime(time.strptime(gone[1], "%Y-%m-%d %H:%M:%S")) < at + 5
    assert log.count("4 is there") >= 2
    check_as_good(mesh)
