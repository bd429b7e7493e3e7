"""Run a method as processes on loopback, one per device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ssdfl.engine import Job
from ssdfl.experiments.advance import Advance
from ssdfl.mesh.folder import (
    device_folders,
    holds_mesh,
    init_mesh,
    move_to_free_ports,
    renew_experiment,
)
from ssdfl.mesh.processes import MeshProcesses, collected_rows, watch_statuses
from ssdfl.records.config import Experiment
from ssdfl.records.folder import RunFolder


def run_on_mesh(
    experiment: Experiment, folder: RunFolder, job: Job, method: str, data: Path | None
) -> Iterator[Advance]:
    """Run a method as one process per device; their folders stay beside its metrics.

    The records are gathered from the devices at the end, so the last cycle is reported only when
    they are written.
    """
    mesh = folder.devices_folder(job.seed, method)
    reported = 0
    rows = folder.read_rows(job.seed, method)
    if len(rows) < job.cycles:
        _set_up(experiment, mesh, method, job.seed)
        for finished in _finished_cycles(MeshProcesses(mesh, data), job):
            while reported < min(finished, job.cycles - 1):
                reported += 1
                yield Advance(job.seed, method, reported, None)
        rows = collected_rows(device_folders(mesh))
        folder.write_rows(job.seed, method, rows)
    for row in rows[reported:]:
        yield Advance(job.seed, method, row["cycle"], None)


def _set_up(experiment: Experiment, mesh: Path, method: str, seed: int) -> None:
    """Make the devices' folders, or update the ports and cycles in those of an earlier run."""
    if holds_mesh(mesh):
        move_to_free_ports(mesh)
        renew_experiment(mesh, experiment)
    else:
        init_mesh(experiment, mesh, method=method, seed=seed)


def _finished_cycles(processes: MeshProcesses, job: Job) -> Iterator[int]:
    """Run the devices to the end; yields from time to time the cycles that all have finished."""
    processes.start()
    try:
        for statuses in watch_statuses(processes):
            slowest = min(status.get("step", 0) for status in statuses)
            yield slowest // job.steps_per_cycle
    finally:
        processes.stop()
