"""Meshes of real processes on loopback, for tests."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np

from ssdfl.experiments import load_experiment, make_job, prepare
from ssdfl.experiments.mesh import MeshProcesses, parameters
from ssdfl.experiments.mesh_folder import init_mesh
from ssdfl.learning import load_dataset

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

ENVIRONMENT = {"PYTHONPATH": str(Path(__file__).parent), "OMP_NUM_THREADS": "1"}


def small(*changes):
    return load_experiment(None, [*SMALL, *changes])


@contextmanager
def running(mesh):
    """The devices of a mesh as processes; whatever is left of them is killed."""
    processes = MeshProcesses(mesh)
    with patch.dict(os.environ, ENVIRONMENT):
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


def wait_for_step(processes, step, timeout_s=60):
    """Wait until every device that runs has come to a step."""
    deadline = time.monotonic() + timeout_s
    while True:
        names = {folder.name for folder in processes.running()}
        steps = [status.get("step", 0) for status in processes.statuses() if status["device"] in names]
        if min(steps) >= step:
            return
        assert time.monotonic() < deadline, steps
        time.sleep(0.05)


def local_parameters(experiment, method, seed=0):
    """What the local engine comes to."""
    from ssdfl.engine import run

    job = make_job(experiment, prepare(experiment, seed, load_dataset(experiment.data.name)), method)
    *_, (record, state) = run(job)
    return state.X.double().numpy(), record


def final_parameters(mesh):
    return parameters(sorted(path.parent for path in mesh.glob("*/device.json")))


def accuracies(mesh):
    """Each device's last test accuracy."""
    return np.array(
        [
            json.loads(path.read_text().splitlines()[-1])["accuracy"]
            for path in sorted(mesh.glob("*/metrics.jsonl"))
        ]
    )


def made(experiment, folder, method="ssdfl", **options):
    init_mesh(experiment, folder, method=method, seed=0, **options)
    return folder


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "ssdfl", *map(str, arguments)],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
    )
