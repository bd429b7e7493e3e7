"""Meshes of real processes on loopback, for tests."""

import itertools
import json
import os
import secrets
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest

import forked
from ssdfl.learning import load_dataset
from ssdfl.mesh.folder import init_mesh
from ssdfl.mesh.processes import MeshProcesses, parameters
from ssdfl.preparation import make_job, prepare
from ssdfl.records import load_experiment

SMALL = (
    "data.name=helpers:tiny_data",
    "data.labels_per_device=2",
    "network.spec=barbell:size=4",
    "clusters.number=2",
    "schedule.tau_a=2",
    "model.name=mlp",
    "cycles=4",
    "evaluate.every=1",
)

ENVIRONMENT = {"OMP_NUM_THREADS": "1"}


def small(*changes):
    return load_experiment(None, [*SMALL, *changes])


Popen = subprocess.Popen


def _forked(words, **options):
    """`subprocess.Popen`, but a server with imports done starts ``python -m ssdfl WORDS``."""
    if words[1:3] != ["-m", "ssdfl"]:
        return Popen(words, **options)
    return forked.Forked("forked:run_command", words[3:], **options)


def forked_devices():
    """Starts the devices of meshes in a moment, where a command or an engine starts them."""
    return patch("ssdfl.mesh.processes.subprocess.Popen", _forked)


def run_command(words):
    """In a forked process: ``ssdfl WORDS``, whose devices are forked as well."""
    with forked_devices():
        forked.run_command(words)


@contextmanager
def running(mesh):
    """The devices of a mesh as processes; whatever is left of them is killed."""
    processes = MeshProcesses(mesh)
    with patch.dict(os.environ, ENVIRONMENT), forked_devices():
        processes.start()
        try:
            yield processes
        finally:
            for folder in processes.running():
                processes.process(folder).send_signal(signal.SIGCONT)
                kill(processes, folder)


def kill(processes, folder):
    """End a device as a power cut does."""
    processes.process(folder).kill()
    processes.process(folder).wait()


def finish(processes, timeout_s=120):
    """Wait for all devices to end well."""
    deadline = time.monotonic() + timeout_s
    while processes.running():
        assert time.monotonic() < deadline, [folder.name for folder in processes.running()]
        time.sleep(0.1)
    assert not processes.failed(), {
        folder.name: (folder / "output.txt").read_text()[-2000:] for folder in processes.failed()
    }


def come_together(processes, steps=150):
    """Let all devices train ``steps`` more than any has now, and stop them: they have mixed."""
    wait_for_step(
        processes, max(status.get("step", 0) for status in processes.statuses()) + steps, 240
    )
    assert not processes.failed()
    processes.stop()


def train_on(processes, steps=6, timeout_s=18):
    """Wait until all devices that run are past where any is now, sooner than the patience ends."""
    wait_for_step(processes, max(_steps(processes)) + steps, timeout_s)


def _steps(processes):
    """How far each device that runs has come."""
    names = {folder.name for folder in processes.running()}
    return [status.get("step", 0) for status in processes.statuses() if status["device"] in names]


def wait_for_words(log, words, timeout_s=60):
    """Wait until a device has logged something."""
    deadline = time.monotonic() + timeout_s
    while not (log.exists() and words in log.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def wait_for_step(processes, step, timeout_s=60):
    """Wait until every device that runs has come to a step."""
    deadline = time.monotonic() + timeout_s
    while True:
        steps = _steps(processes)
        if min(steps) >= step:
            return
        assert time.monotonic() < deadline, steps
        time.sleep(0.05)


def local_parameters(experiment, method, seed=0):
    """What the local engine comes to."""
    from ssdfl.engine import run

    job = make_job(
        experiment, prepare(experiment, seed, load_dataset(experiment.data.name)), method
    )
    *_, (record, state) = run(job)
    return state.X.double().numpy(), record


def final_parameters(mesh):
    return parameters(sorted(path.parent for path in mesh.glob("*/device.json")))


def accuracies(mesh):
    """Each device's last test accuracy."""
    found = []
    for path in sorted(mesh.glob("*/metrics.jsonl")):
        rows = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
        found.append([row["score"] for row in rows if row["score"] == row["score"]][-1])
    return np.array(found)


@cache
def undisturbed():
    """A record without faults, by the local engine, which a mesh equals."""
    return local_parameters(small("cycles=100", "evaluate.every=100"), "ssdfl")[1]


def check_as_good(mesh):
    """Faults cost neither accuracy nor agreement; stopped devices are some steps apart."""
    assert accuracies(mesh).mean() == pytest.approx(undisturbed().score, abs=0.05)
    X = final_parameters(mesh)
    spread = np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean())
    assert spread < 5 * undisturbed().consensus_distance


def _own_ports():
    """Ports that neither the system gives to callers nor another pytest-xdist worker takes."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 4
    ports = range(10_000 + 5_000 * worker, 15_000 + 5_000 * worker)
    return itertools.islice(itertools.cycle(ports), secrets.randbelow(len(ports)), None)


PORTS = _own_ports()


def _bind(one):
    """As `ssdfl.mesh.hosts` does; nothing takes a port before its device starts."""
    while True:
        port = next(PORTS)
        with suppress(OSError):
            one.bind(("127.0.0.1", port))
            return f"127.0.0.1:{port}"


def made(experiment, folder, method="ssdfl", **options):
    with patch("ssdfl.mesh.hosts._bind", _bind):
        init_mesh(experiment, folder, method=method, seed=0, **options)
    return folder
